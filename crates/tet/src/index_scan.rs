//! A sequential scan of the chunk index of a file.
//!
//! ```text
//!   index rows   0 ─── 256 ─────── 768 ─────────────── 1792 ─── … ─── 8192 rows per read
//!                read 1   read 2         read 3
//! ```
//!
//! Tables of facts and `gridfusion info` read rows so. A row of no chunk is an error for them, because they report on the
//! index. Queries skip such a row.

use std::ops::Range;

use super::reader::TetReader;
use crate::bytes::IndexEntry;
use gridfusion_core::Result;

/// Rows of the first read, which is small because some callers need only a few chunks.
const FIRST_ROWS: u64 = 256;
/// The most rows per read: less than a megabyte, because a row has 104 bytes.
const MOST_ROWS: u64 = 8192;

/// A reader of the stored chunks in the order of the chunk index. Its memory does not grow with the
/// number of chunks.
#[derive(Debug, Clone)]
pub struct IndexScan {
    file: TetReader,
    /// The id of the only dataset to list; `None` lists all readable datasets.
    dataset: Option<usize>,
    /// Rows still to be read.
    rows: Range<u64>,
    /// The number of rows of the next read, which doubles up to `MOST_ROWS`.
    at_once: u64,
}

impl IndexScan {
    /// Lists the stored chunks of the dataset with this id, or of all readable datasets.
    pub fn new(file: &TetReader, dataset: Option<usize>) -> Self {
        let rows = 0..file.tet().index_rows();
        Self { file: file.clone(), dataset, rows, at_once: FIRST_ROWS }
    }

    /// Returns the next chunks, at least one; `None` after the last.
    ///
    /// # Errors
    /// `Corrupt` for an invalid row, see [`ReadIndex`](crate::bytes::ReadIndex).
    pub async fn next(&mut self) -> Result<Option<Vec<IndexEntry>>> {
        // Reads that find no chunk of the wanted dataset are followed by the next one.
        while !self.rows.is_empty() {
            let end = self.rows.end.min(self.rows.start.saturating_add(self.at_once));
            let rows = std::mem::replace(&mut self.rows.start, end)..end;
            self.at_once = MOST_ROWS.min(2 * self.at_once);
            let entries = self.file.run(self.file.tet().read_index(rows, self.dataset)).await?;
            if !entries.is_empty() {
                return Ok(Some(entries));
            }
        }
        Ok(None)
    }
}
