//! [`ChunkColumns`]: the chunks of a plan as columns along one axis.
//!
//! A *column* is the chunks that differ only along the axis. Windows that move along it take the chunks of a column one
//! after the other:
//!
//! ```text
//!              station             columns along time       chunks of column 1
//!   time    ┌───┬───┬───┐
//!           │ 0 │ 1 │ 2 │            0     1     2               1
//!           ├───┼───┼───┤
//!           │ 3 │ 4 │ 5 │                                        4
//!           └───┴───┴───┘
//! ```

use std::ops::Range;

use super::scan_plan::ScanPlan;
use super::task::TaskNumber;

/// The chunks of a plan along one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkColumns {
    /// The number of columns on the axes before the axis, and behind it.
    outer: u64,
    inner: u64,
    /// The first selected position of each chunk along the axis, and the end of the last one.
    borders: Vec<u64>,
}

impl ScanPlan {
    /// Returns the chunks as columns along `axis`. `None` if chunks or cells are left out, or if the plan reads them in
    /// another order than that of the grid.
    pub fn chunk_columns(&self, axis: usize) -> Option<ChunkColumns> {
        if !self.is_selection() || self.reordered().is_some() {
            return None;
        }
        let lens = self.chunks.lens();
        let selected = &self.selection().axes()[axis];
        let mut borders = vec![0];
        let mut end = 0;
        for chunk in &self.chunks.axes()[axis] {
            end += selected.within(self.grid().axis_range(axis, *chunk)).count();
            borders.push(end);
        }
        Some(ChunkColumns {
            outer: lens[..axis].iter().product(),
            inner: lens[axis + 1..].iter().product(),
            borders,
        })
    }
}

impl ChunkColumns {
    /// Returns the number of columns.
    pub fn count(&self) -> u64 {
        self.outer * self.inner
    }

    /// Returns the number of chunks of each column.
    pub fn len(&self) -> usize {
        self.borders.len() - 1
    }

    /// Whether columns have no chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions of a chunk among the selected indices of the axis.
    pub fn positions(&self, chunk: usize) -> Range<u64> {
        self.borders[chunk]..self.borders[chunk + 1]
    }

    /// Returns the chunk with a position among the selected indices of the axis.
    pub fn chunk_at(&self, position: u64) -> usize {
        self.borders.partition_point(|border| *border <= position).saturating_sub(1)
    }

    /// Returns the task of a chunk of a column.
    pub fn task(&self, column: u64, chunk: usize) -> TaskNumber {
        let (outer, inner) = (column / self.inner, column % self.inner);
        TaskNumber::new((outer * self.len() as u64 + chunk as u64) * self.inner + inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{AxisSelection, ChunkGrid, Selection};
    use crate::plan::ScanRequest;

    #[test]
    fn columns_hold_each_chunk_once_in_the_order_of_the_axis() {
        let grid = ChunkGrid::new(&[7, 10, 5], &[3, 4, 2]).unwrap();
        let mut selection = Selection::all(&[7, 10, 5]);
        selection.restrict(1, &AxisSelection::from_ranges(10, [1..3, 9..10]));
        let request = ScanRequest { selection, ..ScanRequest::all(&grid) };
        let plan = ScanPlan::new(grid, request).unwrap();
        for axis in 0..3 {
            let columns = plan.chunk_columns(axis).unwrap();
            let mut tasks = vec![];
            for column in 0..columns.count() {
                let mut of_column: Option<Vec<u64>> = None;
                for chunk in 0..columns.len() {
                    let number = columns.task(column, chunk);
                    let task = plan.task(number);
                    let positions = columns.positions(chunk);
                    assert_eq!(task.selection[axis].count(), positions.end - positions.start);
                    assert!(positions.clone().all(|at| columns.chunk_at(at) == chunk));
                    let mut others = task.coordinates.clone();
                    others.remove(axis);
                    assert_eq!(*of_column.get_or_insert_with(|| others.clone()), others);
                    tasks.push(number.get());
                }
            }
            tasks.sort_unstable();
            assert!(tasks.into_iter().eq(0..plan.chunks()));
        }
        assert_eq!(plan.chunk_columns(1).unwrap().positions(1), 2..3);
        assert_eq!(plan.with_limit(Some(3)).chunk_columns(0), None);
    }
}
