//! A chunk to read, with its selected cells.

use super::{AxisSelection, ChunkGrid};

/// One chunk to read and the cells to take from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkTask {
    /// The chunk's row-major number in the grid. Chunks of a grid that is not [numbered](ChunkGrid::is_numbered) may share it.
    pub chunk_number: u64,
    /// The chunk's coordinates in the grid.
    pub coordinates: Vec<u64>,
    /// Per axis the selected indices, relative to the chunk; the axis lengths are the chunk's extents.
    pub selection: Vec<AxisSelection>,
    /// Rows that this task yields.
    pub rows: u64,
}

impl ChunkTask {
    /// Returns the task that takes all cells of a chunk.
    ///
    /// ```
    /// use gridfusion_core::grid::{ChunkGrid, ChunkTask};
    ///
    /// let grid = ChunkGrid::new(&[5, 7], &[2, 3])?;
    /// assert_eq!(ChunkTask::whole(&grid, 8).cells(), 1); // the chunk at the end of both axes
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    pub fn whole(grid: &ChunkGrid, chunk_number: u64) -> Self {
        let coordinates = grid.chunk_coordinates(chunk_number);
        let extents = grid.extents(&coordinates);
        Self {
            chunk_number,
            rows: extents.iter().product(),
            selection: extents.into_iter().map(AxisSelection::all).collect(),
            coordinates,
        }
    }

    /// Returns the number of cells in the chunk, selected or not.
    pub fn cells(&self) -> u64 {
        self.selection.iter().map(AxisSelection::len).product()
    }
}
