//! Which chunks a plan keeps, and how they are cut into partitions.
//!
//! Partitions are ranges of tasks of about the same size. Where whole slabs of the leading axis make
//! partitions that are nearly as even, cuts go between slabs: then no index of that axis is in two
//! partitions, and they are ranges of its labels.
//!
//! ```text
//!   tasks  (0,0) (0,1) (0,2) │ (1,0) (1,1) (1,2) │ (2,0) (2,1) (2,2) …
//!          └───── slab ────┘   a cut here splits no slab
//! ```

use std::ops::Range;

use super::scan_plan::{ChunkMask, ScanPlan, lens};
use crate::error::{Error, Result};

/// The partitions of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Per partition its tasks and the rows they yield.
    pub(crate) partitions: Vec<(Range<u64>, u64)>,
    /// The axis along which partitions are ranges: no index of it is in two of them.
    pub(crate) along: Option<usize>,
}

impl Cut {
    /// The same partitions of tasks that are numbered from the other end.
    pub(crate) fn turned_round(&self) -> Self {
        let tasks = self.partitions.iter().map(|(tasks, _)| tasks.end).max().unwrap_or(0);
        let turned =
            |(range, rows): &(Range<u64>, u64)| (tasks - range.end..tasks - range.start, *rows);
        Self { partitions: self.partitions.iter().map(turned).collect(), along: self.along }
    }
}

/// Some tasks that go to one partition together.
#[derive(Debug, Clone, Copy)]
struct Unit {
    /// The task after the last one.
    end: u64,
    cells: u64,
    rows: u64,
}

impl ScanPlan {
    /// Cuts the tasks into as many partitions as were asked for, or as there are tasks, after dropping
    /// those that a limit makes needless.
    pub(crate) fn cut(&self) -> Cut {
        let weights = TaskWeights::new(self);
        let tasks = self.needed_tasks(&weights);
        let count = (self.max_partitions as u64).min(tasks).max(1);
        if count == 1 {
            let rows = (0..tasks).map(|task| weights.of(task).1).sum();
            return Cut { partitions: vec![(0..tasks, rows)], along: None };
        }
        let lens = lens(&self.touched);
        // Axes before it have one chunk each.
        let leading = lens.iter().position(|&len| len > 1);
        if let Some(axis) = leading {
            let slabs = self.units(&weights, tasks, lens[axis + 1..].iter().product());
            if slabs.len() as u64 >= count && is_even(&slabs, count) {
                let along = self.touched[axis].is_sorted().then_some(axis);
                return Cut { partitions: partitions(&slabs, count), along };
            }
        }
        let partitions = partitions(&self.units(&weights, tasks, 1), count);
        Cut { partitions, along: None }
    }

    /// The partitions there are, without the tasks that a limit makes needless.
    pub(crate) fn cut_short(&self) -> Cut {
        let weights = TaskWeights::new(self);
        let needed = self.needed_tasks(&weights);
        let partitions = self.cut.partitions.iter().map(|(tasks, _)| {
            let tasks = tasks.start.min(needed)..tasks.end.min(needed);
            let rows = tasks.clone().map(|task| weights.of(task).1).sum();
            (tasks, rows)
        });
        let mut partitions: Vec<(Range<u64>, u64)> =
            partitions.filter(|(tasks, _)| !tasks.is_empty()).collect();
        if partitions.is_empty() {
            partitions.push((0..0, 0));
        }
        let along = self.cut.along.filter(|_| partitions.len() > 1);
        Cut { partitions, along }
    }

    /// How many tasks it takes to reach the limit. Rows in order come from whole slabs.
    fn needed_tasks(&self, weights: &TaskWeights<'_>) -> u64 {
        let Some(limit) = self.limit else { return self.places() };
        let (mut tasks, mut rows) = (0, 0);
        while rows < limit && tasks < self.places() {
            let slab = self.slab(tasks..self.places());
            rows += slab.clone().map(|task| weights.of(task).1).sum::<u64>();
            tasks = slab.end;
        }
        tasks
    }

    /// The first `tasks` tasks, those together whose places are in the same `places` places.
    fn units(&self, weights: &TaskWeights<'_>, tasks: u64, places: u64) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut slab = None;
        for task in 0..tasks {
            let of_task = self.place(task) / places;
            let (cells, rows) = weights.of(task);
            match units.last_mut() {
                Some(unit) if slab == Some(of_task) => {
                    unit.end = task + 1;
                    unit.cells += cells;
                    unit.rows += rows;
                }
                _ => units.push(Unit { end: task + 1, cells, rows }),
            }
            slab = Some(of_task);
        }
        units
    }
}

