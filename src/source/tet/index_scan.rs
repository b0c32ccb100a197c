//! The chunk index of a file from its beginning to its end, a part at a time.

use std::ops::Range;

use super::reader::TetReader;
use crate::error::Result;
use crate::format::tet::IndexEntry;

/// Rows read at first, for those who want a few chunks only.
const FIRST_ROWS: u64 = 256;
/// Rows of the index read at once, in the end: less than a megabyte.
const MOST_ROWS: u64 = 8192;

/// Lists the stored chunks of a file in the order of its index, in memory that does not grow with their
/// number.
#[derive(Debug, Clone)]
pub struct IndexScan {
    file: TetReader,
    /// Only its chunks are wanted.
    dataset: Option<usize>,
    /// Rows still to be read.
    rows: Range<u64>,
    at_once: u64,
}

impl IndexScan {
    /// Lists the stored chunks of a dataset, by id, or of all datasets that can be read.
    pub fn new(file: &TetReader, dataset: Option<usize>) -> Self {
        let rows = 0..file.tet().index_rows();
        Self { file: file.clone(), dataset, rows, at_once: FIRST_ROWS }
    }

    /// The next chunks, one at least; `None` after the last.
    ///
    /// # Errors
    /// `Corrupt` for a row that cannot be right, see [`ReadIndex`](crate::format::tet::ReadIndex).
    pub async fn next(&mut self) -> Result<Option<Vec<IndexEntry>>> {
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
