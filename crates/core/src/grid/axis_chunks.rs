//! The borders between the chunks of one axis, regular or listed.
//!
//! ```text
//!   Every { edge: 10, before: 4 }    0 ─── 6 ──────── 16 ── 19       a regular grid, as formats have it
//!   At [0, 31, 59, 90]               0 ──────── 31 ──── 59 ── 90     arrays side by side
//! ```

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

/// The borders between the chunks of an axis, from 0 to the axis' length.
///
/// Plans carry each kind to other processes, so a further kind would be a breaking change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisChunks {
    /// A border every `edge` positions.
    Every {
        /// Positions in a chunk that is not clipped.
        edge: NonZeroU64,
        /// Positions of the first chunk that lie before the axis begins; fewer than `edge`.
        before: u64,
    },
    /// Borders at these positions, ascending: the first is 0, and the last is the length of the axis.
    /// An axis of length 0 has the border 0 only.
    At(Arc<[u64]>),
}

/// The most chunks that an irregular axis may list. Their borders take 128 MiB, 8 bytes each.
const MAX_LISTED: u64 = 1 << 24;

impl AxisChunks {
    /// Returns one chunk for the whole axis.
    pub fn whole(len: u64) -> Self {
        Self::Every { edge: NonZeroU64::new(len).unwrap_or(NonZeroU64::MIN), before: 0 }
    }

    /// Returns the number of chunks of an axis of length `len`; `None` if `len + before` overflows a
    /// `u64`.
    pub(super) fn chunks(&self, len: u64) -> Option<u64> {
        match self {
            _ if len == 0 => Some(0),
            Self::Every { edge, before } => Some(len.checked_add(*before)?.div_ceil(edge.get())),
            Self::At(borders) => Some(borders.len() as u64 - 1),
        }
    }

    /// Returns the chunk that holds `index`, which must lie in the axis.
    pub(super) fn chunk_of(&self, index: u64) -> u64 {
        match self {
            Self::Every { edge, before } => index.saturating_add(*before) / edge.get(),
            Self::At(borders) => {
                // With borders 0, 31, 59, the borders at or before index 31 are two: it lies in chunk 1.
                (borders.partition_point(|border| *border <= index) as u64).saturating_sub(1)
            }
        }
    }

    /// Returns the indices that `chunk` covers on an axis of length `len`.
    pub(super) fn range(&self, chunk: u64, len: u64) -> Range<u64> {
        match self {
            Self::Every { edge, before } => {
                let border = |chunk: u64| chunk.saturating_mul(edge.get()).saturating_sub(*before);
                border(chunk).min(len)..border(chunk.saturating_add(1)).min(len)
            }
            Self::At(borders) => {
                let border = |chunk: u64| {
                    let at = usize::try_from(chunk).ok().and_then(|chunk| borders.get(chunk));
                    at.copied().unwrap_or(len)
                };
                border(chunk)..border(chunk.saturating_add(1))
            }
        }
    }

    /// Returns the number of positions in the longest chunk, as if none were clipped.
    pub fn edge(&self) -> u64 {
        match self {
            Self::Every { edge, .. } => edge.get(),
            Self::At(borders) => {
                let edges = borders.windows(2).map(|pair| pair[1] - pair[0]);
                edges.max().unwrap_or(1)
            }
        }
    }

    /// Returns regular chunks that are `times` as long; listed borders stay as they are.
    #[must_use]
    pub fn times(&self, times: NonZeroU64) -> Self {
        match self {
            Self::Every { edge, before } => {
                Self::Every { edge: edge.saturating_mul(times), before: *before }
            }
            Self::At(_) => self.clone(),
        }
    }

