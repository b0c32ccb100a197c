//! [`Pieces`]: the cells of a slab as boxes, whose rows follow one another in the plan's order.
//!
//! A *piece* is a box of selected cells of one chunk whose rows are consecutive. A chunk that is read on
//! its own is one piece. Where chunks are interleaved, the pieces of a slab step through the ordered axes
//! like the digits of an odometer:
//!
//! ```text
//!   ORDER BY time        chunk a   chunk b       pieces
//!     time 0              a0 a0     b0 b0        a0 a0, b0 b0,
//!     time 1              a1 a1     b1 b1        a1 a1, b1 b1
//! ```
//!
//! There is a `Level` per axis that is stepped through, here only time. Its `within` and `group` are both
//! chunks a and b, and `done` goes from 0 to 2. Each step leaves one piece per chunk of the innermost
//! group. When a level is done, the next group of chunks follows; when it has none, the level outside it
//! steps.

use std::ops::Range;

use super::assemble::RowBlocks;
use crate::grid::{AxisSelection, ChunkTask};

/// A box of selected cells of one chunk, whose rows are consecutive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The position of its task in the slab.
    pub task: usize,
    /// Per axis, positions among the chunk's selected indices.
    positions: Vec<Range<u64>>,
    /// Whether the last row comes first.
    pub backwards: bool,
}

impl Piece {
    /// Cuts the piece into blocks of at most `batch_size` rows. If it is backwards, callers must reverse
    /// the rows of each block.
    pub fn blocks(&self, batch_size: u64) -> RowBlocks {
        RowBlocks::within(self.positions.clone(), batch_size, self.backwards)
    }
}

/// An iterator over the pieces of a slab, in the plan's order.
#[derive(Debug)]
pub struct Pieces {
    /// Per task in the plan's order: the number of selected indices per axis, and the chunk's coordinates.
    tasks: Vec<(Vec<u64>, Vec<u64>)>,
    /// Whether each ordered axis descends.
    descending: Vec<bool>,
    batch_size: u64,
    /// The current position on each axis that is stepped through, outermost first.
    levels: Vec<Level>,
    /// The remaining tasks of the current step; they have the coordinates of all levels.
    left: Range<usize>,
}

/// The current position on one axis.
#[derive(Debug)]
struct Level {
    /// The tasks with the coordinates of the outer levels; they are consecutive in the plan's order.
    within: Range<usize>,
    /// The tasks of `within` with this level's current coordinate.
    group: Range<usize>,
    /// How many of the chunk's selected positions on this axis are done, in the direction of reading.
    done: u64,
}

impl Pieces {
    /// Cuts the tasks of a slab into pieces for batches of `batch_size` rows. Rows are in order of the
    /// leading axes: `descending` has one entry per axis.
    pub fn new(tasks: &[&ChunkTask], descending: &[bool], batch_size: u64) -> Self {
        let of_task = |task: &ChunkTask| {
            let counts = task.selection.iter().map(AxisSelection::count).collect();
            (counts, task.coordinates.clone())
        };
        let mut pieces = Self {
            tasks: tasks.iter().copied().map(of_task).collect(),
            descending: descending.to_vec(),
            batch_size,
            levels: vec![],
            left: 0..0,
        };
        pieces.descend(0..tasks.len());
        pieces
    }

    fn rank(&self) -> usize {
        self.tasks.first().map_or(0, |(counts, _)| counts.len())
    }

    /// Returns how many axes are stepped through. The array's last axis never is: its indices are in
    /// order, or in reverse order, within each block.
    fn depth(&self) -> usize {
        self.descending.len().min(self.rank().saturating_sub(1))
    }

    /// Starts the levels below the last one, over the tasks `within`.
    fn descend(&mut self, mut within: Range<usize>) {
        while self.levels.len() < self.depth() {
            let group = self.group(self.levels.len(), within.start, within.end);
            self.levels.push(Level { within, group: group.clone(), done: 0 });
            within = group;
        }
        self.left = within;
    }

