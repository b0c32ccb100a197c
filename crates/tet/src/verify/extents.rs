//! Ranges that should cover a whole exactly once, with a search for gaps and overlaps.
//!
//! The index checks use it twice: for the chunk numbers of a dataset, and for the bytes of payloads.
//!
//! ```text
//!   added             0..3, 3..5, 8..10, 4..6
//!   ranges            0..5, 8..10, 4..6             3..5 continued 0..3
//!   sorted            0..5, 4..6, 8..10
//!   compare(0..12)    gaps 6..8, 10..12             overlaps 4..5
//! ```
//!
//! Memory grows with the number of interruptions, not with the number of ranges. A file whose rows are in
//! the order of its writer takes one range per dataset.

use std::ops::Range;

/// Ranges in the order in which they were added. A range that begins where the one before it ends is
/// merged with that one, so ranges in order take almost no memory.
#[derive(Debug, Default)]
pub(super) struct Extents {
    ranges: Vec<Range<u64>>,
}

impl Extents {
    /// Adds a range, unless it is empty.
    pub(super) fn add(&mut self, range: Range<u64>) {
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// The number of ranges after merging.
    pub(super) fn run_count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the gaps in `whole` and the overlaps, both in order. Everything before `whole` counts as
    /// an overlap. A place that n ranges cover is in n - 1 overlaps.
    pub(super) fn compare(mut self, whole: Range<u64>) -> Comparison {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let (mut gaps, mut overlaps) = (vec![], vec![]);
        // Everything before `covered` lies in a range, or was reported as a gap.
        let mut covered = whole.start;
        for range in self.ranges {
            if range.start > covered {
                gaps.push(covered..range.start);
            } else if range.start < covered {
                overlaps.push(range.start..range.end.min(covered));
            }
            covered = covered.max(range.end);
        }
        if covered < whole.end {
            gaps.push(covered..whole.end);
        }
        Comparison { gaps, overlaps }
    }
}

/// The parts that no range of [`Extents`] covers, and the parts that several ranges cover.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) gaps: Vec<Range<u64>>,
    pub(super) overlaps: Vec<Range<u64>>,
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn what_is_in_order_is_one_stretch() {
        let mut extents = Extents::default();
        (0..1000).for_each(|at| extents.add(at * 3..at * 3 + 3));
        assert_eq!(extents.run_count(), 1);
        assert_eq!(extents.compare(0..3000), Comparison { gaps: vec![], overlaps: vec![] });
    }

    #[test]
    fn gaps_and_overlaps_are_those_of_counting() {
        let mut rng = StdRng::seed_from_u64(5);
        for _ in 0..500 {
            let mut extents = Extents::default();
            let mut counts = [0_u64; 40];
            for _ in 0..rng.random_range(0..8) {
                let start = rng.random_range(0..35_u64);
                let range = start..start + rng.random_range(0..5);
                range.clone().for_each(|at| counts[at as usize] += 1);
                extents.add(range);
            }
            let found = extents.compare(0..40);
            for at in 0..40_u64 {
                let count = counts[at as usize];
                assert_eq!(found.gaps.iter().any(|gap| gap.contains(&at)), count == 0);
                let twice = found.overlaps.iter().filter(|range| range.contains(&at)).count();
                assert_eq!(twice as u64, count.saturating_sub(1));
            }
        }
    }
}
