//! [`CachedRange`]: the kept bytes of a range, and the ranges between them that are still to be read.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// The kept bytes of a range.
#[derive(Debug)]
pub(super) struct CachedRange {
    range: Range<u64>,
    /// Ascending and without overlaps.
    pieces: Vec<(Range<u64>, Bytes)>,
}

impl CachedRange {
    pub(super) fn new(range: &Range<u64>, pieces: Vec<(Range<u64>, Bytes)>) -> Self {
        Self { range: range.clone(), pieces }
    }

    /// Returns the number of kept bytes.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Returns the ranges that are not kept, in order.
    pub(super) fn missing(&self) -> Vec<Range<u64>> {
        let starts = self.pieces.iter().map(|(at, _)| at.start).chain([self.range.end]);
        let ends = [self.range.start].into_iter().chain(self.pieces.iter().map(|(at, _)| at.end));
        ends.zip(starts).map(|(end, start)| end..start).filter(|gap| !gap.is_empty()).collect()
    }

    /// Returns the bytes of the whole range. `read` returns those of a missing range; `None` if they did not come.
    pub(super) fn whole(mut self, read: impl Fn(&Range<u64>) -> Option<Bytes>) -> Option<Bytes> {
        for missing in self.missing() {
            let bytes = read(&missing)?;
            self.pieces.push((missing, bytes));
        }
        self.pieces.sort_unstable_by_key(|(at, _)| at.start);
        if let [(_, only)] = self.pieces.as_slice() {
            return Some(only.clone());
        }
        let mut whole = BytesMut::with_capacity((self.range.end - self.range.start) as usize);
        self.pieces.iter().for_each(|(_, bytes)| whole.extend_from_slice(bytes));
        Some(whole.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init)] // Ranges are meant, not their elements.
    fn missing_ranges_are_read_and_kept_ones_are_not() {
        let object: Vec<u8> = (0..100).collect();
        let bytes =
            |at: &Range<u64>| Bytes::copy_from_slice(&object[at.start as usize..at.end as usize]);
        let held = |range: Range<u64>, pieces: &[Range<u64>]| {
            CachedRange::new(&range, pieces.iter().map(|at| (at.clone(), bytes(at))).collect())
        };
        for (range, pieces, missing) in [
            (10..20, vec![], vec![10..20]),
            (10..20, vec![10..20], vec![]),
            (10..20, vec![10..12, 12..15], vec![15..20]),
            (10..20, vec![11..12, 18..20], vec![10..11, 12..18]),
            (10..10, vec![], vec![]),
        ] {
            let part = held(range.clone(), &pieces);
            assert_eq!(part.missing(), missing);
            assert_eq!(part.len() as u64, pieces.iter().map(|it| it.end - it.start).sum::<u64>());
            assert_eq!(part.whole(|at| Some(bytes(at))), Some(bytes(&range)));
        }
        assert_eq!(held(0..4, &[0..1]).whole(|_| None), None);
    }
}
