//! Sets of selected indices, one per axis.

use std::ops::Range;

/// A sorted set of indices of one axis, kept as ranges that neither touch nor are empty.
///
/// ```
/// use gridfusion_core::grid::AxisSelection;
///
/// let odd_days = AxisSelection::from_mask(&[false, true, true, false, true]);
/// assert_eq!(odd_days.ranges(), [1..3, 4..5]);
/// assert_eq!(odd_days.count(), 3);
/// assert_eq!(odd_days.within(2..5).ranges(), [0..1, 2..3]); // relative to 2
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisSelection {
    /// Length of the axis; all ranges lie below it.
    len: u64,
    ranges: Vec<Range<u64>>,
    /// For each range, the number of selected indices before it. This allows binary search.
    before: Vec<u64>,
}

impl AxisSelection {
    /// Selects every index of an axis of length `len`.
    pub fn all(len: u64) -> Self {
        Self::from_range(len, 0..len)
    }

    /// Selects the indices in `range`, clipped to the axis.
    pub fn from_range(len: u64, range: Range<u64>) -> Self {
        Self::from_ranges(len, [range])
    }

    /// Returns the selection with all gaps of fewer than `len` indices between its ranges filled.
    ///
    /// ```
    /// use gridfusion_core::grid::AxisSelection;
    ///
    /// let selection = AxisSelection::from_ranges(100, [3..5, 8..9, 50..60]);
    /// assert_eq!(selection.with_gaps_filled(10).ranges(), &[3..9, 50..60]);
    /// ```
    #[must_use]
    pub fn with_gaps_filled(&self, len: u64) -> Self {
        let mut filled: Vec<Range<u64>> = Vec::new();
        for range in &self.ranges {
            match filled.last_mut() {
                Some(last) if range.start - last.end < len => last.end = range.end,
                _ => filled.push(range.clone()),
            }
        }
        Self::from_ranges(self.len, filled)
    }

    /// Selects the indices in any of `ranges`, clipped to the axis. The ranges must be sorted by their
    /// starts; ranges that touch or overlap are merged.
    ///
    /// ```
    /// use gridfusion_core::grid::AxisSelection;
    ///
    /// let selection = AxisSelection::from_ranges(9, [0..2, 2..3, 3..3, 5..12]);
    /// assert_eq!(selection.ranges(), [0..3, 5..9]);
    /// ```
    pub fn from_ranges(len: u64, ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            let range = range.start..range.end.min(len);
            match merged.last_mut() {
                _ if range.is_empty() => {}
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        let mut count = 0;
        let mut before = Vec::with_capacity(merged.len());
        for range in &merged {
            before.push(count);
            count += range.end - range.start;
        }
        Self { len, ranges: merged, before }
    }

    /// Selects the indices at which `mask` is true. The axis is as long as the mask.
    pub fn from_mask(mask: &[bool]) -> Self {
        let set = (0..).zip(mask).filter(|(_, set)| **set).map(|(index, _)| index..index + 1);
        Self::from_ranges(mask.len() as u64, set)
    }

    /// Returns the length of the axis, selected or not.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no index is selected.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether every index is selected; true for an axis of length 0.
    pub fn is_all(&self) -> bool {
        match self.ranges.as_slice() {
            [] => self.len == 0,
            [range] => *range == (0..self.len),
            _ => false,
        }
    }

    /// Returns the selected indices as sorted ranges that neither touch nor are empty.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the number of selected indices.
    pub fn count(&self) -> u64 {
        match (self.before.last(), self.ranges.last()) {
            (Some(before), Some(last)) => before + (last.end - last.start),
            _ => 0,
        }
    }

    /// Whether `index` is selected.
    pub fn contains(&self, index: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= index);
        after > 0 && index < self.ranges[after - 1].end
    }

    /// Returns the number of selected indices below `index`.
    pub fn count_before(&self, index: u64) -> u64 {
        let after = self.ranges.partition_point(|range| range.start < index);
        after.checked_sub(1).map_or(0, |last| {
            let range = &self.ranges[last];
            self.before[last] + index.min(range.end) - range.start
        })
    }

    /// Numbers the selected indices from 0 in ascending order, and keeps those with a number in
    /// `positions`. The positions `1..3` of the indices 1, 2, 4 are the indices 2, 4.
    #[must_use]
    pub fn slice(&self, positions: Range<u64>) -> Self {
        // The range that holds the first position is the last one with at most that many indices before it.
        let first = self.before.partition_point(|before| *before <= positions.start);
        let first = first.saturating_sub(1);
        let ranges = self.before[first..]
            .iter()
            .zip(&self.ranges[first..])
            .take_while(|(before, _)| **before < positions.end)
            .map(|(before, range)| {
                let from = range.start + positions.start.saturating_sub(*before);
                from..range.end.min(range.start + (positions.end - before))
            });
        Self::from_ranges(self.len, ranges)
    }

    /// Returns the selected indices in `window`, relative to its start. The result's axis is the
    /// window.
    #[must_use]
    pub fn within(&self, window: Range<u64>) -> Self {
        let first = self.ranges.partition_point(|range| range.end <= window.start);
        let ranges = self.ranges[first..]
            .iter()
            .take_while(|range| range.start < window.end)
            .map(|range| range.start.max(window.start)..range.end.min(window.end))
            .map(|range| range.start - window.start..range.end - window.start);
        Self::from_ranges(window.end - window.start, ranges)
    }

