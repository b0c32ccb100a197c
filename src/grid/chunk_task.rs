//! A chunk to read, with its selected cells.

use super::AxisSelection;

/// One chunk to read and the cells to take from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkTask {
    /// The chunk's row-major number in the grid.
    pub chunk_number: u64,
    /// The chunk's coordinates in the grid.
    pub coordinates: Vec<u64>,
    /// Per axis the selected indices, relative to the chunk; the axis lengths are the chunk's extents.
    pub selection: Vec<AxisSelection>,
    /// Rows that this task yields.
    pub rows: u64,
}

impl ChunkTask {
    /// Returns the number of cells in the chunk, selected or not.
    pub fn cells(&self) -> u64 {
        self.selection.iter().map(AxisSelection::len).product()
    }
}
