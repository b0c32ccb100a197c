//! Numbers of tasks, a type of their own: a chunk has another number in its grid.

use std::ops::Range;

/// The number of a task in its plan, by the order of reading; not the number of its chunk in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNumber(u64);

impl TaskNumber {
    /// The number, for keys to sort by.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Consecutive tasks of a plan, as an iterator over their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRange(Range<u64>);

impl TaskRange {
    pub(super) fn new(numbers: Range<u64>) -> Self {
        Self(numbers)
    }

    /// How many tasks there are.
    pub fn count_tasks(&self) -> u64 {
        self.0.end - self.0.start
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first and the last task, unless there is none.
    pub fn ends(&self) -> Option<[TaskNumber; 2]> {
        (!self.is_empty()).then(|| [TaskNumber(self.0.start), TaskNumber(self.0.end - 1)])
    }

    /// The numbers as they are.
    pub(super) fn numbers(&self) -> Range<u64> {
        self.0.clone()
    }

    /// Takes the first tasks off, up to the one numbered `end`.
    pub(super) fn take_until(&mut self, end: u64) -> Self {
        let taken = self.0.start..end.clamp(self.0.start, self.0.end.max(self.0.start));
        self.0.start = taken.end;
        Self(taken)
    }
}

impl Iterator for TaskRange {
    type Item = TaskNumber;

    fn next(&mut self) -> Option<TaskNumber> {
        self.0.next().map(TaskNumber)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
