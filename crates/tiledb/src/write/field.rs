//! [`NewField`]: the files of one attribute, and what the fragment's metadata lists of them.
//!
//! An attribute has a file of validity from its first NULL on:
//!
//! ```text
//!   tile 0   all valid      a0.tdb
//!   tile 1   all valid      a0.tdb
//!   tile 2   a NULL         a0.tdb   a0_validity.tdb: tiles 0, 1 and 2
//! ```

use std::sync::Arc;

use gridfusion_core::Result;
use gridfusion_core::format::{Content, ElementType, Write, ZoneBound};
use gridfusion_core::verify::CellStatistics;

use super::cell_type::least;
use super::stored::Fields;
use super::tile::{CellEncoder, EncodedText, EncodedTile, TileStatistics};
use crate::bytes::Datatype;
use crate::verify::TileSum;

/// The files of one attribute.
#[derive(Debug)]
pub(super) struct NewField {
    /// The number of the attribute in the schema.
    pub(super) number: usize,
    pub(super) encoder: CellEncoder,
    values: DataFile,
    text: DataFile,
    validity: DataFile,
    tile_cells: usize,
    /// Whether each tile has validity, even without NULL.
    keeps_validity: bool,
    /// The bytes of the texts of each tile, before encoding.
    text_lens: Vec<u64>,
    statistics: Vec<TileStatistics>,
}

/// A file of tiles.
#[derive(Debug)]
struct DataFile {
    object: Arc<str>,
    /// Where each tile begins.
    offsets: Vec<u64>,
    len: u64,
}

impl DataFile {
    fn new(object: String) -> Self {
        Self { object: object.into(), offsets: vec![], len: 0 }
    }

    fn append(&mut self, tile: Vec<u8>) -> Write {
        self.offsets.push(self.len);
        self.len += tile.len() as u64;
        Write::Append(Content::new(Arc::clone(&self.object), tile))
    }

    /// Returns the block of offsets; that of a file without tiles has zeros.
    fn block(&self, tiles: usize) -> Vec<u8> {
        let mut block = Fields::default();
        block.u64(tiles as u64);
        match self.offsets.is_empty() {
            true => block.words(&vec![0; tiles]),
            false => block.words(&self.offsets),
        }
        block.0
    }
}

impl NewField {
    /// Makes the files of an attribute, whose names begin with `stem`.
    pub(super) fn new(
        number: usize,
        encoder: CellEncoder,
        stem: &str,
        tile_cells: usize,
        keeps_validity: bool,
    ) -> Self {
        let file = |suffix: &str| DataFile::new(format!("{stem}{suffix}.tdb"));
        Self {
            number,
            encoder,
            values: file(""),
            text: file("_var"),
            validity: file("_validity"),
            tile_cells,
            keeps_validity,
            text_lens: vec![],
            statistics: vec![],
        }
    }

    /// Returns the number of tiles that were written.
    pub(super) fn tiles(&self) -> usize {
        self.statistics.len()
    }

    /// Whether there is a file of validity.
    pub(super) fn has_validity(&self) -> bool {
        self.keeps_validity || !self.validity.offsets.is_empty()
    }

