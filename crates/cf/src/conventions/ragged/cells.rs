//! [`Cells`]: the values of all instances as bytes, and the tiles of samples that are made of them.
//!
//! ```text
//!   cells of instances   Oslo  Bergen
//!   runs of a chunk      0 × 3, none × 1, 1 × 2
//!   tile                 Oslo Oslo Oslo NULL Bergen Bergen
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use bytes::Bytes;
use gridfusion_core::array::{GridArray, failed_to};
use gridfusion_core::format::{
    Codec, DecodedPayload, Layer, Location, NOTHING, Payload, PayloadDecoder, Scratch, StoredChunk,
};
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::Tile;
use gridfusion_core::{Error, Result};

use super::super::labels::read_tiles;
use super::members::Members;

/// The most bytes of a tile of samples.
const MOST_BYTES: u64 = 1 << 31;

/// The values of one variable, one per instance.
#[derive(Debug)]
pub(super) struct Cells {
    bytes: Vec<u8>,
    places: Places,
    /// Per instance, whether the value is NULL; empty if the column tells that by the bytes.
    nulls: Vec<bool>,
    /// The values, for their order; `None` if they cannot be shown.
    pub(super) values: Option<ArrayRef>,
}

/// Where the cells are in the bytes.
#[derive(Debug)]
enum Places {
    /// Cells of this many bytes follow one another.
    Width(usize),
    /// The place of each cell.
    Spans(Vec<Range<u64>>),
}

impl Cells {
    /// Returns the numbers of `len` instances.
    pub(super) fn numbers(len: u64) -> Self {
        let numbers: Vec<i64> = (0..len as i64).collect();
        let bytes = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let values = Some(Arc::new(arrow::array::Int64Array::from(numbers)) as ArrayRef);
        Self { bytes, places: Places::Width(8), nulls: vec![], values }
    }

    /// Reads the values of an array over instances. Text becomes UTF-8 of any length, so that it is stored alike in all files.
    ///
    /// # Errors
    /// If the array cannot be read; `Unsupported` if it would take much more memory than is stored.
    pub(super) async fn read(array: &GridArray, value: usize) -> Result<Self> {
        let column = array.value(value);
        let is_text = column.data_type() == DataType::Utf8View;
        let (mut bytes, mut spans, mut width) = (vec![], vec![], None);
        let mut parts: Option<Vec<ArrayRef>> = Some(vec![]);
        let take = |tile: Tile, cells: u64| {
            let all = [AxisSelection::all(cells)];
            let values = column.decode(&tile, &all, true);
            if is_text {
                parts.get_or_insert_default().push(values?);
                return Ok(());
            }
            // Queries that show a value get the error.
            match (values, &mut parts) {
                (Ok(values), Some(parts)) => parts.push(values),
                _ => parts = None,
            }
            if let Ok((of_tile, content)) = tile.spans(&all) {
                let base = bytes.len() as u64;
                bytes.extend_from_slice(content);
                spans.extend(of_tile.into_iter().map(|it| base + it.start..base + it.end));
            } else {
                bytes.extend_from_slice(tile.bytes());
                width = Some(column.cell_bytes() as usize);
            }
            Ok(())
        };
        if !read_tiles(array, value, take).await? {
            let message = format!("\"{}\" has many values, but few are stored", array.name());
            return Err(Error::unsupported(message));
        }
        let values = parts.filter(|parts| !parts.is_empty()).map(|parts| {
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            concat(&parts).map_err(failed_to("join the values of instances"))
        });
        let values = values.transpose()?;
        match (&values, is_text, width) {
            (Some(values), true, _) => Ok(Self::texts(values)),
            (_, false, Some(width)) => {
                Ok(Self { bytes, places: Places::Width(width), nulls: vec![], values })
            }
            _ => Ok(Self { bytes, places: Places::Spans(spans), nulls: vec![], values }),
        }
    }

    fn texts(values: &ArrayRef) -> Self {
        let (mut bytes, mut spans, mut nulls) = (vec![], vec![], vec![]);
        for text in values.as_string_view().iter() {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
            spans.push(start..bytes.len() as u64);
            nulls.push(text.is_none());
        }
        let values = Some(Arc::clone(values));
        Self { bytes, places: Places::Spans(spans), nulls, values }
    }

