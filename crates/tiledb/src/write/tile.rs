//! [`CellEncoder`]: the tiles of one attribute, with their statistics.
//!
//! ```text
//!   cells of a chunk  ─▶  the whole tile, with the fill value beyond the array  ─▶  values [, text] [, validity]
//!         └─▶ least and greatest value, sum, NULLs
//! ```

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::take;
use gridfusion_core::array::failed_to;
use gridfusion_core::format::{ElementType, ZoneBound, bound};
use gridfusion_core::grid::{AxisSelection, for_each_run};
use gridfusion_core::verify::CellStatistics;
use gridfusion_core::write::BadCell;
use gridfusion_core::{Error, Result};

use super::cell_type::CellType;
use super::schema::VERSION;
use crate::bytes::{Attribute, Datatype, Field, Pipeline, TileEncoder};
use crate::verify::TileSum;

/// Encodes the tiles of one attribute.
#[derive(Debug)]
pub(super) struct CellEncoder {
    pub(super) cell: CellType,
    /// Whether texts are ASCII.
    is_ascii: bool,
    pub(super) nulls: Nulls,
    /// The value of cells beyond the array, and below NULL.
    padding: ArrayRef,
    values: TileEncoder,
    text: TileEncoder,
    validity: TileEncoder,
}

/// How NULL is stored.
#[derive(Debug)]
pub(super) enum Nulls {
    /// As this value.
    Value(ArrayRef),
    /// As this value, which is an ordinary one for the program that chose it.
    Fill(ArrayRef),
    /// In a file of validity.
    Validity,
    /// NULL is refused.
    Refused,
}

/// A tile as the files have it.
#[derive(Debug)]
pub(super) struct EncodedTile {
    /// The values, or the offsets of texts.
    pub(super) values: Vec<u8>,
    /// The bytes of texts.
    pub(super) text: Option<EncodedText>,
    /// The validity of cells; `None` if none is NULL.
    pub(super) validity: Option<Vec<u8>>,
    pub(super) statistics: TileStatistics,
}

/// The texts of a tile.
#[derive(Debug)]
pub(super) struct EncodedText {
    pub(super) stored: Vec<u8>,
    /// The bytes before encoding.
    pub(super) raw_len: u64,
}

/// The statistics of the cells of a tile that the array has.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileStatistics {
    pub(super) nulls: u64,
    /// The least and the greatest number; `None` for texts, and if there is none.
    pub(super) bounds: Option<(ZoneBound, ZoneBound)>,
    /// The sum of numbers.
    pub(super) sum: Option<TileSum>,
}

impl CellEncoder {
    /// Makes the encoder of an attribute.
    pub(super) fn new(
        cell: CellType,
        attribute: &Attribute,
        nulls: Nulls,
        padding: ArrayRef,
        of_bytes: &Pipeline,
    ) -> Self {
        let own = encoder(&attribute.pipeline, attribute.datatype);
        let offsets = encoder(of_bytes, Datatype::UInt64);
        let (values, text) = if cell.is_text() { (offsets, own) } else { (own.clone(), own) };
        let validity = encoder(of_bytes, Datatype::UInt8);
        let is_ascii = attribute.datatype == Datatype::StringAscii;
        Self { cell, is_ascii, nulls, padding, values, text, validity }
    }

    /// Sets the filters of validity.
    pub(super) fn with_validity(self, pipeline: &Pipeline) -> Self {
        Self { validity: encoder(pipeline, Datatype::UInt8), ..self }
    }

    /// Encodes cells, which are in a tile at these places.
    ///
    /// # Errors
    /// The cell that cannot be stored, or `Internal` errors.
    pub(super) fn tile(
        &self,
        cells: &ArrayRef,
        within: &[Range<u64>],
        tile_shape: &[u64],
    ) -> Result<Result<EncodedTile, BadCell>> {
        let cells = match self.cell.stored_exactly(cells)? {
            Ok(cells) => cells,
            Err(bad) => return Ok(Err(bad)),
        };
        let fill = match &self.nulls {
            Nulls::Value(fill) => Some(fill),
            Nulls::Fill(fill) => Some(fill).filter(|_| cells.null_count() > 0),
            Nulls::Validity | Nulls::Refused => None,
        };
        let is_checked = !matches!(self.nulls, Nulls::Validity);
        if is_checked && let Err(bad) = self.cell.bits().check(&cells, fill) {
            return Ok(Err(bad));
        }
        if let Some(at) = self.first_not_ascii(&cells) {
            let reason = "it is not ASCII, as the texts of the attribute are";
            return Ok(Err(BadCell { at, reason }));
        }
        let padded = in_tile(&cells, within, tile_shape)?;
        let nulls = if is_checked { 0 } else { cells.null_count() as u64 };
        let validity = match nulls {
            0 => None,
            _ => Some(self.validity.tile(&validity(&padded, padded.len()))?),
        };
        let Some(element) = self.cell.element else {
            let (values, text) = self.texts(&padded)?;
            let statistics = TileStatistics { nulls, bounds: None, sum: None };
            return Ok(Ok(EncodedTile { values, text: Some(text), validity, statistics }));
        };
        let bytes = self.cell.bytes(&padded, &self.padding)?;
        let values = self.values.tile(&bytes)?;
        // Cells beyond the array have no part in the statistics.
        let bytes = match cells.len() == padded.len() {
            true => bytes,
            false => self.cell.bytes(&cells, &self.padding)?,
        };
        let statistics = self.statistics(element, &bytes, &cells, nulls)?;
        Ok(Ok(EncodedTile { values, text: None, validity, statistics }))
    }

