//! What a scan will read, decided before any payload is touched.
//!
//! ```text
//!   selection  time: {0..24}        touched chunks  time: [0]        tasks  (0,0) (0,2)
//!              station: {0, 250}                    station: [0, 2]         └ 0 ┘ └ 1 ┘  partitions
//! ```
//!
//! A [`ScanPlan`] is a plain value: it can be compared, printed and sent elsewhere. Building it
//! costs O(touched chunks) and reads nothing.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, Selection, ravel, unravel};

/// What a query wants of one array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// The cells wanted; every one of them becomes a row.
    pub selection: Selection,
    /// Chunks that are known to hold no row the query wants, by pairs or more of axes.
    pub masks: Vec<ChunkMask>,
    /// Stop after this many rows, whichever they are.
    pub limit: Option<u64>,
    /// Into how many partitions to cut the chunks, at most.
    pub partitions: usize,
}

impl ScanRequest {
    /// Every cell of `grid`, in one partition.
    pub fn all(grid: &ChunkGrid) -> Self {
        Self { selection: Selection::all(grid.shape()), masks: vec![], limit: None, partitions: 1 }
    }
}

/// Which combinations of chunks along some axes may hold wanted rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMask {
    /// The axes concerned.
    pub axes: Vec<usize>,
    /// Row-major over the chunks that the selection touches on these axes.
    pub keep: Vec<bool>,
}

/// One chunk to read and the cells to take from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkTask {
    /// The chunk's row-major number in the grid.
    pub number: u64,
    /// The chunk's coordinates in the grid.
    pub coordinates: Vec<u64>,
    /// Per axis the cells wanted, relative to the chunk; the axis lengths are the chunk's extents.
    pub selection: Vec<AxisSelection>,
    /// Rows this task yields.
    pub rows: u64,
}

impl ChunkTask {
    /// Cells of the chunk, wanted or not.
    pub fn cells(&self) -> u64 {
        self.selection.iter().map(AxisSelection::len).product()
    }
}

/// The chunks to read, in row-major order of the grid, cut into partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    grid: ChunkGrid,
    selection: Selection,
    /// Per axis the chunk coordinates that the selection touches.
    touched: Vec<Vec<u64>>,
    /// Places in the cross product of `touched` that the masks keep; `None` keeps all.
    kept: Option<Vec<u64>>,
    /// Per partition its tasks and the rows they yield.
    partitions: Vec<(Range<u64>, u64)>,
    /// How many partitions were asked for.
    max_partitions: usize,
    limit: Option<u64>,
}

impl ScanPlan {
    /// Plans a scan of an array cut by `grid`.
    ///
    /// # Errors
    /// `Internal` if the request is of another rank or a mask of another size.
    pub fn new(grid: ChunkGrid, request: ScanRequest) -> Result<Self> {
        if request.selection.axes().len() != grid.rank() {
            return Err(Error::internal("a selection of another rank than its array"));
        }
        let touched: Vec<Vec<u64>> =
            (0..grid.rank()).map(|axis| touched_chunks(&grid, &request.selection, axis)).collect();
        let kept = kept_places(&touched, &request.masks)?;
        let mut plan = Self {
            grid,
            selection: request.selection,
            touched,
            kept,
            partitions: vec![],
            max_partitions: request.partitions,
            limit: request.limit,
        };
        plan.partitions = plan.cut();
        Ok(plan)
    }

    /// How the array is cut into chunks.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// The cells wanted, before masks and limit.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// How many partitions there are; at least one.
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    /// The tasks of a partition, by number; empty if there is no such partition.
    pub fn tasks(&self, partition: usize) -> Range<u64> {
        self.partitions.get(partition).map_or(0..0, |(tasks, _)| tasks.clone())
    }

    /// Rows of a partition, or of all: exactly what the scan yields unless it is dropped early.
    pub fn rows(&self, partition: Option<usize>) -> u64 {
        let rows = match partition {
            Some(partition) => self.partitions.get(partition).map_or(0, |(_, rows)| *rows),
            None => self.partitions.iter().map(|(_, rows)| rows).sum(),
        };
        // Each partition stops at the limit by itself.
        self.limit.map_or(rows, |limit| match partition {
            Some(_) => rows.min(limit),
            None => self.partitions.iter().map(|(_, rows)| (*rows).min(limit)).sum(),
        })
    }

    /// The most rows a partition yields.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Chunks that will be read.
    pub fn chunks(&self) -> u64 {
        self.partitions.iter().map(|(tasks, _)| tasks.end - tasks.start).sum()
    }

    /// Whether the rows are the selection's cells and no others: no mask and no limit cut any off.
    pub fn is_selection(&self) -> bool {
        self.kept.is_none() && self.limit.is_none()
    }

