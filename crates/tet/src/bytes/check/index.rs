//! Reads the rows of the chunk index with all faults of each row, for reports. Queries stop at the first
//! fault instead.

use std::ops::Range;
use std::sync::Arc;

use crate::bytes::directory::Dataset;
use crate::bytes::file::TetFile;
use crate::bytes::index::Row;
use gridfusion_core::format::{Machine, Payload, Replies, Step};
use gridfusion_core::{Error, Result};

impl TetFile {
    /// Returns a machine that reads these `rows` of the chunk index with all faults of each row.
    pub fn check_index(self: &Arc<Self>, rows: Range<u64>) -> CheckIndex {
        CheckIndex::new(Arc::clone(self), rows)
    }
}

/// A row of the index and its faults.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CheckedRow {
    /// The offset of the row in the file.
    pub offset: u64,
    /// The id of the row's dataset, if that exists.
    pub dataset: Option<usize>,
    /// The coordinates of the row's chunk, if they lie in the grid of its dataset.
    pub coordinates: Option<Vec<u64>>,
    /// The bytes of the payload, if they lie before the end of the payloads.
    pub span: Option<Range<u64>>,
    /// The payload to decode, if it has no fault.
    pub payload: Option<Payload>,
    /// The first fault of each field that has one.
    pub faults: Vec<(RowField, Error)>,
}

/// A field of a row that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowField {
    /// The dataset does not exist.
    Dataset,
    /// The chunk lies outside the grid.
    Coordinates,
    /// A coordinate on an axis that the dataset does not have is not 0; readers ignore it.
    UnusedCoordinates,
    /// The decoded length differs from that of the chunk's tile.
    RawLength,
    /// The stored length of a raw payload differs from the decoded length.
    StoredLength,
    /// The payload goes beyond the end of the payloads.
    Payload,
    /// The codec is undefined.
    Codec,
}

/// A machine that reads and checks rows of the index, in the order of the file; made by
/// [`TetFile::check_index`].
#[derive(Debug)]
pub struct CheckIndex {
    file: Arc<TetFile>,
    rows: Range<u64>,
}

impl CheckIndex {
    fn new(file: Arc<TetFile>, rows: Range<u64>) -> Self {
        let end = rows.end.min(file.index.row_count);
        Self { file, rows: rows.start.min(end)..end }
    }

    /// Checks every field of a row, each independently of faults in the others where that is possible.
    fn check(&self, row: &Row, object: &Arc<str>) -> CheckedRow {
        let mut faults = Faults(vec![]);
        let datasets = self.file.datasets();
        let dataset = usize::try_from(row.dataset()).ok().filter(|id| *id < datasets.len());
        if dataset.is_none() {
            faults.0.push((RowField::Dataset, row.no_such_dataset(datasets.len())));
        }
        let tile = dataset.and_then(|id| faults.tile(row, &datasets[id]));
        let codec = faults.note(RowField::Codec, row.codec());
        if let Some(codec) = &codec {
            faults.note(RowField::StoredLength, row.check_stored_len(codec));
        }
        let span = faults.note(RowField::Payload, row.span(self.file.payload_end));
        let payload = tile
            .as_ref()
            .and_then(|(_, tile_len)| row.payload(object, *tile_len, self.file.payload_end).ok());
        let coordinates = tile.map(|(coordinates, _)| coordinates);
        CheckedRow { offset: row.offset, dataset, coordinates, span, payload, faults: faults.0 }
    }
}

/// The faults of a row, collected field by field.
struct Faults(Vec<(RowField, Error)>);

impl Faults {
    /// Returns the value of a field, or adds its fault.
    fn note<T>(&mut self, field: RowField, found: Result<T>) -> Option<T> {
        found.map_err(|error| self.0.push((field, error))).ok()
    }

    /// Checks the row against its dataset, and returns the coordinates of its chunk and the length of its
    /// tile. A dataset that cannot be read has no grid to check its rows against.
    fn tile(&mut self, row: &Row, dataset: &Dataset) -> Option<(Vec<u64>, u64)> {
        let (Ok(grid), Ok(element)) = (dataset.grid(), dataset.element()) else { return None };
        self.note(RowField::UnusedCoordinates, row.check_unused(grid.rank()));
        let coordinates = self.note(RowField::Coordinates, row.coordinates(grid))?;
        let tile_len = grid.extents(coordinates).iter().product::<u64>() * element.size();
        self.note(RowField::RawLength, row.check_raw_len(tile_len));
        Some((coordinates.to_vec(), tile_len))
    }
}

impl Machine for CheckIndex {
    type Output = Vec<CheckedRow>;

    fn subject(&self) -> &'static str {
        "index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        let bytes = self.file.index.bytes_of(self.rows.clone());
        let replies = replies.into_bytes();
        let Some(rows) = replies.first() else {
            return Ok(if self.rows.is_empty() { Step::Done(vec![]) } else { Step::read([bytes]) });
        };
        let object: Arc<str> = "".into();
        let rows = Row::parse_each(bytes.start, rows);
        rows.map(|row| Ok(self.check(&row?, &object))).collect::<Result<_>>().map(Step::Done)
    }
}
