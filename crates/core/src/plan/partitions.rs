//! The division of a plan's tasks among partitions.
//!
//! Partitions are runs of tasks with about the same number of cells. They end between the slabs of the
//! leading axis if that keeps them nearly even. Then no two partitions share an index of that axis, and
//! each is a range of its labels.
//!
//! ```text
//!   tasks  (0,0) (0,1) (0,2) │ (1,0) (1,1) (1,2) │ (2,0) (2,1) (2,2) …
//!          └───── slab ────┘   a border here splits no slab
//! ```
//!
//! Such partitions are declared as ranges if the labels of the axis are in strict order.

use super::task::TaskRange;
use super::touched::TouchedChunks;

/// The partitions of a plan; at least one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Partitions {
    /// Together they hold every task that the limit needs, each once. Partition `i` has smaller task numbers
    /// than partition `i + 1`, except after [`Partitions::reversed`].
    parts: Vec<TaskPartition>,
    /// The axis along which partitions are ranges of indices, in ascending order of partitions.
    axis: Option<usize>,
}

/// A partition: consecutive tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TaskPartition {
    pub(super) tasks: TaskRange,
    /// The number of rows of the tasks, before a limit.
    pub(super) rows: u64,
}

/// The parameters of a division.
#[derive(Debug, Clone, Copy)]
pub(super) struct DivisionParams {
    /// The greatest number of partitions.
    pub(super) max_partitions: usize,
    /// The number of rows that suffice.
    pub(super) limit: Option<u64>,
    /// The number of places per slab, whose rows are interleaved; 1 if chunks are read one by one.
    pub(super) places_per_slab: u64,
    /// Whether partitions may be declared as ranges of an axis.
    pub(super) declares_range: bool,
}

/// Consecutive tasks that must be in the same partition.
#[derive(Debug, Clone, Copy)]
struct Unit {
    /// The number of the task after the last one.
    end: u64,
    /// The cells of its chunks, selected or not. They measure the work, because chunks are decoded whole.
    cells: u64,
    /// The selected cells of its chunks.
    rows: u64,
}

impl Partitions {
    /// Drops the tasks that the limit does not need, and divides the others into `max_partitions`
    /// partitions, or one per task if there are fewer tasks.
    pub(super) fn new(chunks: &TouchedChunks, division: DivisionParams) -> Self {
        let weights = TaskWeights::new(chunks);
        let tasks = weights.needed_tasks(division);
        let count = (division.max_partitions as u64).min(tasks).max(1);
        if count == 1 {
            let part = weights.part(TaskRange::new(0..tasks));
            return Self { parts: vec![part], axis: None };
        }
        let lens = &weights.lens;
        // Each axis before this one has a single touched chunk.
        let leading = lens.iter().position(|&len| len > 1);
        if let Some(axis) = leading {
            // First choice: whole slabs of the leading axis, if there are enough of them and they are
            // nearly even.
            let slabs = weights.units(tasks, lens[axis + 1..].iter().product());
            if slabs.len() as u64 >= count && is_even(&slabs, count) {
                // On a descending axis, partitions would be ranges from last to first: none are declared.
                let is_range = division.declares_range && chunks.axes()[axis].is_sorted();
                let axis = is_range.then_some(axis);
                return Self { parts: divide(&slabs, count), axis };
            }
        }
        // Otherwise borders may be between any two tasks, and partitions share indices of every axis.
        Self { parts: divide(&weights.units(tasks, 1), count), axis: None }
    }

    /// Makes partitions that were divided before, along this axis.
    pub(super) fn from_parts(parts: Vec<TaskPartition>, axis: Option<usize>) -> Self {
        Self { parts, axis }
    }

    /// Drops the tasks that the limit does not need, and partitions that are then empty. Unlike
    /// [`Partitions::new`], it moves no border, so partitions that are ranges keep their label ranges.
    pub(super) fn cut_short(&self, chunks: &TouchedChunks, division: DivisionParams) -> Self {
        let weights = TaskWeights::new(chunks);
        let needed = weights.needed_tasks(division);
        let parts =
            self.parts.iter().map(|part| weights.part(part.tasks.clone().take_until(needed)));
        let mut parts: Vec<TaskPartition> = parts.filter(|part| !part.tasks.is_empty()).collect();
        if parts.is_empty() {
            parts.push(TaskPartition::default());
        }
        let axis = self.axis.filter(|_| parts.len() > 1);
        Self { parts, axis }
    }

    /// Returns the same partitions with tasks numbered from the other end: of 6 tasks, `0..2` becomes `4..6`.
    /// Partition 0 still holds the same chunks.
    pub(super) fn reversed(&self) -> Self {
        let tasks = self.parts.iter().map(|part| part.tasks.numbers().end).max().unwrap_or(0);
        let reversed = |part: &TaskPartition| {
            let numbers = part.tasks.numbers();
            let tasks = TaskRange::new(tasks - numbers.end..tasks - numbers.start);
            TaskPartition { tasks, rows: part.rows }
        };
        Self { parts: self.parts.iter().map(reversed).collect(), axis: self.axis }
    }

    pub(super) fn parts(&self) -> &[TaskPartition] {
        &self.parts
    }

    /// Returns the axis along which partitions are ranges: no two of them share an index of it.
    pub(super) fn axis(&self) -> Option<usize> {
        self.axis
    }
}

