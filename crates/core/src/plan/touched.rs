//! [`TouchedChunks`]: the chunks that a plan reads, and the selected cells of each.
//!
//! A selection touches some chunks on each axis. A *place* is one combination of these, numbered in
//! row-major order. Masks drop some places; the others, in order, are the tasks.
//!
//! ```text
//!   touched  axis 0: [0, 1]        places   0 1 2        kept  0 2 5
//!            axis 1: [0, 2, 3]              3 4 5        task  0 1 2
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::masks::{ChunkMask, kept_places};
use super::task::{TaskNumber, TaskRange};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection, ravel, unravel};

/// The chunks that hold a selected cell, and that masks keep.
///
/// The cross product of the touched chunks is not stored. Only masks and single partitions need a list of
/// places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedChunks {
    grid: ChunkGrid,
    selection: Selection,
    /// Per axis, the chunk coordinates that the selection touches, in reading order: ascending, or
    /// descending if rows are read so.
    axes: Arc<Vec<Vec<u64>>>,
    /// The places that the masks keep, ascending; `None` keeps all. Task `i` is place `kept[i]`.
    kept: Option<Vec<u64>>,
}

impl TouchedChunks {
    /// Returns the chunks that hold a cell of `selection` and that all `masks` keep. Also counts the
    /// chunks that only zone maps exclude.
    pub(super) fn new(
        grid: ChunkGrid,
        selection: Selection,
        masks: &[ChunkMask],
    ) -> Result<(Self, u64)> {
        if selection.axes().len() != grid.rank() {
            return Err(Error::internal("a selection and its array differ in rank"));
        }
        let mut touched =
            Self { axes: Arc::new(touched_axes(&grid, &selection)), grid, selection, kept: None };
        let (kept, pruned_by_zones) = kept_places(&touched.lens(), masks)?;
        touched.kept = kept;
        Ok((touched, pruned_by_zones))
    }

    /// Makes the list of touched chunks again: which axes are reversed, and runs of the kept places.
    ///
    /// # Errors
    /// `Corrupt` if a place is not one of the grid, or if places do not ascend.
    pub(super) fn from_runs(
        grid: ChunkGrid,
        selection: Selection,
        reversed: &[bool],
        kept: Option<Vec<Range<u64>>>,
    ) -> Result<Self> {
        let mut axes = touched_axes(&grid, &selection);
        for (chunks, _) in axes.iter_mut().zip(reversed).filter(|(_, reversed)| **reversed) {
            chunks.reverse();
        }
        let touched = Self { grid, selection, axes: Arc::new(axes), kept: None };
        let Some(runs) = kept else { return Ok(touched) };
        let places = touched.tasks();
        let mut end = 0;
        for run in &runs {
            if run.start < end || run.end <= run.start || run.end > places {
                let message = format!("chunks {run:?} of {places}");
                return Err(Error::corrupt_region("plan", message));
            }
            end = run.end;
        }
        Ok(Self { kept: Some(runs.into_iter().flatten().collect()), ..touched })
    }

    /// Returns runs of the places that masks keep; `None` without masks.
    pub(super) fn kept_runs(&self) -> Option<Vec<Range<u64>>> {
        let mut runs: Vec<Range<u64>> = vec![];
        for &place in self.kept.as_ref()? {
            match runs.last_mut() {
                Some(run) if run.end == place => run.end += 1,
                _ => runs.push(place..place + 1),
            }
        }
        Some(runs)
    }

    pub(super) fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the coordinates of the touched chunks, per axis.
    pub(super) fn axes(&self) -> &[Vec<u64>] {
        &self.axes
    }

    /// Returns the number of touched chunks on each axis.
    pub(super) fn lens(&self) -> Vec<u64> {
        self.axes.iter().map(|chunks| chunks.len() as u64).collect()
    }

    /// Whether all places are tasks: neither masks nor [`only`](Self::only) restrict them.
    pub(super) fn is_unmasked(&self) -> bool {
        self.kept.is_none()
    }

