//! Which fragments' cells of a chunk are seen: later fragments lie over earlier ones.
//!
//! ```text
//!   ┌─────────────┐ chunk     Fragments are asked newest first. One whose part of the chunk lies
//!   │  ┌─── 2 ────┼──┐        wholly under a newer one is left out (here 1, under 2), and after
//!   │  │  ┌╌ 1 ╌┐ │  │        one that covers the chunk no older one is looked at.
//!   └──┼──┼─────┼─┘  │
//!      └──┴─────┴────┘
//! ```

use std::ops::Range;

use super::window::{Region, Window};

/// The boxes of an array's fragments in a window, the oldest first.
#[derive(Debug)]
pub(super) struct Overlay {
    boxes: Vec<(usize, Region)>,
}

/// What one fragment shows of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) fragment: usize,
    /// The cells, as indices of the window.
    pub(super) region: Region,
}

impl Overlay {
    /// The fragments, by number and covered coordinates, that reach into the window.
    pub(super) fn new<'a>(
        window: &Window,
        fragments: impl Iterator<Item = (usize, &'a [(i128, i128)])>,
    ) -> Self {
        let clipped = fragments.map(|(fragment, ranges)| (fragment, window.clip(ranges)));
        Self { boxes: clipped.filter(|(_, region)| !is_empty(region)).collect() }
    }

    /// Leaves out what lies outside `region`.
    pub(super) fn retain(&mut self, region: &[Range<u64>]) {
        self.boxes.retain(|(_, fragment)| meet(fragment, region));
    }

    /// Leaves out all fragments but those to `keep`.
    pub(super) fn retain_fragments(&mut self, keep: impl Fn(usize) -> bool) {
        self.boxes.retain(|(fragment, _)| keep(*fragment));
    }

    /// The fragments that reach into the window.
    pub(super) fn fragments(&self) -> impl Iterator<Item = usize> {
        self.boxes.iter().map(|(fragment, _)| *fragment)
    }

    /// What is seen of a chunk, the oldest first, looking at the fragments that `takes_part` only.
    pub(super) fn pieces(
        &self,
        chunk: &[Range<u64>],
        mut takes_part: impl FnMut(usize) -> bool,
    ) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = vec![];
        for (fragment, whole) in self.boxes.iter().rev() {
            if !meet(whole, chunk) || !takes_part(*fragment) {
                continue;
            }
            let region = intersect(whole, chunk);
            if pieces.iter().any(|newer| lies_in(&region, &newer.region)) {
                continue;
            }
            let covers = region == chunk;
            pieces.push(Piece { fragment: *fragment, region });
            if covers {
                break;
            }
        }
        pieces.reverse();
        pieces
    }
}

fn is_empty(region: &[Range<u64>]) -> bool {
    region.iter().any(Range::is_empty)
}

fn meet(a: &[Range<u64>], b: &[Range<u64>]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.start < b.end && b.start < a.end)
}

fn intersect(a: &[Range<u64>], b: &[Range<u64>]) -> Region {
    a.iter().zip(b).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect()
}

fn lies_in(a: &[Range<u64>], b: &[Range<u64>]) -> bool {
    a.iter().zip(b).all(|(a, b)| b.start <= a.start && a.end <= b.end)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn overlay(boxes: &[Region]) -> Overlay {
        Overlay { boxes: boxes.iter().cloned().enumerate().collect() }
    }

    #[test]
    fn hidden_layers_are_left_out() {
        let overlay =
            overlay(&[vec![0..9, 0..9], vec![2..4, 2..4], vec![2..5, 2..5], vec![8..9, 8..9]]);
        let fragments = |chunk: Region, all: bool| {
            let pieces = overlay.pieces(&chunk, |fragment| all || fragment != 2);
            pieces.iter().map(|piece| piece.fragment).collect::<Vec<_>>()
        };
        assert_eq!(fragments(vec![0..8, 0..8], true), [0, 2]);
        assert_eq!(fragments(vec![0..8, 0..8], false), [0, 1]);
        assert_eq!(fragments(vec![3..4, 3..4], true), [2]);
        assert_eq!(fragments(vec![9..10, 0..8], true), [0; 0]);
    }

    #[test]
    fn each_cell_shows_the_newest_fragment_that_has_it() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..500 {
            let mut range = || {
                let from = rng.random_range(0..8);
                from..rng.random_range(from + 1..=8)
            };
            let boxes: Vec<Region> = (0..6).map(|_| vec![range(), range()]).collect();
            let chunk = vec![range(), range()];
            let pieces = overlay(&boxes).pieces(&chunk, |fragment| fragment != 3);
            for (x, y) in chunk[0].clone().flat_map(|x| chunk[1].clone().map(move |y| (x, y))) {
                let has = |region: &Region| region[0].contains(&x) && region[1].contains(&y);
                let newest = (0..6).rev().find(|&at| at != 3 && has(&boxes[at]));
                let shown = pieces.iter().rev().find(|piece| has(&piece.region));
                assert_eq!(shown.map(|piece| piece.fragment), newest);
            }
            assert!(pieces.iter().all(|piece| lies_in(&piece.region, &chunk)));
        }
    }
}