/// Whether `count` partitions of whole units are nearly even: none is much larger than its share.
fn is_even(units: &[Unit], count: u64) -> bool {
    /// A partition may exceed its share by `1 / SLACK` of it.
    const SLACK: u128 = 8;
    let cells = |units: &[Unit]| units.iter().map(|unit| u128::from(unit.cells)).sum::<u128>();
    let share = cells(units).div_ceil(u128::from(count));
    let parts = divide(units, count);
    let mut start = 0;
    parts.iter().all(|part| {
        let end = units.partition_point(|unit| unit.end <= part.tasks.numbers().end);
        let of_partition = cells(&units[start..end]);
        start = end;
        of_partition <= share + share / SLACK
    })
}

/// Divides units into `count` partitions with about the same number of cells, none of them empty.
///
/// Walks over the units once, and closes partition `n` when the cells so far reach `n / count` of all. Of
/// units of 5, 1, 1, 5 cells, two partitions get two each: the sum of the first two reaches half of 12.
fn divide(units: &[Unit], count: u64) -> Vec<TaskPartition> {
    let total: u128 = units.iter().map(|unit| u128::from(unit.cells)).sum();
    let mut parts = Vec::with_capacity(count as usize);
    let (mut start, mut rows, mut weight) = (0, 0, 0_u128);
    for (number, unit) in (1..).zip(units) {
        weight += u128::from(unit.cells);
        rows += unit.rows;
        let done = parts.len() as u64 + 1;
        // Compares `weight / total` with `done / count`, without a division.
        let enough = weight * u128::from(count) >= total * u128::from(done);
        // If only as many units remain as partitions, each partition gets one.
        let must = units.len() as u64 - number == count - done;
        if done < count && (enough || must) {
            parts.push(TaskPartition { tasks: TaskRange::new(start..unit.end), rows });
            (start, rows) = (unit.end, 0);
        }
    }
    let end = units.last().map_or(0, |unit| unit.end);
    parts.push(TaskPartition { tasks: TaskRange::new(start..end), rows });
    parts
}

/// Returns how many of the first tasks have at most `rows` rows together, in whole slabs of `places` places, and how many rows
/// that are.
pub(super) fn first_tasks(chunks: &TouchedChunks, rows: u64, places: u64) -> (u64, u64) {
    let weights = TaskWeights::new(chunks);
    let mut left = TaskRange::new(0..chunks.tasks());
    let mut before = 0;
    while !left.is_empty() {
        let first = left.numbers().start;
        let of_slab = weights.part(chunks.take_slab(&mut left, places)).rows;
        if before + of_slab > rows {
            return (first, before);
        }
        before += of_slab;
    }
    (chunks.tasks(), before)
}

/// The numbers of cells and rows of each task, computed without making the task.
struct TaskWeights<'a> {
    chunks: &'a TouchedChunks,
    /// Per axis and touched chunk: the number of indices, and the number of selected indices.
    axes: Vec<Vec<(u64, u64)>>,
    lens: Vec<u64>,
}

impl<'a> TaskWeights<'a> {
    fn new(chunks: &'a TouchedChunks) -> Self {
        let weight = |axis: usize, chunk: u64| {
            let range = chunks.grid().axis_range(axis, chunk);
            let selected = chunks.selection().axes()[axis].within(range.clone()).count();
            (range.end - range.start, selected)
        };
        let of_axis = |(axis, of_axis): (usize, &Vec<u64>)| {
            of_axis.iter().map(|&chunk| weight(axis, chunk)).collect()
        };
        let axes = chunks.axes().iter().enumerate().map(of_axis).collect();
        Self { chunks, axes, lens: chunks.lens() }
    }

    /// Returns the number of cells of a task's chunk, and the number of its rows. Both are products over the
    /// axes, whose factors are known.
    fn of(&self, task: u64) -> (u64, u64) {
        // Splits the place into positions per axis, the last axis first.
        let mut place = self.chunks.place(task);
        let (mut cells, mut rows) = (1, 1);
        for (axis, &len) in self.axes.iter().zip(&self.lens).rev() {
            let (elements, selected) = axis[(place % len) as usize];
            place /= len;
            cells *= elements;
            rows *= selected;
        }
        (cells, rows)
    }

    fn part(&self, tasks: TaskRange) -> TaskPartition {
        let rows = tasks.numbers().map(|task| self.of(task).1).sum();
        TaskPartition { tasks, rows }
    }

    /// Returns how many tasks reach the limit. They are whole slabs, because a slab's rows are interleaved.
    fn needed_tasks(&self, division: DivisionParams) -> u64 {
        let mut left = TaskRange::new(0..self.chunks.tasks());
        let Some(limit) = division.limit else { return left.numbers().end };
        let mut rows = 0;
        while rows < limit && !left.is_empty() {
            rows += self.part(self.chunks.take_slab(&mut left, division.places_per_slab)).rows;
        }
        left.numbers().start
    }

    /// Makes units of the first `tasks` tasks: one per run of `places` places.
    fn units(&self, tasks: u64, places: u64) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut slab = None;
        for task in 0..tasks {
            let of_task = self.chunks.place(task) / places;
            let (cells, rows) = self.of(task);
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
