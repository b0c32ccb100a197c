//! In which order the rows of a plan come, and how to read them in another.
//!
//! Chunks come in row-major order of their grid, the cells of a chunk in row-major order of the chunk.
//! That is an order of rows only where no chunk boundary gets in the way; where one does, the chunks of
//! a *slab* are held together and their rows interleaved:
//!
//! ```text
//!                 one by one           in order of time
//!   chunks        ┌─┐ ┌─┐              ┌─┬─┐              slab of two chunks: each of its times is
//!   time 0        │1│ │3│              │1 2│              read across them before the next
//!   time 1        │2│ │4│              │3 4│
//!                 └─┘ └─┘              └─┴─┘
//! ```

use std::ops::Range;

use super::scan_plan::{ScanPlan, lens};
use crate::grid::{ravel, unravel};

/// How much of an array must be held together to read its rows in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabShape {
    /// Chunks of a slab have the coordinates on this many leading axes in common.
    pub axes: usize,
    /// Chunks of the largest slab, at most.
    pub chunks: u64,
    /// Cells of these chunks, at most.
    pub cells: u64,
}

/// An order in which rows are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadOrder {
    /// Of the leading axes by which rows are in order, whether they descend.
    descending: Vec<bool>,
    /// How many places in the cross product of touched chunks a slab takes.
    places_per_slab: u64,
}

impl ScanPlan {
    /// Of the leading axes by which the rows of each partition are in order whether they descend: by
    /// index on the first, among equals on the second, and so on.
    pub fn order(&self) -> Vec<bool> {
        match &self.order {
            Some(order) => order.descending.clone(),
            None => vec![false; self.ordered_axes()],
        }
    }

    /// The order in which rows must be read, if chunks cannot simply be read one by one.
    pub fn reordered(&self) -> Option<&[bool]> {
        self.order.as_ref().map(|order| order.descending.as_slice())
    }

    /// How many leading axes chunks that are read one by one are in order of. Chunks across an axis
    /// break the order of the axes before it, unless a chunk holds one index of those.
    fn ordered_axes(&self) -> usize {
        let rank = self.grid.rank();
        for axis in 0..rank {
            if self.touched[axis + 1..].iter().all(|chunks| chunks.len() <= 1) {
                return rank;
            }
            if self.is_thick(axis) {
                return axis;
            }
        }
        rank
    }

    /// Whether a chunk holds several selected indices of `axis`.
    fn is_thick(&self, axis: usize) -> bool {
        let selected = &self.selection.axes()[axis];
        let several = |&chunk: &u64| selected.within(self.grid.axis_range(axis, chunk)).count() > 1;
        self.touched[axis].iter().any(several)
    }

    /// The same rows in order of the leading axes: per axis whether its index descends. The plan must
    /// have no limit, which would be one on other rows.
    #[must_use = "the plan is not changed in place"]
    pub fn in_order(&self, descending: Vec<bool>) -> Self {
        let mut plan = Self { max_partitions: self.partition_count(), ..self.clone() };
        let before = self.reordered().unwrap_or_default();
        let is = |order: &[bool], axis: usize| order.get(axis).copied().unwrap_or_default();
        let turned: Vec<bool> =
            (0..self.grid.rank()).map(|axis| is(&descending, axis) != is(before, axis)).collect();
        for (chunks, _) in plan.touched.iter_mut().zip(&turned).filter(|(_, turned)| **turned) {
            chunks.reverse();
        }
        if let Some(kept) = &mut plan.kept {
            let lens = lens(&self.touched);
            for place in kept.iter_mut() {
                let mut at = unravel(*place, &lens);
                for (axis, _) in turned.iter().enumerate().filter(|(_, turned)| **turned) {
                    at[axis] = lens[axis] - 1 - at[axis];
                }
                *place = ravel(&at, &lens);
            }
            kept.sort_unstable();
        }
        let slab = self.slab_shape(descending.len());
        let places_per_slab = lens(&self.touched)[slab.axes..].iter().product();
        plan.order = Some(ReadOrder { descending, places_per_slab });
        plan.cut = match self.cut.along {
            // Partitions that are ranges stay the same ones: others may rely on it.
            Some(axis) if turned[axis] => self.cut.turned_round(),
            Some(_) => self.cut.clone(),
            None => plan.cut(),
        };
        plan
    }

