//! [`CellNumber`]: the place of a cell in an array as one number, from which the index along each axis follows.
//!
//! ```text
//!   chunk 5, cell 70 of the chunk      5 × 2³² + 70
//! ```
//!
//! The loops need no division: rows of a chunk move the lower half. Numbers of one chunk ascend in row-major order.

use crate::grid::{ChunkGrid, ChunkTask};

/// The number of a cell: its chunk in the upper 32 bits, and its place in the chunk in the lower ones.
///
/// Numbers are positive as signed integers, because processors compare these faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellNumber(pub u64);

impl CellNumber {
    /// Stands for no cell, and is greater than all others.
    pub const NONE: Self = Self(i64::MAX as u64);

    /// Whether every cell of a grid has a number.
    pub fn fit(grid: &ChunkGrid) -> bool {
        let mut edges = grid.chunk_shape().zip(grid.shape()).map(|(edge, len)| edge.min(*len));
        let cells = edges.try_fold(1, u64::checked_mul);
        grid.chunks() < 1 << 31 && cells.is_some_and(|cells| cells <= 1 << 32)
    }

    /// Returns the number of the first cell of a chunk.
    pub(super) fn first_of(task: &ChunkTask) -> u64 {
        task.chunk_number << 32
    }

    /// Returns the index along `axis`.
    pub fn index(self, grid: &ChunkGrid, axis: usize) -> u64 {
        let (mut chunk, mut at) = (self.0 >> 32, self.0 & u64::from(u32::MAX));
        let axes = grid.chunks_per_axis().iter().enumerate().skip(axis).rev();
        for (inner, chunks) in axes {
            let range = grid.axis_range(inner, chunk % chunks);
            let extent = (range.end - range.start).max(1);
            if inner == axis {
                return range.start + at % extent;
            }
            (chunk, at) = (chunk / chunks, at / extent);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{AxisSelection, unravel};

    #[test]
    fn numbers_tell_the_index_along_each_axis() {
        let grid = ChunkGrid::new(&[5, 7, 4], &[2, 3, 4]).unwrap();
        assert!(CellNumber::fit(&grid));
        let mut seen = 0;
        for chunk in 0..grid.chunks() {
            let task = ChunkTask::whole(&grid, chunk);
            let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
            for at in 0..task.cells() {
                let number = CellNumber(CellNumber::first_of(&task) + at);
                for (axis, at) in unravel(at, &extents).into_iter().enumerate() {
                    let start = grid.axis_range(axis, task.coordinates[axis]).start;
                    assert_eq!(number.index(&grid, axis), start + at);
                }
                assert!(number < CellNumber::NONE);
                seen += 1;
            }
        }
        assert_eq!(seen, grid.cells());
    }

    #[test]
    fn large_grids_have_no_numbers() {
        let grid = |len, chunk| ChunkGrid::new(&[len, 4], &[chunk, 4]).unwrap();
        assert!(CellNumber::fit(&grid((1 << 31) - 1, 1)));
        assert!(!CellNumber::fit(&grid(1 << 31, 1)));
        assert!(!CellNumber::fit(&grid(1 << 40, (1 << 30) + 1)));
        assert!(CellNumber::fit(&grid(1 << 40, 1 << 30)));
    }
}