/// Whether `count` partitions of whole units are about as large as each other.
fn is_even(units: &[Unit], count: u64) -> bool {
    /// A partition may be this much larger than its share, in parts of it.
    const SLACK: u128 = 8;
    let cells = |units: &[Unit]| units.iter().map(|unit| u128::from(unit.cells)).sum::<u128>();
    let share = cells(units).div_ceil(u128::from(count));
    let ends = partitions(units, count);
    let mut start = 0;
    ends.iter().all(|(tasks, _)| {
        let end = units.partition_point(|unit| unit.end <= tasks.end);
        let of_partition = cells(&units[start..end]);
        start = end;
        of_partition <= share + share / SLACK
    })
}

/// Cuts units into `count` partitions, each with its fair share of cells as far as units allow, none
/// empty.
fn partitions(units: &[Unit], count: u64) -> Vec<(Range<u64>, u64)> {
    let total: u128 = units.iter().map(|unit| u128::from(unit.cells)).sum();
    let mut partitions = Vec::with_capacity(count as usize);
    let (mut start, mut rows, mut weight) = (0, 0, 0_u128);
    for (number, unit) in (1..).zip(units) {
        weight += u128::from(unit.cells);
        rows += unit.rows;
        let done = partitions.len() as u64 + 1;
        let enough = weight * u128::from(count) >= total * u128::from(done);
        // What is left must still give every later partition a unit, and no more partitions.
        let must = units.len() as u64 - number == count - done;
        if done < count && (enough || must) {
            partitions.push((start..unit.end, rows));
            (start, rows) = (unit.end, 0);
        }
    }
    partitions.push((start..units.last().map_or(0, |unit| unit.end), rows));
    partitions
}

/// The places in the cross product of `touched` that every mask keeps, and how many only masks by zone
/// maps rule out.
pub(crate) fn kept_places(
    touched: &[Vec<u64>],
    masks: &[ChunkMask],
) -> Result<(Option<Vec<u64>>, u64)> {
    let lens = lens(touched);
    for mask in masks {
        let size: u64 = mask.axes.iter().map(|&axis| lens[axis]).product();
        if size != mask.keep.len() as u64 {
            return Err(Error::internal("a chunk mask of another size than its axes"));
        }
    }
    if masks.is_empty() {
        return Ok((None, 0));
    }
    let mut walk = Walk { lens: &lens, masks, kept: vec![], by_zones: 0 };
    walk.axis(0, 0, &mut vec![0; masks.len()]);
    Ok((Some(walk.kept), walk.by_zones))
}

/// A walk over all places that knows at each its place in every mask.
struct Walk<'a> {
    lens: &'a [u64],
    masks: &'a [ChunkMask],
    kept: Vec<u64>,
    by_zones: u64,
}

impl Walk<'_> {
    /// Visits the places below `place`, a place over the axes before `axis`; `in_masks` are the places in
    /// the masks so far.
    fn axis(&mut self, axis: usize, place: u64, in_masks: &mut [u64]) {
        let len = self.lens[axis];
        // How far apart neighbours on this axis are in each mask.
        let strides: Vec<u64> = self.masks.iter().map(|mask| self.stride(mask, axis)).collect();
        for at in 0..len {
            let place = place * len + at;
            if axis + 1 < self.lens.len() {
                self.axis(axis + 1, place, in_masks);
            } else {
                self.visit(place, in_masks);
            }
            in_masks.iter_mut().zip(&strides).for_each(|(place, stride)| *place += stride);
        }
        in_masks.iter_mut().zip(&strides).for_each(|(place, stride)| *place -= stride * len);
    }

    fn visit(&mut self, place: u64, in_masks: &[u64]) {
        let (mut kept, mut only_by_zones) = (true, true);
        for (mask, &at) in self.masks.iter().zip(in_masks) {
            if !mask.keep[at as usize] {
                kept = false;
                only_by_zones &= mask.by_zones;
            }
        }
        if kept {
            self.kept.push(place);
        }
        self.by_zones += u64::from(!kept && only_by_zones);
    }

    fn stride(&self, mask: &ChunkMask, axis: usize) -> u64 {
        match mask.axes.iter().position(|&it| it == axis) {
            Some(at) => mask.axes[at + 1..].iter().map(|&axis| self.lens[axis]).product(),
            None => 0,
        }
    }
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
        let lens = lens(&plan.touched);
        Self { plan, axes, lens }
    }

    fn of(&self, task: u64) -> (u64, u64) {
        let mut place = self.plan.place(task);
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