    /// Returns the number of tasks, which are the places that masks keep.
    pub(super) fn tasks(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.len() as u64,
            None => self.lens().iter().product(),
        }
    }

    /// Returns the place of the task of this number.
    pub(super) fn place(&self, task: u64) -> u64 {
        self.kept.as_ref().map_or(task, |kept| kept[task as usize])
    }

    /// Returns the places of consecutive tasks.
    fn places(&self, tasks: &TaskRange) -> Vec<u64> {
        let tasks = tasks.numbers();
        match &self.kept {
            Some(kept) => kept[tasks.start as usize..tasks.end as usize].to_vec(),
            None => tasks.collect(),
        }
    }

    /// Returns the chunk of a task and its selected cells. Tasks are made on demand, because a plan may
    /// have millions of them.
    pub(super) fn task(&self, task: TaskNumber) -> ChunkTask {
        let place = self.place(task.get());
        // Place -> positions among the touched chunks -> chunk coordinates.
        let coordinates: Vec<u64> = unravel(place, &self.lens())
            .iter()
            .zip(self.axes.iter())
            .map(|(&at, chunks)| chunks[at as usize])
            .collect();
        let selection: Vec<AxisSelection> = coordinates
            .iter()
            .zip(self.selection.axes())
            .enumerate()
            .map(|(axis, (&chunk, wanted))| wanted.within(self.grid.axis_range(axis, chunk)))
            .collect();
        let rows = selection.iter().map(AxisSelection::count).product();
        let chunk_number = self.grid.number_of(&coordinates);
        ChunkTask { chunk_number, coordinates, selection, rows }
    }

    /// Removes the first slab from `tasks`, and returns it: the tasks whose places are in the same run of
    /// `places` places. With 3 places per slab, the kept places 0, 2, 5 make two slabs: tasks 0 and 1,
    /// and task 2.
    pub(super) fn take_slab(&self, tasks: &mut TaskRange, places: u64) -> TaskRange {
        let numbers = tasks.numbers();
        let slab = |task: u64| self.place(task) / places;
        let differs = |task: &u64| slab(*task) != slab(numbers.start);
        tasks.take_until(numbers.clone().find(differs).unwrap_or(numbers.end))
    }

    /// Returns, per axis, a range of indices that covers the chunks of `tasks`; `0..0` without tasks.
    ///
    /// The axes must not be reversed. On a reversed axis with several chunks the range would begin behind
    /// its end, and callers would take it for empty.
    pub(super) fn index_windows(&self, tasks: &TaskRange) -> Vec<Range<u64>> {
        let window = |(axis, bound): (usize, Option<(u64, u64)>)| match bound {
            None => 0..0,
            Some((least, greatest)) => {
                let [a, b] = [least, greatest].map(|at| self.axes[axis][at as usize]);
                self.grid.axis_range(axis, a).start..self.grid.axis_range(axis, b).end
            }
        };
        self.bounds(tasks).into_iter().enumerate().map(window).collect()
    }

    /// Returns, per axis, bounds of the positions of `tasks` among the touched chunks; `None` without
    /// tasks. Both bounds are inclusive. Without masks this takes O(axes), and with masks O(tasks).
    ///
    /// Of 4 × 3 places, the places 4 to 7 are (1, 1) to (2, 1). The bounds are 1 and 2 on axis 0. They are
    /// 0 and 2 on axis 1, because place 5 is (1, 2) and place 6 is (2, 0).
    fn bounds(&self, tasks: &TaskRange) -> Vec<Option<(u64, u64)>> {
        let lens = self.lens();
        let mut bounds = vec![None; lens.len()];
        let Some([first, last]) = tasks.ends() else { return bounds };
        if self.kept.is_some() {
            for place in self.places(tasks) {
                for (bound, at) in bounds.iter_mut().zip(unravel(place, &lens)) {
                    let (least, greatest) = bound.unwrap_or((at, at));
                    *bound = Some((least.min(at), greatest.max(at)));
                }
            }
            return bounds;
        }
        // Places are consecutive. On the first axis on which the first and the last place differ, these
        // two are the bounds; later axes count as covered whole.
        let (first, last) = (unravel(first.get(), &lens), unravel(last.get(), &lens));
        let mut differ = false;
        for (axis, bound) in bounds.iter_mut().enumerate() {
            *bound = Some(if differ { (0, lens[axis] - 1) } else { (first[axis], last[axis]) });
            differ |= first[axis] != last[axis];
        }
        bounds
    }

    /// Returns the chunks that hold a selected cell within `wanted` on `axis`. The axes must not be
    /// reversed: the new list of touched chunks ascends, and kept places are found in it by binary search.
    pub(super) fn restricted(&self, axis: usize, wanted: &AxisSelection) -> Self {
        let mut selection = self.selection.clone();
        selection.restrict(axis, wanted);
        let axes = Arc::new(touched_axes(&self.grid, &selection));
        let mut restricted = Self { grid: self.grid.clone(), selection, axes, kept: None };
        // Kept places are numbered again, because fewer chunks are touched. Their order stays ascending.
        restricted.kept = self.kept.as_ref().map(|kept| {
            let (before, after) = (self.lens(), restricted.lens());
            let position = |(axis, at): (usize, u64)| {
                let chunk = self.axes[axis][at as usize];
                restricted.axes[axis].binary_search(&chunk).ok().map(|at| at as u64)
            };
            let place = |&place: &u64| {
                let at: Option<Vec<u64>> =
                    unravel(place, &before).into_iter().enumerate().map(position).collect();
                at.map(|at| ravel(&at, &after))
            };
            kept.iter().filter_map(place).collect()
        });
        restricted
    }

    /// Returns the chunks of `tasks` only. The selection stays, so all other places become dropped ones.
    pub(super) fn only(&self, tasks: &TaskRange) -> Self {
        Self { kept: Some(self.places(tasks)), ..self.clone() }
    }

    /// Returns the same chunks, without the labels and chunks of leading axes that they do not need. So a process that
    /// reads a part of a table need not number all labels, nor open all files.
    ///
    /// Of 4 × 3 places, the kept ones 4, 5 and 7 need the chunks 1 and 2 of axis 0. They become the places 1, 2 and 4.
    pub(super) fn narrowed(mut self) -> Self {
        let lens = self.lens();
        let Some(kept) = &mut self.kept else { return self };
        let (Some(&first), Some(&last)) = (kept.first(), kept.last()) else { return self };
        let (first, last) = (unravel(first, &lens), unravel(last, &lens));
        let axes = Arc::make_mut(&mut self.axes);
        let mut dropped = vec![0; lens.len()];
        for axis in 0..lens.len() {
            let (from, to) = (first[axis], last[axis]);
            dropped[axis] = from;
            axes[axis] = axes[axis][from as usize..=to as usize].to_vec();
            // On a reversed axis, the last chunk comes first.
            let chunks = axes[axis].iter().copied();
            if let Some((least, greatest)) = chunks.clone().min().zip(chunks.max()) {
                let of = |chunk: u64| self.grid.axis_range(axis, chunk);
                let len = self.grid.shape()[axis];
                let needed = AxisSelection::from_range(len, of(least).start..of(greatest).end);
                self.selection.restrict(axis, &needed);
            }
            // Chunks of further axes lie side by side in these.
            if from != to {
                break;
            }
        }
        // Before the last narrowed axis, one chunk is left per axis, so all places move by the same number.
        let moved = ravel(&dropped, &lens);
        kept.iter_mut().for_each(|place| *place -= moved);
        self
    }

    /// Reverses the order of the chunks along each axis for which `reversed` is true.
    ///
    /// With 2 × 3 places and axis 1 reversed, the kept places 0, 2, 5 become 2, 0, 3, sorted 0, 2, 3. So
    /// tasks get other numbers, too.
    pub(super) fn reversed(&self, reversed: &[bool]) -> Self {
        let reversed_axes = || (0..self.axes.len()).filter(|&axis| reversed[axis]);
        let mut turned = self.clone();
        for axis in reversed_axes() {
            Arc::make_mut(&mut turned.axes)[axis].reverse();
        }
        if let Some(kept) = &mut turned.kept {
            let lens = self.lens();
            for place in kept.iter_mut() {
                let mut at = unravel(*place, &lens);
                for axis in reversed_axes() {
                    at[axis] = lens[axis] - 1 - at[axis];
                }
                *place = ravel(&at, &lens);
            }
            kept.sort_unstable();
        }
        turned
    }
}