    /// Returns the indices that both selections hold; the axes must be equally long.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.start.max(b.start)..a.end.min(b.end);
            if !both.is_empty() {
                ranges.push(both);
            }
            // Only the range that ends first is used up; the other may meet further ranges.
            if a.end <= b.end {
                left.next();
            } else {
                right.next();
            }
        }
        Self::from_ranges(self.len.min(other.len), ranges)
    }
}

impl AxisSelection {
    /// Returns the indices that either selection holds; the axes must be equally long.
    ///
    /// ```
    /// use gridfusion_core::grid::AxisSelection;
    ///
    /// let (left, right) = (AxisSelection::from_range(9, 5..7), AxisSelection::from_range(9, 1..6));
    /// assert_eq!(left.union(&right).ranges(), [1..7]);
    /// ```
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut ranges: Vec<Range<u64>> =
            self.ranges.iter().chain(&other.ranges).cloned().collect();
        ranges.sort_by_key(|range| range.start);
        Self::from_ranges(self.len.max(other.len), ranges)
    }

    /// Returns the indices of the axis that are not selected.
    ///
    /// ```
    /// use gridfusion_core::grid::AxisSelection;
    ///
    /// let selection = AxisSelection::from_ranges(9, [0..2, 5..7]);
    /// assert_eq!(selection.complement().ranges(), [2..5, 7..9]);
    /// ```
    #[must_use]
    pub fn complement(&self) -> Self {
        let starts = std::iter::once(0).chain(self.ranges.iter().map(|range| range.end));
        let ends = self.ranges.iter().map(|range| range.start).chain([self.len]);
        Self::from_ranges(self.len, starts.zip(ends).map(|(start, end)| start..end))
    }
}

/// One set of indices per axis; the selected cells are the cross product of these sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<AxisSelection>,
}

impl Selection {
    /// Selects every cell of an array of `shape`.
    pub fn all(shape: &[u64]) -> Self {
        Self { axes: shape.iter().map(|&len| AxisSelection::all(len)).collect() }
    }

    /// Selects the cells whose index on each axis is selected.
    pub fn from_axes(axes: Vec<AxisSelection>) -> Self {
        Self { axes }
    }

    /// Returns the selection of each axis.
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Keeps only those indices of `axis` that `other` selects too.
    pub fn restrict(&mut self, axis: usize, other: &AxisSelection) {
        self.axes[axis] = self.axes[axis].intersect(other);
    }

    /// Returns the number of selected cells. It saturates at `u64::MAX`, which no array in a
    /// [`super::ChunkGrid`] exceeds.
    pub fn cells(&self) -> u64 {
        let counts = || self.axes.iter().map(AxisSelection::count);
        if counts().any(|count| count == 0) {
            return 0;
        }
        counts().fold(1, u64::saturating_mul)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::grid::ChunkGrid;

    fn indices(selection: &AxisSelection) -> Vec<u64> {
        selection.ranges().iter().cloned().flatten().collect()
    }

    /// Compares every operation with the same operation on a plain list of booleans.
    #[test]
    fn agrees_with_a_mask() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..5_000 {
            let len = rng.random_range(0..12);
            let mut mask = || -> Vec<bool> { (0..len).map(|_| rng.random_bool(0.5)).collect() };
            let (a, b) = (mask(), mask());
            let (left, right) = (AxisSelection::from_mask(&a), AxisSelection::from_mask(&b));
            let listed: Vec<u64> = (0..len as u64).filter(|&i| a[i as usize]).collect();

            assert_eq!(indices(&left), listed);
            assert_eq!(left.count(), listed.len() as u64);
            assert_eq!(left.is_all(), a.iter().all(|&x| x));
            assert_eq!(left.is_empty(), listed.is_empty());
            for index in 0..len as u64 {
                assert_eq!(left.contains(index), a[index as usize]);
            }
            let both: Vec<bool> = a.iter().zip(&b).map(|(x, y)| *x && *y).collect();
            assert_eq!(left.intersect(&right), AxisSelection::from_mask(&both));

            let from = rng.random_range(0..=len);
            let to = rng.random_range(from..=len);
            let window = left.within(from as u64..to as u64);
            assert_eq!(window, AxisSelection::from_mask(&a[from..to]));
            let slice = left.slice(from as u64..to as u64);
            let expected: Vec<u64> = listed.iter().copied().take(to).skip(from).collect();
            assert_eq!(indices(&slice), expected);

            let (edge, before) = (rng.random_range(1..5), rng.random_range(0..5));
            let origin = before % edge;
            let grid = ChunkGrid::with_origin(&[len as u64], &[edge], &[origin]).unwrap();
            let mut touched: Vec<u64> =
                listed.iter().map(|index| (index + origin) / edge).collect();
            touched.dedup();
            assert_eq!(indices(&grid.chunks_of(0, &left)), touched);
        }
    }

    #[test]
    fn a_selection_counts_its_cells() {
        let mut selection = Selection::all(&[u64::MAX, u64::MAX, 4]);
        selection.restrict(2, &AxisSelection::from_range(4, 4..9));
        assert_eq!(selection.cells(), 0);
        let mut selection = Selection::all(&[3, 5]);
        selection.restrict(1, &AxisSelection::from_range(5, 3..9));
        assert_eq!(selection.cells(), 6);
    }
}
