//! From chunk numbers to the byte ranges of their payloads.
//!
//! ```text
//!  expected rows ──read──▶ does each row fit its chunk? ───yes──▶ Done
//!                                    │ no (once per file)
//!                                    ▼
//!                     read the whole index, build the row map ──▶ read the mapped rows ──▶ Done
//! ```
//!
//! The usual file costs one round trip for the rows of all chunks, 104 bytes each. The row map belongs to the
//! [`TetFile`], so a file in another order pays for its whole index once.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::file::TetFile;
use super::index::{Row, RowMap};
use gridfusion_core::format::{Layer, Machine, Payload, Replies, Step, StoredChunk};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::{Error, Result};

impl TetFile {
    /// Returns a machine that finds where `chunks` of `dataset` are stored, in the given order. `chunks` are
    /// row-major chunk numbers.
    ///
    /// # Errors
    /// The errors of [`Dataset::grid`](super::Dataset::grid) for a dataset that cannot be read, and `Usage`
    /// for an unknown id.
    pub fn locate(self: &Arc<Self>, dataset: usize, chunks: Vec<u64>) -> Result<Locate> {
        let grid = self.dataset(dataset)?.grid()?.clone();
        Ok(Locate::new(Arc::clone(self), dataset, grid, chunks))
    }
}

/// A machine that finds where chunks of one dataset are stored; made by [`TetFile::locate`].
#[derive(Debug)]
pub struct Locate {
    file: Arc<TetFile>,
    dataset: usize,
    grid: ChunkGrid,
    chunks: Vec<u64>,
    state: LocateState,
}

#[derive(Debug)]
enum LocateState {
    Start,
    /// The rows requested by position, one per chunk, as merged ranges.
    Expected(Vec<Range<u64>>),
    /// The whole index is requested.
    WholeIndex,
    /// The rows requested through the map, as merged ranges.
    Mapped(Vec<Range<u64>>),
}

impl Machine for Locate {
    type Output = Vec<StoredChunk>;

    fn subject(&self) -> &'static str {
        "index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        let replies = replies.into_bytes();
        match std::mem::replace(&mut self.state, LocateState::Start) {
            LocateState::Start => self.start(),
            LocateState::Expected(ranges) => {
                let rows = self.rows(&ranges, &replies)?;
                let as_expected = self.chunks.iter().zip(&rows).all(|(&chunk, row)| {
                    row.is_for(self.dataset, &self.grid.chunk_coordinates(chunk))
                });
                if as_expected { self.finish(&rows) } else { Ok(self.read_whole_index()) }
            }
            LocateState::WholeIndex => {
                let index = replies.first().map(AsRef::as_ref).unwrap_or_default();
                let map = Arc::new(RowMap::build(index, self.file.datasets(), &self.file.index)?);
                // Another query may have built the map meanwhile; then its map is used.
                let map = Arc::clone(self.file.row_map.get_or_init(|| map));
                self.read_mapped(&map)
            }
            LocateState::Mapped(ranges) => {
                let rows = self.rows(&ranges, &replies)?;
                self.finish(&rows)
            }
        }
    }
}

impl Locate {
    pub(super) fn new(
        file: Arc<TetFile>,
        dataset: usize,
        grid: ChunkGrid,
        chunks: Vec<u64>,
    ) -> Self {
        Self { file, dataset, grid, chunks, state: LocateState::Start }
    }

    /// Requests the expected rows, or the mapped ones if an earlier query has built the map.
    fn start(&mut self) -> Result<Step<Vec<StoredChunk>>> {
        if let Some(map) = self.file.row_map.get().cloned() {
            return self.read_mapped(&map);
        }
        let index = &self.file.index;
        let rows: Option<Vec<u64>> =
            self.chunks.iter().map(|&chunk| index.expected_row(self.dataset, chunk)).collect();
        let Some(rows) = rows else { return Ok(self.read_whole_index()) };
        let ranges = merge_neighbours(&rows);
        let step = Step::read(self.byte_ranges(&ranges));
        self.state = LocateState::Expected(ranges);
        Ok(step)
    }