    /// Returns the bytes of an instance's cell; those of none are zeros.
    fn cell(&self, instance: Option<u32>) -> Option<&[u8]> {
        let instance = instance? as usize;
        let range = match &self.places {
            Places::Width(width) => instance * width..(instance + 1) * width,
            Places::Spans(spans) => {
                let span = spans.get(instance)?;
                span.start as usize..span.end as usize
            }
        };
        self.bytes.get(range)
    }

    fn is_null(&self, instance: Option<u32>) -> bool {
        instance.is_none_or(|it| self.nulls.get(it as usize).copied().unwrap_or_default())
    }
}

/// Returns the chunk of the samples in `range`. With `marks`, it tells which cells are NULL.
///
/// # Errors
/// `Unsupported` if it would be too large.
pub(super) fn chunk(
    cells: &Arc<Cells>,
    members: &Arc<Members>,
    range: &Range<u64>,
    marks: bool,
) -> Result<StoredChunk> {
    let len = |(instance, count): (Option<u32>, u64)| {
        let own = match (&cells.places, cells.cell(instance)) {
            (Places::Width(width), _) => *width,
            (Places::Spans(_), cell) => cell.map_or(0, <[u8]>::len),
        };
        count.saturating_mul(own as u64)
    };
    let bytes = members.runs(range.clone()).map(len).fold(0, u64::saturating_add);
    if bytes > MOST_BYTES {
        return Err(Error::unsupported(format!(
            "a chunk of {} samples with {bytes} bytes of their instances; the most is {MOST_BYTES}",
            range.end - range.start
        )));
    }
    let payload = |len: u64, what: What| {
        let (cells, members, range) = (Arc::clone(cells), Arc::clone(members), range.clone());
        let decoder = Arc::new(Gathered { cells, members, range, what });
        Payload::new(Location::new(NOTHING, 0..0), len, Codec::Custom(decoder))
    };
    let validity = marks.then(|| payload(range.end - range.start, What::Marks));
    let layer = Layer::whole(payload(bytes, What::Values)).with_validity(validity);
    Ok(StoredChunk::new(vec![layer]))
}

/// A decoder that makes the tile of samples from the cells of their instances.
#[derive(Debug)]
struct Gathered {
    cells: Arc<Cells>,
    members: Arc<Members>,
    range: Range<u64>,
    what: What,
}

/// A kind of the bytes of a payload.
#[derive(Debug, Clone, Copy)]
enum What {
    Values,
    /// A byte per cell, 0 for NULL.
    Marks,
}

impl fmt::Display for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("of instances")
    }
}

impl PayloadDecoder for Gathered {
    fn decode(
        &self,
        _: &Bytes,
        raw_len: u64,
        _: u64,
        spare: Vec<u8>,
        _: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let mut bytes = spare;
        bytes.clear();
        bytes.reserve_exact(raw_len as usize);
        let runs = self.members.runs(self.range.clone());
        let offsets = match (self.what, &self.cells.places) {
            (What::Marks, _) => {
                for (instance, count) in runs {
                    let mark = u8::from(!self.cells.is_null(instance));
                    bytes.resize(bytes.len() + count as usize, mark);
                }
                None
            }
            (What::Values, Places::Width(width)) => {
                for (instance, count) in runs {
                    match self.cells.cell(instance) {
                        Some(cell) => (0..count).for_each(|_| bytes.extend_from_slice(cell)),
                        None => bytes.resize(bytes.len() + count as usize * width, 0),
                    }
                }
                None
            }
            (What::Values, Places::Spans(_)) => {
                let mut offsets = Vec::with_capacity((self.range.end - self.range.start) as usize);
                for (instance, count) in runs {
                    let cell = self.cells.cell(instance).unwrap_or_default();
                    for _ in 0..count {
                        offsets.push(bytes.len() as u64);
                        bytes.extend_from_slice(cell);
                    }
                }
                Some(offsets)
            }
        };
        Ok(DecodedPayload::new(bytes.into(), offsets))
    }
}