    /// Appends the next tile.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn append(&mut self, tile: EncodedTile) -> Result<Vec<Write>> {
        let mut writes = vec![self.values.append(tile.values)];
        if let Some(EncodedText { stored, raw_len }) = tile.text {
            writes.push(self.text.append(stored));
            self.text_lens.push(raw_len);
        }
        if tile.validity.is_some() || self.has_validity() {
            let valid = self.encoder.all_valid(self.tile_cells)?;
            while self.validity.offsets.len() < self.tiles() {
                writes.push(self.validity.append(valid.clone()));
            }
            writes.push(self.validity.append(tile.validity.unwrap_or(valid)));
        }
        self.statistics.push(tile.statistics);
        Ok(writes)
    }

    /// Returns the writes that complete the files.
    pub(super) fn complete(&mut self) -> Vec<Write> {
        let files = [&self.values, &self.text, &self.validity];
        let written = files.into_iter().filter(|file| !file.offsets.is_empty());
        written.map(|file| Write::Complete(Arc::clone(&file.object))).collect()
    }

    /// Returns the length of a file: that of values, of texts or of validity.
    pub(super) fn file_len(&self, file: usize) -> u64 {
        [&self.values, &self.text, &self.validity].get(file).map_or(0, |file| file.len)
    }

    /// Returns a block of the metadata, in the order of the footer.
    pub(super) fn block(&self, column: usize) -> Vec<u8> {
        let tiles = self.tiles();
        let mut block = Fields::default();
        let counted = |block: &mut Fields, words: Vec<u64>| {
            block.u64(words.len() as u64);
            block.words(&words);
        };
        match column {
            0 => return self.values.block(tiles),
            1 => return self.text.block(tiles),
            2 if self.text_lens.is_empty() => counted(&mut block, vec![0; tiles]),
            2 => counted(&mut block, self.text_lens.clone()),
            3 => return self.validity.block(tiles),
            4 | 5 => {
                let bounds =
                    self.statistics.iter().flat_map(|it| self.bound(it.bounds, column == 4));
                let bounds: Vec<u8> = bounds.collect();
                block.words(&[bounds.len() as u64, 0]);
                block.bytes(&bounds);
            }
            6 => {
                let sums = self.statistics.iter().filter_map(|it| Some(it.sum?.stored()));
                counted(&mut block, sums.collect());
            }
            _ if self.has_validity() => {
                counted(&mut block, self.statistics.iter().map(|it| it.nulls).collect());
            }
            _ => block.u64(0),
        }
        block.0
    }

    /// Returns the bytes of the least or the greatest number. A tile without numbers has the opposite ends of the type.
    fn bound(&self, bounds: Option<(ZoneBound, ZoneBound)>, is_least: bool) -> Vec<u8> {
        let Some(element) = self.encoder.cell.element else { return vec![] };
        let size = element.size() as usize;
        match (bounds, is_least) {
            (Some((bound, _)), true) | (Some((_, bound)), false) => bound[..size].to_vec(),
            (None, _) => end_of(self.encoder.cell.datatype, is_least),
        }
    }

    /// Adds the statistics of all tiles together.
    pub(super) fn add_statistics(&self, fields: &mut Fields) {
        let known = self.statistics.iter().filter_map(|it| it.bounds);
        let all = self.encoder.cell.element.and_then(|element| around(element, known));
        for is_least in [true, false] {
            let bound = self.bound(all, is_least);
            fields.u64(bound.len() as u64);
            fields.bytes(&bound);
        }
        let sums = self.statistics.iter().filter_map(|it| it.sum);
        fields.u64(sums.reduce(TileSum::plus).map_or(0, TileSum::stored));
        fields.u64(self.statistics.iter().map(|it| it.nulls).sum());
    }
}

/// Returns the least and the greatest of bounds.
fn around(
    element: ElementType,
    bounds: impl Iterator<Item = (ZoneBound, ZoneBound)> + Clone,
) -> Option<(ZoneBound, ZoneBound)> {
    let size = element.size() as usize;
    let first = bounds.clone().next();
    let ends = bounds.flat_map(|(least, greatest)| [least, greatest]);
    let ends: Vec<u8> = ends.flat_map(|end| end.into_iter().take(size)).collect();
    // Without numbers, all bounds are NaN.
    CellStatistics::new(element, &ends, None, None).bounds.or(first)
}

/// Returns the greatest number of a type, or the least one.
fn end_of(datatype: Datatype, is_greatest: bool) -> Vec<u8> {
    let size = datatype.size() as usize;
    match (datatype, is_greatest) {
        (Datatype::Float32, true) => f32::MAX.to_le_bytes().to_vec(),
        (Datatype::Float32, false) => f32::MIN.to_le_bytes().to_vec(),
        (Datatype::Float64, true) => f64::MAX.to_le_bytes().to_vec(),
        (Datatype::Float64, false) => f64::MIN.to_le_bytes().to_vec(),
        (it, true) if it.is_signed() => least(it).iter().map(|byte| !byte).collect(),
        (it, false) if it.is_signed() => least(it),
        (_, true) => vec![0xff; size],
        (_, false) => vec![0; size],
    }
}