    fn read_whole_index(&mut self) -> Step<Vec<StoredChunk>> {
        self.state = LocateState::WholeIndex;
        let index = &self.file.index;
        Step::read([index.bytes_of(0..index.row_count)])
    }

    /// Requests the rows that the map has for the chunks.
    ///
    /// # Errors
    /// `Corrupt` if a chunk has no row: its cells are unknown, and not the fill value.
    fn read_mapped(&mut self, map: &RowMap) -> Result<Step<Vec<StoredChunk>>> {
        let row_of = |&chunk: &u64| {
            map.row(self.dataset, chunk).ok_or_else(|| {
                let chunk = self.file.chunk_name(self.dataset, &self.grid.chunk_coordinates(chunk));
                let message = format!("no row for {chunk}; its cells are missing");
                Error::corrupt("chunk index", self.file.index.bytes_of(0..0).start, message)
            })
        };
        let rows = self.chunks.iter().map(row_of).collect::<Result<Vec<u64>>>()?;
        let ranges = merge_neighbours(&rows);
        let step = Step::read(self.byte_ranges(&ranges));
        self.state = LocateState::Mapped(ranges);
        Ok(step)
    }

    fn byte_ranges(&self, rows: &[Range<u64>]) -> Vec<Range<u64>> {
        rows.iter().map(|rows| self.file.index.bytes_of(rows.clone())).collect()
    }

    /// Parses the rows of each range, in order: one per chunk.
    fn rows(&self, ranges: &[Range<u64>], replies: &[Bytes]) -> Result<Vec<Row>> {
        let mut rows = Vec::with_capacity(self.chunks.len());
        for (range, reply) in ranges.iter().zip(replies) {
            let base = self.file.index.bytes_of(range.clone()).start;
            for row in Row::parse_each(base, reply) {
                rows.push(row?);
            }
        }
        if rows.len() != self.chunks.len() {
            return Err(Error::internal("index rows were requested and not delivered"));
        }
        Ok(rows)
    }

    /// Returns the chunks, each as one whole layer; fails if a row has a wrong length, codec or position.
    fn finish(&self, rows: &[Row]) -> Result<Step<Vec<StoredChunk>>> {
        let object: Arc<str> = "".into();
        let stored = self.chunks.iter().zip(rows).map(|(&chunk, row)| {
            let coordinates = self.grid.chunk_coordinates(chunk);
            let values = self.file.payload(self.dataset, &coordinates, row, &object)?;
            let layer = Layer::whole(values);
            Ok(StoredChunk::new(vec![layer]))
        });
        stored.collect::<Result<_>>().map(Step::Done)
    }
}

impl TetFile {
    /// Returns the payload of a chunk from its index `row`.
    pub(super) fn payload(
        &self,
        dataset: usize,
        coordinates: &[u64],
        row: &Row,
        object: &Arc<str>,
    ) -> Result<Payload> {
        let of = self.dataset(dataset)?;
        let (grid, element) = (of.grid()?, of.element()?);
        let cells: u64 = grid.extents(coordinates).iter().product();
        row.payload(object, cells * element.size(), self.payload_end)
            .map_err(|error| error.about(&self.chunk_name(dataset, coordinates)))
    }

    fn chunk_name(&self, dataset: usize, coordinates: &[u64]) -> String {
        format!("chunk {coordinates:?} of dataset \"{}\"", self.name_of(dataset))
    }
}

/// Merges row numbers into ranges, in the same order; consecutive rows share a range. The rows 4, 5, 6, 2 are
/// 4..7 and 2..3.
fn merge_neighbours(rows: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &row in rows {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end = row + 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::merge_neighbours;

    #[test]
    fn rows_in_a_row_are_read_together() {
        assert_eq!(merge_neighbours(&[3, 4, 5, 9, 8, 9]), [3..6, 9..10, 8..10]);
        assert_eq!(merge_neighbours(&[]), []);
    }
}
