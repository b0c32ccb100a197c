//! A chunk with the groups of its cells.

use super::batch::Segment;
use super::group_table::GroupTable;
use crate::grid::{ChunkGrid, ChunkTask};

/// A chunk, with the table that holds the groups of its cells.
#[derive(Debug, Clone, Copy)]
pub struct GroupedChunk<'a> {
    /// The table of groups.
    pub table: &'a GroupTable,
    /// The chunk grid of the array.
    pub grid: &'a ChunkGrid,
    /// The chunk and its selected cells.
    pub task: &'a ChunkTask,
}

impl GroupedChunk<'_> {
    /// Returns the selected cells of each axis, with the places of their groups.
    pub(super) fn segments(&self) -> Vec<Vec<Segment>> {
        let segments = |axis| self.table.segments(axis, self.grid, self.task);
        (0..self.task.selection.len()).map(segments).collect()
    }

    /// Returns the place of the only group in which the selected cells are; `None` if they are in
    /// several.
    pub(super) fn only_place(&self) -> Option<usize> {
        self.table.only_place(self.grid, self.task)
    }
}
