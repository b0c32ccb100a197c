//! The chunk index: a header and one fixed-size row per stored chunk.
//!
//! See crates/tet/FORMAT.md, section 6, for the bytes. Rows may be in any order, but known writers use
//! *writer's order*: dataset by dataset, and the chunks of each in row-major order. With 9 chunks of
//! dataset 0 and 4 of dataset 1, chunk 2 of dataset 1 is then row 11. Locating reads this row and compares
//! it with the chunk. If it is the row of another chunk, the whole index is read, and a [`RowMap`] built.
//!
//! The index of a million chunks has 104 MB, so opening does not read it.

use std::ops::Range;
use std::sync::Arc;

use super::directory::Dataset;
use gridfusion_core::format::wire::Reader;
use gridfusion_core::format::{Codec, Location, MemoryBudget, Payload};
use gridfusion_core::grid::{ChunkGrid, MAX_RANK};
use gridfusion_core::{Error, Result};

/// Bytes of the index header.
pub(super) const HEADER_LEN: u64 = 32;
/// Bytes of one index row.
pub(super) const ROW_LEN: u64 = 104;

/// The fields of the header, and the first row of each dataset if the rows are in writer's order.
///
/// Writer's order is that of the datasets, and for each dataset the row-major order of its chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// The absolute offset of row 0.
    rows_at: u64,
    /// The number of rows, which fill the index exactly.
    pub(super) row_count: u64,
    pub(super) memory_budget: MemoryBudget,
    /// The row of each dataset's chunk 0 in writer's order, after all chunks of the datasets before. Empty if
    /// the number of rows shows that the rows have another order.
    first_rows: Vec<u64>,
}

impl Index {
    /// Parses the header of the index whose bytes are `region` of the file.
    ///
    /// # Errors
    /// `Corrupt` for another magic or version, and for a number of rows that does not fill `region`.
    pub(super) fn parse(header: &[u8], region: &Range<u64>, datasets: &[Dataset]) -> Result<Self> {
        let mut reader = Reader::new("chunk index", region.start, header);
        reader.magic(b"TIDX", "a chunk index")?;
        reader.version("index version", &[1])?;
        let count_at = reader.offset();
        let row_count = reader.u64()?;
        let basis_points = reader.u16()?;
        reader.u16()?; // reserved
        let bytes = reader.u32()?;
        let len = row_count.checked_mul(ROW_LEN).and_then(|rows| rows.checked_add(HEADER_LEN));
        let region_len = region.end - region.start;
        if len != Some(region_len) {
            let message =
                format!("{row_count} rows, which do not fill the {region_len} bytes of the index");
            return Err(Error::corrupt("chunk index", count_at, message));
        }
        Ok(Self {
            rows_at: region.start + HEADER_LEN,
            row_count,
            memory_budget: MemoryBudget::new(basis_points, bytes),
            first_rows: first_rows(datasets, row_count),
        })
    }

    /// Returns the row of `chunk` of `dataset` in writer's order; `None` if the number of rows
    /// rules that order out.
    pub(super) fn expected_row(&self, dataset: usize, chunk: u64) -> Option<u64> {
        Some(self.first_rows.get(dataset)? + chunk)
    }

    /// Returns the bytes of `rows` in the file.
    pub(super) fn bytes_of(&self, rows: Range<u64>) -> Range<u64> {
        self.rows_at + rows.start * ROW_LEN..self.rows_at + rows.end * ROW_LEN
    }
}

/// Computes [`Index::first_rows`].
fn first_rows(datasets: &[Dataset], row_count: u64) -> Vec<u64> {
    let mut next = 0_u64;
    let mut first_rows = Vec::with_capacity(datasets.len());
    for dataset in datasets {
        first_rows.push(next);
        let Ok(grid) = dataset.grid() else { return vec![] };
        let Some(after) = next.checked_add(grid.chunks()) else { return vec![] };
        next = after;
    }
    if next == row_count { first_rows } else { vec![] }
}

/// One row of the index, not yet checked against anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The absolute offset of the row itself.
    pub(super) offset: u64,
    /// The id of a dataset, which may not exist.
    dataset: u64,
    /// The chunk's coordinates; those beyond the dataset's rank are unused.
    coordinates: [u64; MAX_RANK],
    /// The absolute offset of the payload.
    payload_offset: u64,
    /// Bytes of the tile after decoding.
    raw_len: u64,
    /// Bytes of the payload in the file.
    stored_len: u64,
    /// The tag of the codec: 0 raw, 1 zstd.
    codec: u32,
}

impl Row {
    /// Parses the rows in `bytes` of the index, which begin at `start` in the file.
    pub(super) fn parse_each(start: u64, bytes: &[u8]) -> impl Iterator<Item = Result<Self>> {
        let offsets = (start..).step_by(ROW_LEN as usize);
        offsets.zip(bytes.chunks_exact(ROW_LEN as usize)).map(|(at, row)| Self::parse(at, row))
    }

    pub(super) fn parse(offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("chunk index", offset, bytes);
        let dataset = reader.u64()?;
        let mut coordinates = [0; MAX_RANK];
        for coordinate in &mut coordinates {
            *coordinate = reader.u64()?;
        }
        Ok(Self {
            offset,
            dataset,
            coordinates,
            payload_offset: reader.u64()?,
            raw_len: reader.u64()?,
            stored_len: reader.u64()?,
            codec: reader.u32()?,
        })
    }

    /// Whether this is the row of the chunk at `coordinates`, whatever the unused coordinates are.
    pub(super) fn is_for(&self, dataset: usize, coordinates: &[u64]) -> bool {
        self.dataset == dataset as u64 && self.coordinates.starts_with(coordinates)
    }