    /// Returns the borders that `self` and `other` share on an axis of length `len`. If both have too
    /// many borders to compare, one chunk covers the axis.
    ///
    /// On an axis of length 90, borders every 30 positions and borders at 31, 59 and 90 share 0 and 90.
    ///
    /// ```
    /// use gridfusion_core::grid::AxisChunks;
    /// # use std::num::NonZeroU64;
    /// # let every = |edge| AxisChunks::Every { edge: NonZeroU64::new(edge).unwrap(), before: 0 };
    ///
    /// assert_eq!(every(4).common(&every(6), 100), every(12));
    /// ```
    #[must_use]
    pub fn common(&self, other: &Self, len: u64) -> Self {
        if self == other {
            return self.clone();
        }
        if let (Self::Every { edge, before }, Self::Every { edge: other, before: same }) =
            (self, other)
            && before == same
        {
            // The borders of both are multiples of their edges, less `before`. They meet at common multiples.
            let edge = lcm(*edge, *other);
            let reaches = len.saturating_add(*before);
            return Self::Every {
                edge: edge.filter(|edge| edge.get() < reaches).unwrap_or(longest(reaches)),
                before: *before,
            };
        }
        let count = |axis: &Self| axis.chunks(len).unwrap_or(u64::MAX);
        let (few, many) = if count(self) <= count(other) { (self, other) } else { (other, self) };
        if len == 0 || count(few) > MAX_LISTED {
            return Self::whole(len);
        }
        // Visit the fewer borders: a border is common if a chunk of the other layout begins there.
        let is_border = |at: &u64| *at == len || many.range(many.chunk_of(*at), len).start == *at;
        Self::At(few.borders(len).filter(is_border).collect())
    }

    /// Puts axes of the given lengths one after the other; `None` if they have too many chunks to list.
    ///
    /// Axes of lengths 3 and 2, both in chunks of 2, have the borders 0, 2, 3, 5: the first axis ends at 3.
    pub fn concat<'a>(parts: impl Iterator<Item = (&'a Self, u64)>) -> Option<Self> {
        let mut borders = vec![0_u64];
        let mut start = 0_u64;
        for (axis, len) in parts {
            if axis.chunks(len)?.checked_add(borders.len() as u64)? > MAX_LISTED {
                return None;
            }
            let end = start.checked_add(len)?;
            borders.extend(axis.borders(len).skip(1).map(|border| start + border));
            start = end;
        }
        Some(Self::At(borders.into()))
    }

    /// Returns the borders within `range` of an axis of length `len`, as an axis that begins there.
    #[must_use]
    pub fn sliced(&self, range: &Range<u64>, len: u64) -> Self {
        match self {
            _ if range.is_empty() => Self::whole(0),
            Self::Every { edge, before } => Self::Every {
                edge: *edge,
                before: range.start.saturating_add(*before) % edge.get(),
            },
            Self::At(_) => {
                let inner = self.borders(len).filter(|at| *at > range.start && *at < range.end);
                let ends = std::iter::once(range.start).chain(inner).chain([range.end]);
                Self::At(ends.map(|at| at - range.start).collect())
            }
        }
    }

    /// Returns all borders of an axis of length `len`.
    fn borders(&self, len: u64) -> impl Iterator<Item = u64> {
        let chunks = self.chunks(len).unwrap_or_default();
        std::iter::once(0).chain((0..chunks).map(move |chunk| self.range(chunk, len).end))
    }
}

/// Returns the edge with which one chunk covers `len` positions; 1 if there are none.
fn longest(len: u64) -> NonZeroU64 {
    NonZeroU64::new(len).unwrap_or(NonZeroU64::MIN)
}