    /// Returns the run of tasks from `start` on that have the same coordinate on `axis`.
    fn group(&self, axis: usize, start: usize, end: usize) -> Range<usize> {
        let coordinate = |task: usize| self.tasks.get(task).map(|(_, at)| at[axis]);
        let differs = |task: &usize| coordinate(*task) != coordinate(start);
        start..(start..end).find(differs).unwrap_or(end)
    }

    /// Returns how many positions of the last level make one piece: several if their rows are consecutive.
    ///
    /// That needs a single chunk on this step. If the next axis is ordered too, both must have the same
    /// direction. In a chunk of 10 times × 100 stations, with batches of 300 rows, 3 times make one
    /// piece. So the chunk has 4 pieces, not 10.
    fn stride(&self) -> u64 {
        let Some(level) = self.levels.last() else { return 1 };
        let axis = self.levels.len() - 1;
        let all_ordered = self.descending.len() == self.rank();
        if level.group.len() != 1
            || (all_ordered && self.descending[axis] != self.descending[axis + 1])
        {
            return 1;
        }
        let inner: u64 = self.tasks[level.group.start].0[axis + 1..].iter().product();
        (self.batch_size / inner.max(1)).clamp(1, self.len_of(axis, level) - level.done)
    }

    /// Returns how many positions a level steps through.
    fn len_of(&self, axis: usize, level: &Level) -> u64 {
        self.tasks[level.group.start].0[axis]
    }

    fn piece(&self, task: usize) -> Piece {
        let stride = self.stride();
        let counts = &self.tasks[task].0;
        let mut positions: Vec<Range<u64>> = counts.iter().map(|&count| 0..count).collect();
        for (axis, level) in self.levels.iter().enumerate() {
            let len = if axis + 1 == self.levels.len() { stride } else { 1 };
            positions[axis] = if self.descending[axis] {
                counts[axis] - level.done - len..counts[axis] - level.done
            } else {
                level.done..level.done + len
            };
        }
        // Rows inside a piece ascend. They are reversed if the innermost ordered axis descends and the
        // piece holds several positions of it.
        let last = self.descending.len().checked_sub(1).map(|axis| self.descending[axis]);
        let all_ordered = self.descending.len() == self.rank();
        let backwards = last == Some(true) && (all_ordered || stride > 1);
        Piece { task, positions, backwards }
    }

