//! Task numbers, which have their own type because a chunk has another number in its grid.

use std::ops::Range;

/// The number of a task in its plan, in reading order; not the number of its chunk in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNumber(u64);

impl TaskNumber {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number, as a sort key.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Consecutive tasks of a plan, as an iterator over their numbers. Readers take tasks from its front.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRange(Range<u64>);

impl TaskRange {
    pub(super) fn new(numbers: Range<u64>) -> Self {
        Self(numbers)
    }

    /// Returns the number of tasks.
    pub fn count_tasks(&self) -> u64 {
        self.0.end - self.0.start
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first and the last task; `None` if there is no task.
    pub fn ends(&self) -> Option<[TaskNumber; 2]> {
        (!self.is_empty()).then(|| [TaskNumber(self.0.start), TaskNumber(self.0.end - 1)])
    }

    /// Returns the task numbers as plain integers.
    pub(super) fn numbers(&self) -> Range<u64> {
        self.0.clone()
    }

    /// Removes the tasks before number `end`, and returns them. Takes none if `end` is before the first task,
    /// and all if `end` is behind the last one.
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
