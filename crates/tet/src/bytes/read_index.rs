//! Reading the rows of the chunk index in order, for lists of the stored chunks. Queries find single chunks
//! with `locate.rs` instead.

use std::ops::Range;
use std::sync::Arc;

use super::file::TetFile;
use super::index::Row;
use gridfusion_core::format::{Machine, Payload, Replies, Step};
use gridfusion_core::{Error, Result};

/// A stored chunk, as a row of the index describes it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IndexEntry {
    /// The id of the dataset.
    pub dataset: usize,
    /// The chunk's coordinates in the grid of the dataset.
    pub coordinates: Vec<u64>,
    /// The position and the encoding of the stored bytes.
    pub payload: Payload,
}

impl TetFile {
    /// Returns a machine that reads these `rows` of the chunk index and keeps those of `dataset`. With
    /// `None`, it keeps those of all readable datasets. Row numbers beyond the last row are ignored.
    pub fn read_index(self: &Arc<Self>, rows: Range<u64>, dataset: Option<usize>) -> ReadIndex {
        ReadIndex::new(Arc::clone(self), rows, dataset)
    }
}

/// A machine that reads rows of the index, in the order of the file; made by [`TetFile::read_index`].
///
/// Rows of datasets that cannot be read are left out. A row with an impossible payload is an error. So is
/// a row whose dataset or chunk does not exist, which queries skip. If a chunk has several rows, each is an
/// entry.
#[derive(Debug)]
pub struct ReadIndex {
    file: Arc<TetFile>,
    rows: Range<u64>,
    dataset: Option<usize>,
}

impl ReadIndex {
    fn new(file: Arc<TetFile>, rows: Range<u64>, dataset: Option<usize>) -> Self {
        let end = rows.end.min(file.index.row_count);
        Self { file, rows: rows.start.min(end)..end, dataset }
    }

    /// Returns the entry of a row; `None` for a row of another dataset, or of one that cannot be read.
    fn entry(&self, row: &Row, object: &Arc<str>) -> Result<Option<IndexEntry>> {
        let id = usize::try_from(row.dataset()).unwrap_or(usize::MAX);
        if self.dataset.is_some_and(|wanted| wanted != id) {
            return Ok(None);
        }
        let datasets = self.file.datasets();
        let dataset = datasets.get(id).ok_or_else(|| row.no_such_dataset(datasets.len()))?;
        let Ok(grid) = dataset.grid() else { return Ok(None) };
        let about = |error: Error| error.about(&format!("dataset \"{}\"", dataset.name()));
        let coordinates = row.coordinates(grid).map_err(about)?.to_vec();
        let payload = self.file.payload(id, &coordinates, row, object)?;
        Ok(Some(IndexEntry { dataset: id, coordinates, payload }))
    }
}

impl Machine for ReadIndex {
    type Output = Vec<IndexEntry>;

    fn subject(&self) -> &'static str {
        "index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        let bytes = self.file.index.bytes_of(self.rows.clone());
        let replies = replies.into_bytes();
        // Without replies, this is the first step.
        let Some(rows) = replies.first() else {
            return Ok(if self.rows.is_empty() { Step::Done(vec![]) } else { Step::read([bytes]) });
        };
        let object: Arc<str> = "".into();
        let rows = Row::parse_each(bytes.start, rows);
        let entries = rows.map(|row| row.and_then(|row| self.entry(&row, &object)).transpose());
        entries.flatten().collect::<Result<_>>().map(Step::Done)
    }
}
