//! The group of every row of a block, for accumulators that work row by row.
//!
//! Blocks of one chunk, and chunks of one shape, mostly repeat one pattern of groups, so the last
//! pattern is kept.
//!
//! The places of a block are built axis by axis, the outermost first:
//!
//! ```text
//!   GROUP BY month, station     start          0
//!   2 months, stride 3          month          0 3
//!   4 levels, in no key         each 4 times   0 0 0 0 3 3 3 3
//!   3 stations, stride 1        + station      0 1 2 0 1 2 … 3 4 5 3 4 5
//! ```

use std::ops::Range;

use super::group_table::GroupTable;
use crate::grid::{ChunkGrid, ChunkTask};
use crate::plan::Block;

/// An axis' part of the pattern of a block. For an axis in a key, the chunk and the positions matter;
/// for another axis, only the number of positions. All tasks at one chunk coordinate must select the same
/// indices, as those of a plan do: the selection is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisPattern {
    Keyed { chunk: u64, positions: Range<u64> },
    Free { count: u64 },
}

/// A converter of rows to their groups' places in a [`GroupTable`].
#[derive(Debug, Default)]
pub struct RowPlaces {
    /// The pattern of the last block, per axis; empty before the first one.
    pattern: Vec<AxisPattern>,
    /// The place of each row of the last block.
    places: Vec<usize>,
    /// For each axis in a key, the last chunk, and the place of each selected index in it.
    axes: Vec<Option<(u64, Vec<usize>)>>,
}

impl RowPlaces {
    /// Returns the place of the group of each row of `block`, in order. Also returns whether the places
    /// are the same as in the last call.
    pub fn of(
        &mut self,
        table: &GroupTable,
        grid: &ChunkGrid,
        task: &ChunkTask,
        block: &Block,
    ) -> (&[usize], bool) {
        let rank = task.selection.len();
        let pattern: Vec<AxisPattern> = (0..rank)
            .map(|axis| {
                let positions = block.positions(axis);
                if table.is_keyed(axis) {
                    AxisPattern::Keyed { chunk: task.coordinates[axis], positions }
                } else {
                    AxisPattern::Free { count: positions.end - positions.start }
                }
            })
            .collect();
        let repeated = pattern == self.pattern;
        if !repeated {
            self.axes.resize(rank, None);
            self.places.clear();
            self.places.push(0);
            for (axis, pattern) in pattern.iter().enumerate() {
                self.expand(axis, pattern, table, grid, task);
            }
            self.pattern = pattern;
        }
        (&self.places, repeated)
    }

    /// Extends the places of the outer axes by those of this axis.
    fn expand(
        &mut self,
        axis: usize,
        pattern: &AxisPattern,
        table: &GroupTable,
        grid: &ChunkGrid,
        task: &ChunkTask,
    ) {
        match pattern {
            AxisPattern::Free { count: 1 } => {}
            AxisPattern::Free { count } => {
                let repeat = |&place: &usize| std::iter::repeat_n(place, *count as usize);
                self.places = self.places.iter().flat_map(repeat).collect();
            }
            AxisPattern::Keyed { chunk, positions } => {
                let held = &mut self.axes[axis];
                if held.as_ref().is_none_or(|(held, _)| held != chunk) {
                    *held = Some((*chunk, table.parts_of(axis, grid, task)));
                }
                let Some((_, places)) = held else { return };
                // Every place so far is followed by those of this axis' positions, relative to it.
                let inner = &places[positions.start as usize..positions.end as usize];
                let mut expanded = Vec::with_capacity(self.places.len() * inner.len());
                for outer in &self.places {
                    expanded.extend(inner.iter().map(|place| outer + place));
                }
                self.places = expanded;
            }
        }
    }
}