    /// Returns the id of the row's dataset, which may not exist.
    pub(super) fn dataset(&self) -> u64 {
        self.dataset
    }

    /// Returns the coordinates of the row's chunk; fails if they lie outside `grid`.
    pub(super) fn coordinates(&self, grid: &ChunkGrid) -> Result<&[u64]> {
        let coordinates = &self.coordinates[..grid.rank()];
        if grid.chunk_number(coordinates).is_some() {
            return Ok(coordinates);
        }
        let chunks = grid.chunks_per_axis();
        Err(self.corrupt(8, format!("chunk {coordinates:?}, but there are {chunks:?} chunks")))
    }

    /// Returns the error for a row of a dataset that does not exist.
    pub(super) fn no_such_dataset(&self, count: usize) -> Error {
        self.corrupt(0, format!("a chunk of dataset {}, but there are {count}", self.dataset))
    }

    /// Returns the payload of the row; fails unless it decodes to a tile of `tile_len` bytes.
    pub(super) fn payload(
        &self,
        object: &Arc<str>,
        tile_len: u64,
        payload_end: u64,
    ) -> Result<Payload> {
        let codec = self.codec()?;
        self.check_raw_len(tile_len)?;
        self.check_stored_len(&codec)?;
        let at = Location::new(Arc::clone(object), self.span(payload_end)?);
        Ok(Payload::new(at, self.raw_len, codec))
    }

    pub(super) fn codec(&self) -> Result<Codec> {
        match self.codec {
            0 => Ok(Codec::Raw),
            1 => Ok(Codec::Zstd),
            other => Err(self.corrupt(96, format!("codec {other}, expected 0 (raw) or 1 (zstd)"))),
        }
    }

    pub(super) fn check_raw_len(&self, tile_len: u64) -> Result<()> {
        if self.raw_len == tile_len {
            return Ok(());
        }
        let message = format!("a tile of {} bytes, expected {tile_len}", self.raw_len);
        Err(self.corrupt(80, message))
    }

    pub(super) fn check_stored_len(&self, codec: &Codec) -> Result<()> {
        let (stored, raw) = (self.stored_len, self.raw_len);
        if !codec.is_raw() || stored == raw {
            return Ok(());
        }
        Err(self.corrupt(88, format!("{stored} stored bytes of a raw tile of {raw}")))
    }

    /// Returns the bytes of the payload in the file; fails if they go beyond `payload_end`.
    pub(super) fn span(&self, payload_end: u64) -> Result<Range<u64>> {
        let (at, len) = (self.payload_offset, self.stored_len);
        match at.checked_add(len) {
            Some(end) if end <= payload_end => Ok(at..end),
            _ => {
                let message = format!(
                    "a payload of {len} bytes at byte {at}, but payloads end at byte {payload_end}"
                );
                Err(self.corrupt(72, message))
            }
        }
    }

    /// Fails unless the coordinates on axes beyond `rank` are 0.
    pub(super) fn check_unused(&self, rank: usize) -> Result<()> {
        match self.coordinates[rank..].iter().position(|&coordinate| coordinate != 0) {
            None => Ok(()),
            Some(place) => {
                let (axis, found) = (rank + place, self.coordinates[rank + place]);
                let message =
                    format!("coordinate {found} on axis {axis} of {rank}, expected 0; ignored");
                Err(self.corrupt(8 + 8 * axis as u64, message))
            }
        }
    }

    /// Returns the error for the field at this offset in the row.
    fn corrupt(&self, field: u64, message: String) -> Error {
        Error::corrupt("chunk index", self.offset + field, message)
    }
}

/// The row of every chunk, for files whose rows are not in writer's order.
///
/// Holds 16 bytes per row, sorted by chunk. If a chunk has several rows, the map prefers the row at the
/// chunk's place in writer's order: queries without a map find that row. Otherwise the map holds the first
/// of these rows, as the reference implementation does.
#[derive(Debug)]
pub(super) struct RowMap {
    /// Per dataset, sorted: chunk number and row.
    datasets: Vec<Vec<(u64, u64)>>,
}

impl RowMap {
    /// Builds the map in one pass over the bytes of all rows. Leaves out rows of unknown datasets and of
    /// chunks outside their grid.
    pub(super) fn build(rows: &[u8], datasets: &[Dataset], index: &Index) -> Result<Self> {
        let grids: Vec<Option<&ChunkGrid>> =
            datasets.iter().map(|dataset| dataset.grid().ok()).collect();
        let mut map = vec![Vec::new(); datasets.len()];
        for (number, row) in Row::parse_each(0, rows).enumerate() {
            let row = row?;
            let Ok(dataset) = usize::try_from(row.dataset) else { continue };
            let Some(Some(grid)) = grids.get(dataset) else { continue };
            if let Some(chunk) = grid.chunk_number(&row.coordinates[..grid.rank()]) {
                map[dataset].push((chunk, number as u64));
            }
        }
        for (dataset, rows) in map.iter_mut().enumerate() {
            // `false` sorts before `true`: first the row at its expected place, then the first in the index.
            rows.sort_unstable_by_key(|&(chunk, row)| {
                (chunk, index.expected_row(dataset, chunk) != Some(row), row)
            });
            rows.dedup_by_key(|(chunk, _)| *chunk);
            rows.shrink_to_fit();
        }
        Ok(Self { datasets: map })
    }

    /// Returns the row of `chunk`, if there is one.
    pub(super) fn row(&self, dataset: usize, chunk: u64) -> Option<u64> {
        let rows = self.datasets.get(dataset)?;
        let at = rows.binary_search_by_key(&chunk, |(chunk, _)| *chunk).ok()?;
        Some(rows[at].1)
    }
}