    /// What must be held together for rows in order of the first `ordered` axes.
    pub fn slab_shape(&self, ordered: usize) -> SlabShape {
        let rank = self.grid.rank();
        // Chunks across the axes after the first thick one are interleaved.
        let thick = (0..ordered).find(|&axis| self.is_thick(axis));
        let axes = thick.map_or(rank, |axis| axis + 1);
        let extents = (0..rank).map(|axis| {
            let extents = self.touched[axis].iter().map(|&chunk| {
                let range = self.grid.axis_range(axis, chunk);
                range.end - range.start
            });
            if axis < axes { extents.max().unwrap_or(0) } else { extents.sum() }
        });
        let chunks =
            lens(&self.touched)[axes..].iter().fold(1, |all: u64, &len| all.saturating_mul(len));
        SlabShape { axes, chunks, cells: extents.fold(1, u64::saturating_mul) }
    }

    /// The tasks of the slab with which `tasks` begin.
    pub fn slab(&self, tasks: Range<u64>) -> Range<u64> {
        let slab = |task: u64| self.place(task) / self.places_per_slab();
        let differs = |task: &u64| slab(*task) != slab(tasks.start);
        tasks.start..tasks.clone().find(differs).unwrap_or(tasks.end)
    }

    /// How many places in the cross product of touched chunks a slab takes.
    pub(crate) fn places_per_slab(&self) -> u64 {
        self.order.as_ref().map_or(1, |order| order.places_per_slab)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::{AxisSelection, ChunkGrid, for_each_run};
    use crate::plan::scan_plan::ScanRequest;

    /// Rows are in order of as many leading axes as the plan says, and of no more in plans that it
    /// says nothing about for a reason.
    #[test]
    fn rows_are_in_the_order_that_is_promised() {
        let mut rng = StdRng::seed_from_u64(15);
        let (mut whole, mut part, mut none) = (0, 0, 0);
        for _ in 0..3_000 {
            let rank = rng.random_range(1..=4);
            let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
            let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let mut request = ScanRequest { partitions: 2, ..ScanRequest::all(&grid) };
            for (axis, &len) in shape.iter().enumerate() {
                let mask: Vec<bool> = (0..len).map(|_| rng.random_bool(0.7)).collect();
                request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
            }
            let plan = ScanPlan::new(grid, request).unwrap();
            let ordered = plan.ordered_axes();
            let mut further = true;
            for partition in 0..plan.partition_count() {
                let mut indices: Vec<Vec<u64>> = Vec::new();
                for task in plan.tasks(partition).map(|task| plan.task(task)) {
                    let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
                    let start =
                        |axis: usize| plan.grid().axis_range(axis, task.coordinates[axis]).start;
                    for_each_run(&task.selection, |run| {
                        indices.extend(run.map(|cell| {
                            let at = unravel(cell, &extents);
                            (0..rank).map(|axis| start(axis) + at[axis]).collect::<Vec<u64>>()
                        }));
                    });
                }
                assert!(indices.is_sorted_by_key(|index| index[..ordered].to_vec()));
                further &=
                    indices.is_sorted_by_key(|index| index[..rank.min(ordered + 1)].to_vec());
            }
            match ordered {
                0 => none += 1,
                _ if ordered == rank => whole += 1,
                _ => part += 1,
            }
            // Two partitions can hide the break; otherwise what is not promised does not hold.
            let rows = plan.rows(None);
            assert!(ordered == rank || !further || plan.partition_count() > 1 || rows <= 1);
        }
        assert!(whole > 200 && part > 50 && none > 200, "{whole} {part} {none}");
    }
}