    /// Moves to the next step, like an odometer: the innermost level that is not done moves on, and the
    /// levels inside it start again. Returns false at the end.
    fn step(&mut self) -> bool {
        // Only the last level moves by several positions.
        let mut stride = self.stride();
        while let Some(mut level) = self.levels.pop() {
            let axis = self.levels.len();
            level.done += stride;
            stride = 1;
            if level.done == self.len_of(axis, &level) {
                if level.group.end == level.within.end {
                    continue;
                }
                level.group = self.group(axis, level.group.end, level.within.end);
                level.done = 0;
            }
            let within = level.group.clone();
            self.levels.push(level);
            self.descend(within);
            return true;
        }
        false
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(task) = self.left.next() {
                return Some(self.piece(task));
            }
            if self.tasks.is_empty() || !self.step() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::{ChunkGrid, for_each_run, unravel};
    use crate::plan::{ChunkMask, ScanPlan, ScanRequest, touched_chunks};

    /// Makes a random plan, sometimes with a mask.
    fn random(rng: &mut StdRng) -> ScanPlan {
        let rank = rng.random_range(1..=4);
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let partitions = rng.random_range(1..4);
        let mut request = ScanRequest { partitions, ..ScanRequest::all(&grid) };
        for (axis, &len) in shape.iter().enumerate() {
            let mask: Vec<bool> = (0..len).map(|_| rng.random_bool(0.7)).collect();
            request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
        }
        if rng.random_bool(0.3) {
            let touched =
                (0..rank).map(|axis| touched_chunks(&grid, &request.selection, axis).len());
            let keep = (0..touched.product()).map(|_| rng.random_bool(0.7)).collect();
            request.masks.push(ChunkMask { axes: (0..rank).collect(), keep, by_zones: true });
        }
        ScanPlan::new(grid, request).unwrap()
    }

    /// Returns the cells of a partition in the order in which they are read.
    fn cells(plan: &ScanPlan, partition: usize, batch_size: u64) -> Vec<Vec<u64>> {
        let mut cells = Vec::new();
        let mut later = plan.tasks(partition);
        while !later.is_empty() {
            let slab = plan.take_slab(&mut later);
            let tasks: Vec<ChunkTask> = slab.map(|task| plan.task(task)).collect();
            let tasks: Vec<&ChunkTask> = tasks.iter().collect();
            let mut seen = 0;
            for piece in Pieces::new(&tasks, plan.reordered().unwrap_or_default(), batch_size) {
                assert!(piece.task <= seen, "chunks are opened one after the other");
                seen = seen.max(piece.task + 1);
                for block in piece.blocks(batch_size) {
                    assert!((1..=batch_size).contains(&block.rows()));
                    let mut of_block =
                        cells_of(plan, tasks[piece.task], &block.cells(tasks[piece.task]));
                    if piece.backwards {
                        of_block.reverse();
                    }
                    cells.extend(of_block);
                }
            }
        }
        cells
    }

    fn cells_of(plan: &ScanPlan, task: &ChunkTask, selection: &[AxisSelection]) -> Vec<Vec<u64>> {
        let extents: Vec<u64> = selection.iter().map(AxisSelection::len).collect();
        let start = |axis: usize| plan.grid().axis_range(axis, task.coordinates[axis]).start;
        let mut cells = Vec::new();
        for_each_run(selection, |run| {
            let cell = |cell| {
                unravel(cell, &extents)
                    .iter()
                    .enumerate()
                    .map(|(axis, at)| start(axis) + at)
                    .collect()
            };
            cells.extend(run.map(cell));
        });
        cells
    }

    /// Every cell comes once, and in the requested order.
    #[test]
    fn rows_come_in_the_order_asked_for() {
        let mut rng = StdRng::seed_from_u64(21);
        for _ in 0..4_000 {
            let plan = random(&mut rng);
            let ordered = rng.random_range(1..=plan.grid().rank());
            let descending: Vec<bool> = (0..ordered).map(|_| rng.random_bool(0.5)).collect();
            let batch_size = rng.random_range(1..40);
            let mut expected: Vec<Vec<u64>> =
                (0..plan.partition_count()).flat_map(|at| cells(&plan, at, batch_size)).collect();
            let turned = plan.in_order(descending.clone());
            let key = |cell: &Vec<u64>| -> Vec<i64> {
                let turn = |(&at, descends): (&u64, &bool)| {
                    if *descends { -(at as i64) } else { at as i64 }
                };
                cell.iter().zip(&descending).map(turn).collect()
            };
            let mut found = Vec::new();
            for partition in 0..turned.partition_count() {
                let of_partition = cells(&turned, partition, batch_size);
                assert!(of_partition.is_sorted_by_key(key), "{descending:?} {of_partition:?}");
                assert_eq!(turned.rows(Some(partition)), of_partition.len() as u64);
                found.extend(of_partition);
            }
            expected.sort();
            found.sort();
            assert_eq!(found, expected);
            // Back to the order of the grid.
            assert_eq!(turned.in_order(vec![]).rows(None), plan.rows(None));
            // With a limit, the first rows of the order are still there.
            let limit = rng.random_range(0..20);
            let limited = turned.with_limit(Some(limit));
            let mut first: Vec<Vec<u64>> = (0..limited.partition_count())
                .flat_map(|at| cells(&limited, at, batch_size).into_iter().take(limit as usize))
                .collect();
            first.sort_by_key(key);
            found.sort_by_key(key);
            let keys = |cells: &[Vec<u64>]| -> Vec<Vec<i64>> {
                cells.iter().take(limit as usize).map(key).collect()
            };
            assert_eq!(keys(&first), keys(&found));
        }
    }
}