    /// How many leading axes the rows of each partition are in order of: by index on the first, among
    /// equals on the second, and so on. Chunks across an axis break the order of the axes before it,
    /// unless a chunk holds one index of those.
    pub fn ordered_axes(&self) -> usize {
        let rank = self.grid.rank();
        for axis in 0..rank {
            if self.touched[axis + 1..].iter().all(|chunks| chunks.len() <= 1) {
                return rank;
            }
            let selected = &self.selection.axes()[axis];
            let several =
                |&chunk: &u64| selected.within(self.grid.axis_range(axis, chunk)).count() > 1;
            if self.touched[axis].iter().any(several) {
                return axis;
            }
        }
        rank
    }

    /// The same plan with a limit, or without one, in at most as many partitions as it has now:
    /// whoever reads it may count on that.
    #[must_use = "the plan is not changed in place"]
    pub fn with_limit(&self, limit: Option<u64>) -> Self {
        let mut plan = Self { limit, max_partitions: self.partition_count(), ..self.clone() };
        plan.partitions = plan.cut();
        plan
    }

    /// Per axis the indices that the chunks of a partition span, from the first to the last.
    pub fn index_windows(&self, partition: usize) -> Vec<Range<u64>> {
        let tasks = self.tasks(partition);
        let mut bounds: Vec<Option<(u64, u64)>> = vec![None; self.grid.rank()];
        match &self.kept {
            Some(kept) => {
                let lens: Vec<u64> =
                    self.touched.iter().map(|chunks| chunks.len() as u64).collect();
                for &place in &kept[tasks.start as usize..tasks.end as usize] {
                    for (bound, at) in bounds.iter_mut().zip(unravel(place, &lens)) {
                        let (least, greatest) = bound.unwrap_or((at, at));
                        *bound = Some((least.min(at), greatest.max(at)));
                    }
                }
            }
            None if tasks.is_empty() => {}
            None => self.bound_places(&tasks, &mut bounds),
        }
        bounds
            .iter()
            .enumerate()
            .map(|(axis, bound)| match bound {
                None => 0..0,
                Some((least, greatest)) => {
                    let chunk = |at: u64| self.touched[axis][at as usize];
                    self.grid.axis_range(axis, chunk(*least)).start
                        ..self.grid.axis_range(axis, chunk(*greatest)).end
                }
            })
            .collect()
    }

    /// The least and greatest place per axis of consecutive tasks: the first axis on which they
    /// differ bounds them; after it, they take every place.
    fn bound_places(&self, tasks: &Range<u64>, bounds: &mut [Option<(u64, u64)>]) {
        let lens: Vec<u64> = self.touched.iter().map(|chunks| chunks.len() as u64).collect();
        let (first, last) = (unravel(tasks.start, &lens), unravel(tasks.end - 1, &lens));
        let mut differ = false;
        for (axis, bound) in bounds.iter_mut().enumerate() {
            *bound = Some(if differ { (0, lens[axis] - 1) } else { (first[axis], last[axis]) });
            differ |= first[axis] != last[axis];
        }
    }

    /// The part of the plan whose cells lie in `wanted` on `axis`, in one partition.
    #[must_use = "the plan is not changed in place"]
    pub fn restricted(&self, axis: usize, wanted: &AxisSelection) -> Self {
        let mut selection = self.selection.clone();
        selection.restrict(axis, wanted);
        let touched: Vec<Vec<u64>> = (0..self.grid.rank())
            .map(|axis| touched_chunks(&self.grid, &selection, axis))
            .collect();
        let kept = self.kept.as_ref().map(|kept| {
            let lens = |touched: &[Vec<u64>]| -> Vec<u64> {
                touched.iter().map(|chunks| chunks.len() as u64).collect()
            };
            let (before, after) = (lens(&self.touched), lens(&touched));
            let place = |&place: &u64| {
                let at: Option<Vec<u64>> = unravel(place, &before)
                    .iter()
                    .enumerate()
                    .map(|(axis, &at)| {
                        let chunk = self.touched[axis][at as usize];
                        touched[axis].binary_search(&chunk).ok().map(|at| at as u64)
                    })
                    .collect();
                at.map(|at| ravel(&at, &after))
            };
            kept.iter().filter_map(place).collect()
        });
        let mut plan = Self {
            selection,
            touched,
            kept,
            max_partitions: 1,
            partitions: vec![],
            ..self.clone()
        };
        plan.partitions = plan.cut();
        plan
    }

