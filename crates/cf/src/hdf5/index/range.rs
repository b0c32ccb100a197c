//! Walking down a search tree with a sorted list of wanted keys.

use std::ops::Range;

/// Splits a range of sorted keys among the children of a node. Parts never overlap, whatever the order of the
/// node's own keys, so that a damaged node cannot multiply the work.
pub(super) struct Split<'a> {
    wanted: &'a [Vec<u64>],
    left: Range<usize>,
}

impl<'a> Split<'a> {
    /// Splits the keys of `wanted` in `range`.
    pub(super) fn new(wanted: &'a [Vec<u64>], range: Range<usize>) -> Self {
        let end = range.end.min(wanted.len());
        Self { wanted, left: range.start.min(end)..end }
    }

    /// Returns the keys below `key` that no part holds yet.
    pub(super) fn below(&mut self, key: &[u64]) -> Range<usize> {
        let start = self.left.start;
        let keys = self.wanted.get(self.left.clone()).unwrap_or_default();
        self.left.start += keys.partition_point(|wanted| wanted.as_slice() < key);
        start..self.left.start
    }

    /// Takes `key` out of the keys, if it is the next one; returns its number.
    pub(super) fn take(&mut self, key: &[u64]) -> Option<usize> {
        let number = self.left.start;
        let is_next = !self.left.is_empty() && self.wanted.get(number)?.as_slice() == key;
        is_next.then(|| {
            self.left.start += 1;
            number
        })
    }

    /// Returns the keys that no part holds yet.
    pub(super) fn rest(&mut self) -> Range<usize> {
        let start = self.left.start;
        self.left.start = self.left.end;
        start..self.left.end
    }
}