/// Returns the least common multiple; `None` if it overflows.
fn lcm(a: NonZeroU64, b: NonZeroU64) -> Option<NonZeroU64> {
    let (mut divisor, mut rest) = (a.get(), b.get());
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    NonZeroU64::new((a.get() / divisor).checked_mul(b.get())?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn random(len: u64, rng: &mut StdRng) -> AxisChunks {
        if rng.random_bool(0.7) {
            let edge = rng.random_range(1..9);
            let before = if rng.random() { 0 } else { rng.random_range(0..edge) };
            return AxisChunks::Every { edge: NonZeroU64::new(edge).unwrap(), before };
        }
        let inner = (1..len).filter(|_| rng.random_bool(0.4));
        let ends = if len > 0 { vec![0, len] } else { vec![0] };
        AxisChunks::At(inner.chain(ends).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn borders(axis: &AxisChunks, len: u64) -> BTreeSet<u64> {
        axis.borders(len).collect()
    }

    #[test]
    fn chunks_cover_the_axis_once_and_know_their_elements() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..2_000 {
            let len = rng.random_range(0..40);
            let axis = random(len, &mut rng);
            let chunks = axis.chunks(len).unwrap();
            let covered: Vec<u64> = (0..chunks).flat_map(|chunk| axis.range(chunk, len)).collect();
            assert_eq!(covered, (0..len).collect::<Vec<_>>(), "{axis:?}");
            assert!((0..len).all(|at| axis.range(axis.chunk_of(at), len).contains(&at)));
            assert!((0..chunks).all(|chunk| axis.range(chunk, len).count() as u64 <= axis.edge()));
        }
    }

    #[test]
    fn common_borders_are_those_of_both() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..2_000 {
            let len = rng.random_range(0..60);
            let (a, b) = (random(len, &mut rng), random(len, &mut rng));
            let expected: BTreeSet<u64> =
                borders(&a, len).intersection(&borders(&b, len)).copied().collect();
            assert_eq!(borders(&a.common(&b, len), len), expected, "{a:?} {b:?} of {len}");
        }
    }

    #[test]
    fn axes_one_after_the_other_keep_their_borders() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..500 {
            let mut part = |_| {
                let len = rng.random_range(0..20);
                (random(len, &mut rng), len)
            };
            let parts: Vec<(AxisChunks, u64)> = [0; 4].map(&mut part).into();
            let mut expected = BTreeSet::from([0]);
            let mut start = 0;
            for (axis, len) in &parts {
                expected.extend(borders(axis, *len).iter().map(|border| start + border));
                start += len;
            }
            let axis = AxisChunks::concat(parts.iter().map(|(axis, len)| (axis, *len))).unwrap();
            assert_eq!(borders(&axis, start), expected);
        }
        let every_one = AxisChunks::Every { edge: NonZeroU64::MIN, before: 0 };
        assert_eq!(AxisChunks::concat([(&every_one, u64::MAX)].into_iter()), None);
    }

    #[test]
    fn chunks_of_several_end_where_some_did() {
        let mut rng = StdRng::seed_from_u64(4);
        for _ in 0..500 {
            let len = rng.random_range(0..40);
            let (axis, times) = (random(len, &mut rng), rng.random_range(1..9));
            let several = axis.times(NonZeroU64::new(times).unwrap());
            assert!(borders(&several, len).is_subset(&borders(&axis, len)), "{axis:?} {times}");
            assert!(several.edge() <= axis.edge() * times);
        }
    }

    #[test]
    fn slices_keep_the_borders_within() {
        let mut rng = StdRng::seed_from_u64(5);
        for _ in 0..1_000 {
            let len = rng.random_range(1..40);
            let axis = random(len, &mut rng);
            let start = rng.random_range(0..len);
            let range = start..rng.random_range(start..=len);
            let mut expected: BTreeSet<u64> =
                borders(&axis, len).into_iter().filter(|at| range.contains(at)).collect();
            expected.extend([range.start, range.end]);
            let expected: BTreeSet<u64> = expected.iter().map(|at| at - range.start).collect();
            let slice = axis.sliced(&range, len);
            assert_eq!(borders(&slice, range.end - range.start), expected, "{axis:?} {range:?}");
        }
    }

    #[test]
    fn what_is_too_much_to_list_is_one_chunk() {
        let every =
            |edge, before| AxisChunks::Every { edge: NonZeroU64::new(edge).unwrap(), before };
        assert_eq!(every(u64::MAX, 0).common(&every(2, 0), 1 << 60), AxisChunks::whole(1 << 60));
        assert_eq!(every(2, 1).common(&every(3, 0), 1 << 60), AxisChunks::whole(1 << 60));
    }
}