    /// Returns the first text that an attribute of ASCII texts cannot have.
    fn first_not_ascii(&self, cells: &ArrayRef) -> Option<usize> {
        let texts = cells.as_string_opt::<i32>().filter(|_| self.is_ascii)?;
        texts.iter().position(|text| text.is_some_and(|text| !text.is_ascii()))
    }

    /// Returns the validity of a tile without NULL.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn all_valid(&self, cells: usize) -> Result<Vec<u8>> {
        self.validity.tile(&vec![1; cells])
    }

    /// Encodes texts: their offsets, and their bytes.
    fn texts(&self, cells: &ArrayRef) -> Result<(Vec<u8>, EncodedText)> {
        let texts = cells.as_string::<i32>();
        let fill = match &self.nulls {
            Nulls::Value(fill) | Nulls::Fill(fill) => fill.as_string::<i32>().value(0),
            Nulls::Validity | Nulls::Refused => "",
        };
        let (mut content, mut ends) = (vec![], Vec::with_capacity(texts.len()));
        for text in texts {
            content.extend(text.unwrap_or(fill).as_bytes());
            ends.push(content.len());
        }
        let mut offsets = Vec::with_capacity(8 * ends.len());
        for start in std::iter::once(&0).chain(&ends).take(ends.len()) {
            offsets.extend((*start as u64).to_le_bytes());
        }
        let stored = self.text.tile_of_cells(&content, ends.into_iter())?;
        let text = EncodedText { stored, raw_len: content.len() as u64 };
        Ok((self.values.tile(&offsets)?, text))
    }

    /// Returns the statistics of cells with these bytes.
    fn statistics(
        &self,
        element: ElementType,
        bytes: &[u8],
        cells: &ArrayRef,
        nulls: u64,
    ) -> Result<TileStatistics> {
        let validity = (nulls > 0).then(|| validity(cells, cells.len()));
        let validity = validity.as_deref();
        let mut bounds = CellStatistics::new(element, bytes, None, validity).bounds;
        if bounds.is_none() && self.cell.datatype.is_float() && nulls < cells.len() as u64 {
            // All numbers are NaN, and so are the least and the greatest one.
            let nan = self.cell.natural_fill();
            let nan = nan.map(|nan| self.cell.bytes(&nan, &nan)).transpose()?;
            bounds = nan.map(|nan| (bound(&nan), bound(&nan)));
        }
        Ok(TileStatistics { nulls, bounds, sum: Some(TileSum::new(element, bytes, validity)) })
    }
}

/// Returns the encoder of tiles of values of one type.
fn encoder(pipeline: &Pipeline, datatype: Datatype) -> TileEncoder {
    let cell_size = datatype.size();
    let field = Field { datatype, cell_size, var_strings: false, fragment_version: VERSION };
    TileEncoder::new(pipeline, field)
}

/// Returns the cells of a whole tile, of which `cells` are those at the given places. The others are NULL.
fn in_tile(cells: &ArrayRef, within: &[Range<u64>], tile_shape: &[u64]) -> Result<ArrayRef> {
    /// No cell.
    const NONE: u64 = u64::MAX;
    if within.iter().zip(tile_shape).all(|(range, len)| *range == (0..*len)) {
        return Ok(ArrayRef::clone(cells));
    }
    let mut indices = vec![NONE; cells_of(tile_shape)?];
    let axes = within.iter().zip(tile_shape);
    let axes = axes.map(|(range, len)| AxisSelection::from_range(*len, range.clone()));
    let mut next = 0..cells.len() as u64;
    for_each_run(&axes.collect::<Vec<_>>(), |run| {
        let places = &mut indices[run.start as usize..run.end as usize];
        places.iter_mut().zip(&mut next).for_each(|(place, index)| *place = index);
    });
    let is_there = indices.iter().map(|at| *at != NONE).collect();
    let indices = UInt64Array::new(indices.into(), Some(is_there));
    take(cells, &indices, None).map_err(failed_to("fill up a tile"))
}

/// Returns a byte per cell, 0 for NULL.
fn validity(cells: &ArrayRef, len: usize) -> Vec<u8> {
    match cells.nulls() {
        None => vec![1; len],
        Some(nulls) => nulls.iter().map(u8::from).collect(),
    }
}

/// Returns the number of cells of a tile.
///
/// # Errors
/// `Unsupported` if it does not fit in memory.
pub(super) fn cells_of(tile_shape: &[u64]) -> Result<usize> {
    let cells = tile_shape.iter().try_fold(1_u64, |cells, len| cells.checked_mul(*len));
    let cells = cells.and_then(|cells| usize::try_from(cells).ok());
    cells.ok_or_else(|| Error::unsupported("TileDB tiles of 2^64 cells or more"))
}