    /// How many places the cross product of touched chunks, or what masks keep of it, has.
    fn places(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.len() as u64,
            None => self.touched.iter().map(|chunks| chunks.len() as u64).product(),
        }
    }

    /// The task of this number, which must be one of a partition's.
    pub fn task(&self, task: u64) -> ChunkTask {
        let place = self.kept.as_ref().map_or(task, |kept| kept[task as usize]);
        let lens: Vec<u64> = self.touched.iter().map(|chunks| chunks.len() as u64).collect();
        let coordinates: Vec<u64> = unravel(place, &lens)
            .iter()
            .zip(&self.touched)
            .map(|(&at, chunks)| chunks[at as usize])
            .collect();
        let selection: Vec<AxisSelection> = coordinates
            .iter()
            .zip(self.selection.axes())
            .enumerate()
            .map(|(axis, (&chunk, wanted))| wanted.within(self.grid.axis_range(axis, chunk)))
            .collect();
        let rows = selection.iter().map(AxisSelection::count).product();
        let number = ravel(&coordinates, self.grid.chunks_per_axis());
        ChunkTask { number, coordinates, selection, rows }
    }

    /// Cuts the tasks into at most `count` ranges of about the same number of cells to read, after
    /// dropping those that a limit makes needless.
    fn cut(&self) -> Vec<(Range<u64>, u64)> {
        let weights = TaskWeights::new(self);
        let (mut tasks, mut total, mut rows) = (0, 0, 0);
        while tasks < self.places() && self.limit.is_none_or(|limit| rows < limit) {
            let (task_cells, task_rows) = weights.of(tasks);
            total += u128::from(task_cells);
            rows += task_rows;
            tasks += 1;
        }
        let count = (self.max_partitions as u64).min(tasks).max(1);
        let mut partitions = Vec::with_capacity(count as usize);
        let (mut start, mut rows, mut weight) = (0, 0, 0_u128);
        for task in 0..tasks {
            let (task_cells, task_rows) = weights.of(task);
            weight += u128::from(task_cells);
            rows += task_rows;
            let done = partitions.len() as u64 + 1;
            let enough = weight * u128::from(count) >= total * u128::from(done);
            // What is left must still give every later partition a task, and no more partitions.
            let must = tasks - task - 1 == count - done;
            if done < count && (enough || must) {
                partitions.push((start..task + 1, rows));
                (start, rows) = (task + 1, 0);
            }
        }
        partitions.push((start..tasks, rows));
        partitions
    }
}

/// The chunk coordinates on `axis` that hold a selected index, ascending.
///
/// None if no cell is selected: an axis next to one of length 0 may be of any length.
pub fn touched_chunks(grid: &ChunkGrid, selection: &Selection, axis: usize) -> Vec<u64> {
    if selection.cells() == 0 {
        return vec![];
    }
    grid.chunks_of(axis, &selection.axes()[axis]).ranges().iter().cloned().flatten().collect()
}

/// The places in the cross product of `touched` that every mask keeps.
fn kept_places(touched: &[Vec<u64>], masks: &[ChunkMask]) -> Result<Option<Vec<u64>>> {
    let lens: Vec<u64> = touched.iter().map(|chunks| chunks.len() as u64).collect();
    for mask in masks {
        let size: u64 = mask.axes.iter().map(|&axis| lens[axis]).product();
        if size != mask.keep.len() as u64 {
            return Err(Error::internal("a chunk mask of another size than its axes"));
        }
    }
    if masks.is_empty() {
        return Ok(None);
    }
    let keeps = |place: &u64| {
        let at = unravel(*place, &lens);
        masks.iter().all(|mask| {
            let place = mask.axes.iter().fold(0, |place, &axis| place * lens[axis] + at[axis]);
            mask.keep[place as usize]
        })
    };
    Ok(Some((0..lens.iter().product()).filter(keeps).collect()))
}

/// Cells and rows of each task, without building the task.
struct TaskWeights<'a> {
    plan: &'a ScanPlan,
    /// Per axis and touched chunk: elements, selected elements.
    axes: Vec<Vec<(u64, u64)>>,
    lens: Vec<u64>,
}

impl<'a> TaskWeights<'a> {
    fn new(plan: &'a ScanPlan) -> Self {
        let weight = |axis: usize, chunk: u64| {
            let range = plan.grid.axis_range(axis, chunk);
            let selected = plan.selection.axes()[axis].within(range.clone()).count();
            (range.end - range.start, selected)
        };
        let axes: Vec<Vec<(u64, u64)>> = plan
            .touched
            .iter()
            .enumerate()
            .map(|(axis, chunks)| chunks.iter().map(|&chunk| weight(axis, chunk)).collect())
            .collect();
        let lens = axes.iter().map(|axis| axis.len() as u64).collect();
        Self { plan, axes, lens }
    }

