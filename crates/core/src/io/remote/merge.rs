//! Few requests for many ranges: near ones share a request, and long ones are fetched in parts.
//!
//! ```text
//!   wanted      ├─a─┤ ├─b─┤             ├────────────── c ──────────────┤
//!   requests    ├─────────┤             ├───────────────┼───────────────┤
//!                    the gap between a and b is wasted; c is longer than a request may be
//! ```

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::limits::RemoteLimits;

/// The requests that together have all wanted ranges.
#[derive(Debug)]
pub(super) struct Requests {
    /// The ranges to fetch, ascending; they do not overlap.
    pub(super) ranges: Vec<Range<u64>>,
    /// Bytes of `ranges` that are in no wanted range.
    pub(super) wasted: u64,
}

impl Requests {
    /// Plans the requests for `wanted` ranges, in any order. Empty ranges need none. Ranges are not joined over a gap with
    /// bytes that are kept.
    pub(super) fn new(
        wanted: &[Range<u64>],
        limits: &RemoteLimits,
        is_kept: impl Fn(&Range<u64>) -> bool,
    ) -> Self {
        let most = limits.merge.max(1);
        let mut sorted: Vec<Range<u64>> =
            wanted.iter().filter(|range| !range.is_empty()).cloned().collect();
        sorted.sort_unstable_by_key(|range| (range.start, range.end));
        let (mut merged, mut wasted): (Vec<Range<u64>>, u64) = (vec![], 0);
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                Some(last)
                    if range.start - last.end <= limits.gap
                        && range.end - last.start <= most
                        && !is_kept(&(last.end..range.start)) =>
                {
                    wasted += range.start - last.end;
                    last.end = range.end;
                }
                _ => merged.push(range),
            }
        }
        let parts = |range: Range<u64>| {
            let len = range.end - range.start;
            let size = len.div_ceil(len.div_ceil(most));
            let starts = (range.start..range.end).step_by(size as usize);
            starts.map(move |start| start..range.end.min(start + size)).collect::<Vec<_>>()
        };
        Self { ranges: merged.into_iter().flat_map(parts).collect(), wasted }
    }

    /// Cuts a wanted range out of the replies to `ranges`; `None` if a reply is too short.
    pub(super) fn cut(&self, wanted: &Range<u64>, replies: &[Bytes]) -> Option<Bytes> {
        if wanted.is_empty() {
            return Some(Bytes::new());
        }
        let first = self.ranges.partition_point(|range| range.end <= wanted.start);
        let cut = |at: usize| {
            let (range, reply) = (self.ranges.get(at)?, replies.get(at)?);
            let (start, end) = (wanted.start.max(range.start), wanted.end.min(range.end));
            let (from, to) = ((start - range.start) as usize, (end - range.start) as usize);
            (to <= reply.len()).then(|| reply.slice(from..to))
        };
        let piece = cut(first)?;
        if wanted.end <= self.ranges[first].end {
            return Some(self.let_go(piece, &replies[first]));
        }
        let mut whole = BytesMut::with_capacity((wanted.end - wanted.start) as usize);
        whole.extend_from_slice(&piece);
        for at in first + 1..self.ranges.len() {
            if self.ranges[at].start >= wanted.end {
                break;
            }
            whole.extend_from_slice(&cut(at)?);
        }
        Some(whole.freeze())
    }

    /// Copies a small part of a reply in which much is wasted, so that it does not hold all of the reply.
    fn let_go(&self, piece: Bytes, reply: &Bytes) -> Bytes {
        let is_small = self.wasted > 0 && piece.len() < reply.len() / 2;
        if is_small { Bytes::copy_from_slice(&piece) } else { piece }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init)] // Ranges are meant, not their elements.
    fn near_ranges_share_a_request_and_long_ones_are_divided() {
        let limits = RemoteLimits::default().with_gap(4).with_merge(16);
        let plan = |wanted: &[Range<u64>]| {
            let requests = Requests::new(wanted, &limits, |_| false);
            (requests.ranges, requests.wasted)
        };
        assert_eq!(plan(&[0..2, 6..8, 13..14]), (vec![0..8, 13..14], 4));
        assert_eq!(plan(&[6..8, 0..2, 1..3, 9..9]), (vec![0..8], 3));
        // Together they would be longer than a request may be.
        assert_eq!(plan(&[0..15, 16..18]), (vec![0..15, 16..18], 0));
        assert_eq!(plan(&[10..44]), (vec![10..22, 22..34, 34..44], 0));
        assert_eq!(plan(&[]), (vec![], 0));
        let kept = Requests::new(&[0..2, 4..6, 8..9], &limits, |gap| gap.contains(&3));
        assert_eq!((kept.ranges, kept.wasted), (vec![0..2, 4..9], 2));
    }

    #[test]
    fn replies_have_the_wanted_bytes() {
        let mut rng = StdRng::seed_from_u64(17);
        let object: Vec<u8> = (0..255).collect();
        for _ in 0..500 {
            let limits = RemoteLimits::default()
                .with_gap(rng.random_range(0..20))
                .with_merge(rng.random_range(1..60));
            let wanted: Vec<Range<u64>> = (0..rng.random_range(0..6))
                .map(|_| {
                    let start = rng.random_range(0..200);
                    start..start + rng.random_range(0..50)
                })
                .collect();
            let requests = Requests::new(&wanted, &limits, |_| false);
            let bytes = |range: &Range<u64>| &object[range.start as usize..range.end as usize];
            let replies: Vec<Bytes> =
                requests.ranges.iter().map(|it| Bytes::copy_from_slice(bytes(it))).collect();
            for range in &wanted {
                assert_eq!(requests.cut(range, &replies).unwrap(), bytes(range));
            }
            assert!(requests.ranges.iter().all(|it| it.end - it.start <= limits.merge));
            let fetched: u64 = requests.ranges.iter().map(|it| it.end - it.start).sum();
            let mut needed = vec![false; object.len()];
            wanted.iter().for_each(|it| needed[it.start as usize..it.end as usize].fill(true));
            let needed = needed.into_iter().filter(|needed| *needed).count() as u64;
            assert_eq!(fetched - needed, requests.wasted);
        }
    }
}
