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

use super::cut::{self, Cut};
use super::order::ReadOrder;
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection, ravel, unravel};

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
    /// Whether it took zone maps to know.
    pub by_zones: bool,
}

/// How many chunks of the grid a plan leaves out, by what rules them out first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The labels of their dimensions.
    pub by_selection: u64,
    /// What the writer noted about their values.
    pub by_zones: u64,
    /// A limit that chunks before them reach.
    pub by_limit: u64,
}

/// The chunks to read, in row-major order of the grid, cut into partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    pub(super) grid: ChunkGrid,
    pub(super) selection: Selection,
    /// Per axis the chunk coordinates that the selection touches, in the order of reading: ascending,
    /// or descending where the rows are to be.
    pub(super) touched: Vec<Vec<u64>>,
    /// Places in the cross product of `touched` that the masks keep; `None` keeps all.
    pub(super) kept: Option<Vec<u64>>,
    /// In which order rows are read; `None` if chunks are read one by one.
    pub(super) order: Option<ReadOrder>,
    /// Chunks that only zone maps rule out.
    pub(super) pruned_by_zones: u64,
    pub(super) cut: Cut,
    /// How many partitions were asked for.
    pub(super) max_partitions: usize,
    pub(super) limit: Option<u64>,
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
        let (kept, pruned_by_zones) = cut::kept_places(&touched, &request.masks)?;
        let mut plan = Self {
            grid,
            selection: request.selection,
            touched,
            kept,
            order: None,
            pruned_by_zones,
            cut: Cut::default(),
            max_partitions: request.partitions,
            limit: request.limit,
        };
        plan.cut = plan.cut();
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
        self.cut.partitions.len()
    }

    /// The tasks of a partition, by number; empty if there is no such partition.
    pub fn tasks(&self, partition: usize) -> Range<u64> {
        self.cut.partitions.get(partition).map_or(0..0, |(tasks, _)| tasks.clone())
    }

    /// The axis along which partitions are ranges, if there are several: none of its indices is in two.
    pub fn cut_along(&self) -> Option<usize> {
        self.cut.along
    }

    /// Rows of a partition, or of all: exactly what the scan yields unless it is dropped early.
    pub fn rows(&self, partition: Option<usize>) -> u64 {
        let rows = match partition {
            Some(partition) => self.cut.partitions.get(partition).map_or(0, |(_, rows)| *rows),
            None => self.cut.partitions.iter().map(|(_, rows)| rows).sum(),
        };
        // Each partition stops at the limit by itself.
        self.limit.map_or(rows, |limit| match partition {
            Some(_) => rows.min(limit),
            None => self.cut.partitions.iter().map(|(_, rows)| (*rows).min(limit)).sum(),
        })
    }

    /// The most rows a partition yields.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Chunks that will be read.
    pub fn chunks(&self) -> u64 {
        self.cut.partitions.iter().map(|(tasks, _)| tasks.end - tasks.start).sum()
    }

    /// Whether the rows are the selection's cells and no others: no mask and no limit cut any off.
    pub fn is_selection(&self) -> bool {
        self.kept.is_none() && self.limit.is_none()
    }

    /// What is left out, and why.
    pub fn pruned(&self) -> Pruned {
        let (places, by_zones) = (self.places(), self.pruned_by_zones);
        let by_selection = self.grid.chunks().saturating_sub(places + by_zones);
        Pruned { by_selection, by_zones, by_limit: places - self.chunks() }
    }

    /// The same plan with a limit, or without one, in at most as many partitions as it has now, and in the
    /// same ranges if they are such: whoever reads it may count on that.
    #[must_use = "the plan is not changed in place"]
    pub fn with_limit(&self, limit: Option<u64>) -> Self {
        let mut plan = Self { limit, max_partitions: self.partition_count(), ..self.clone() };
        plan.cut = match (limit, self.limit, self.cut.along) {
            (Some(_), None, Some(_)) => plan.cut_short(),
            _ => plan.cut(),
        };
        plan
    }

    /// Per axis the indices that the chunks of a partition span, from the first to the last.
    pub fn index_windows(&self, partition: usize) -> Vec<Range<u64>> {
        let tasks = self.tasks(partition);
        let mut bounds: Vec<Option<(u64, u64)>> = vec![None; self.grid.rank()];
        match &self.kept {
            Some(kept) => {
                let lens = lens(&self.touched);
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
        let lens = lens(&self.touched);
        let (first, last) = (unravel(tasks.start, &lens), unravel(tasks.end - 1, &lens));
        let mut differ = false;
        for (axis, bound) in bounds.iter_mut().enumerate() {
            *bound = Some(if differ { (0, lens[axis] - 1) } else { (first[axis], last[axis]) });
            differ |= first[axis] != last[axis];
        }
    }

    /// The part of the plan whose cells lie in `wanted` on `axis`, in one partition. Only for plans
    /// that read chunks one by one.
    #[must_use = "the plan is not changed in place"]
    pub fn restricted(&self, axis: usize, wanted: &AxisSelection) -> Self {
        let mut selection = self.selection.clone();
        selection.restrict(axis, wanted);
        let touched: Vec<Vec<u64>> = (0..self.grid.rank())
            .map(|axis| touched_chunks(&self.grid, &selection, axis))
            .collect();
        let kept = self.kept.as_ref().map(|kept| {
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
        let mut plan = Self { selection, touched, kept, max_partitions: 1, ..self.clone() };
        plan.cut = plan.cut();
        plan
    }

    /// One partition of the plan as a plan of its own.
    #[must_use = "the plan is not changed in place"]
    pub fn partition(&self, partition: usize) -> Self {
        let tasks = self.tasks(partition);
        let kept = match &self.kept {
            Some(kept) => kept[tasks.start as usize..tasks.end as usize].to_vec(),
            None => tasks.collect(),
        };
        let mut plan = Self { kept: Some(kept), max_partitions: 1, ..self.clone() };
        plan.cut = plan.cut();
        plan
    }

    /// How many places the cross product of touched chunks, or what masks keep of it, has.
    pub(super) fn places(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.len() as u64,
            None => self.touched.iter().map(|chunks| chunks.len() as u64).product(),
        }
    }

    /// Where the task of this number is in the cross product of touched chunks.
    pub(super) fn place(&self, task: u64) -> u64 {
        self.kept.as_ref().map_or(task, |kept| kept[task as usize])
    }

    /// The task of this number, which must be one of a partition's.
    pub fn task(&self, task: u64) -> ChunkTask {
        let place = self.place(task);
        let lens = lens(&self.touched);
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

pub(super) fn lens(touched: &[Vec<u64>]) -> Vec<u64> {
    touched.iter().map(|chunks| chunks.len() as u64).collect()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

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
                request.masks.push(ChunkMask { axes, keep, by_zones: rng.random_bool(0.5) });
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