    fn of(&self, task: u64) -> (u64, u64) {
        let mut place = self.plan.kept.as_ref().map_or(task, |kept| kept[task as usize]);
        let (mut cells, mut rows) = (1, 1);
        for (axis, &len) in self.axes.iter().zip(&self.lens).rev() {
            let (elements, selected) = axis[(place % len) as usize];
            place /= len;
            cells *= elements;
            rows *= selected;
        }
        (cells, rows)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::for_each_run;

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

    /// The cells of all tasks are the selected cells that the masks keep, each once, in every
    /// partitioning; partitions are balanced and none is empty.
    #[test]
    fn tasks_cover_the_selection() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..2_000 {
            let rank = rng.random_range(1..=3);
            let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(0..8)).collect();
            let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let mut request = ScanRequest::all(&grid);
            for (axis, &len) in shape.iter().enumerate() {
                let mask: Vec<bool> = (0..len).map(|_| rng.random_bool(0.6)).collect();
                request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
            }
            let touched: Vec<Vec<u64>> =
                (0..rank).map(|axis| touched_chunks(&grid, &request.selection, axis)).collect();
            if rank > 1 && rng.random_bool(0.5) {
                let axes = vec![rank - 1, 0];
                let size = touched[rank - 1].len() * touched[0].len();
                let keep = (0..size).map(|_| rng.random_bool(0.7)).collect();
                request.masks.push(ChunkMask { axes, keep });
            }
            request.partitions = rng.random_range(1..6);
            let plan = ScanPlan::new(grid.clone(), request.clone()).unwrap();

            let kept = |cell: &[u64]| {
                request.masks.iter().all(|mask| {
                    let place = mask.axes.iter().fold(0, |place, &axis| {
                        let chunk = grid.chunk_of(axis, cell[axis]);
                        let at = touched[axis].binary_search(&chunk).unwrap();
                        place * touched[axis].len() + at
                    });
                    mask.keep[place]
                })
            };
            let mut expected: Vec<Vec<u64>> = (0..grid.cells())
                .map(|cell| unravel(cell, &shape))
                .filter(|cell| {
                    cell.iter().zip(request.selection.axes()).all(|(&i, axis)| axis.contains(i))
                })
                .filter(|cell| kept(cell))
                .collect();
            let mut found = Vec::new();
            for partition in 0..plan.partition_count() {
                let before = found.len();
                for task in plan.tasks(partition).map(|task| plan.task(task)) {
                    assert_eq!(grid.chunk_number(&task.coordinates), Some(task.number));
                    found.extend(cells_of(&grid, &task));
                }
                assert_eq!(plan.rows(Some(partition)), (found.len() - before) as u64);
                assert!(plan.partition_count() == 1 || !plan.tasks(partition).is_empty());
            }
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
            assert_eq!(plan.rows(None), expected.len() as u64);
            assert!(plan.partition_count() <= request.partitions);
        }
    }

    fn cells_of(grid: &ChunkGrid, task: &ChunkTask) -> Vec<Vec<u64>> {
        let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
        let inside =
            |cell: &Vec<u64>| cell.iter().zip(&task.selection).all(|(&i, axis)| axis.contains(i));
        let global = |cell: Vec<u64>| -> Vec<u64> {
            let starts = task
                .coordinates
                .iter()
                .enumerate()
                .map(|(axis, &c)| grid.axis_range(axis, c).start);
            cell.iter().zip(starts).map(|(i, start)| i + start).collect()
        };
        (0..task.cells()).map(|cell| unravel(cell, &extents)).filter(inside).map(global).collect()
    }

    #[test]
    fn partitions_are_balanced() {
        let grid = ChunkGrid::new(&[1000], &[1]).unwrap();
        let plan =
            ScanPlan::new(grid.clone(), ScanRequest { partitions: 4, ..ScanRequest::all(&grid) })
                .unwrap();
        assert_eq!((0..4).map(|p| plan.rows(Some(p))).collect::<Vec<_>>(), [250; 4]);
    }

    #[test]
    fn a_limit_drops_chunks() {
        let grid = ChunkGrid::new(&[100], &[10]).unwrap();
        let plan =
            ScanPlan::new(grid.clone(), ScanRequest { partitions: 4, ..ScanRequest::all(&grid) })
                .unwrap();
        let limited = plan.with_limit(Some(15));
        assert_eq!((limited.chunks(), limited.partition_count()), (2, 2));
        assert_eq!(limited.with_limit(None).chunks(), 10);
        assert_eq!(plan.with_limit(Some(0)).chunks(), 0);
        assert!(plan.is_selection() && !limited.is_selection());
    }
}