fn touched_axes(grid: &ChunkGrid, selection: &Selection) -> Vec<Vec<u64>> {
    (0..grid.rank()).map(|axis| touched_chunks(grid, selection, axis)).collect()
}

/// Returns the chunk coordinates on `axis` that hold a selected index, ascending.
///
/// The result is empty if no cell is selected: next to an axis of length 0, this axis may have any length.
pub fn touched_chunks(grid: &ChunkGrid, selection: &Selection, axis: usize) -> Vec<u64> {
    if selection.cells() == 0 {
        return vec![];
    }
    grid.chunks_of(axis, &selection.axes()[axis]).ranges().iter().cloned().flatten().collect()
}

/// The number of chunks that a selection touches, without a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedCounts {
    /// The chunks that it touches on each axis; those of all axes after an empty one are missing.
    pub per_axis: Vec<u64>,
    /// The cells of these chunks, selected or not; `None` for 2⁶⁴ or more.
    pub cells: Option<u64>,
}

impl TouchedCounts {
    /// Counts the chunks of `grid` that hold a cell of `selection`.
    pub fn new(grid: &ChunkGrid, selection: &Selection) -> Self {
        let (mut per_axis, mut cells) = (vec![], Some(1_u64));
        for (axis, wanted) in selection.axes().iter().enumerate() {
            let chunks = grid.chunks_of(axis, wanted);
            let len = |run: &Range<u64>| {
                let first = grid.axis_range(axis, run.start).start;
                grid.axis_range(axis, run.end - 1).end - first
            };
            let covered: u64 = chunks.ranges().iter().map(len).sum();
            per_axis.push(chunks.count());
            // A selection without cells touches none.
            if covered == 0 {
                return Self { per_axis, cells: Some(0) };
            }
            cells = cells.and_then(|cells| cells.checked_mul(covered));
        }
        Self { per_axis, cells }
    }

    /// Returns the number of chunks; `u64::MAX` if they are more.
    pub fn chunks(&self) -> u64 {
        self.per_axis.iter().copied().fold(1, u64::saturating_mul)
    }
}
