//! A chunk and the groups of its cells.

use super::group_table::GroupTable;
use super::kernel::Segment;
use crate::grid::{ChunkGrid, ChunkTask};

/// A chunk and where its cells belong in a table of groups.
#[derive(Debug, Clone, Copy)]
pub struct GroupedChunk<'a> {
    /// Where the groups are.
    pub table: &'a GroupTable,
    /// How the array is cut.
    pub grid: &'a ChunkGrid,
    /// The chunk and its selected cells.
    pub task: &'a ChunkTask,
}

impl GroupedChunk<'_> {
    /// Per axis the selected cells and their groups.
    pub(super) fn segments(&self) -> Vec<Vec<Segment>> {
        let segments = |axis| self.table.segments(axis, self.grid, self.task);
        (0..self.task.selection.len()).map(segments).collect()
    }

    /// The place of the group that all selected cells are in, if there is one.
    pub(super) fn only_place(&self) -> Option<usize> {
        self.table.only_place(self.grid, self.task)
    }
}
