//! The group of every row of a block, for accumulators, which work row by row.
//!
//! Blocks of one chunk, and chunks of one shape, mostly repeat the same pattern of groups; the last
//! one is kept.

use std::ops::Range;

use super::group_table::GroupTable;
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask};
use crate::plan::Block;

/// What the pattern of a block depends on: per axis in a key the chunk and the positions, per other
/// axis only how many positions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisPattern {
    Keyed { chunk: u64, positions: Range<u64> },
    Free { count: u64 },
}

/// Finds the places of rows in a [`GroupTable`].
#[derive(Debug, Default)]
pub struct RowPlaces {
    pattern: Vec<AxisPattern>,
    places: Vec<usize>,
    /// Per axis the chunk and the place of each selected element.
    axes: Vec<Option<(u64, Vec<usize>)>>,
}

impl RowPlaces {
    /// Per row of `block`, in order, the place of its group; and whether these are the places given
    /// last time.
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

    /// Goes from the places of the outer axes to those of the outer axes and this one.
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
                    *held = Some((*chunk, places_of(axis, table, grid, task)));
                }
                let Some((_, places)) = held else { return };
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

/// The places of the selected elements of an axis in a chunk, in order.
fn places_of(axis: usize, table: &GroupTable, grid: &ChunkGrid, task: &ChunkTask) -> Vec<usize> {
    let mut places = Vec::with_capacity(AxisSelection::count(&task.selection[axis]) as usize);
    for segment in table.segments(axis, grid, task) {
        places.extend((0..segment.len).map(|at| segment.places.at(at)));
    }
    places
}
