//! Which fragments' cells of a chunk are seen: later fragments lie over earlier ones.
//!
//! ```text
//!   ┌─────────────┐ chunk     Fragments are asked newest first. One whose part of the chunk lies
//!   │  ┌─── 2 ────┼──┐        wholly under a newer one is left out (here 1, under 2), and after
//!   │  │  ┌╌ 1 ╌┐ │  │        one that covers the chunk no older one is looked at.
//!   └──┼──┼─────┼─┘  │
//!      └──┴─────┴────┘
//! ```
//!
//! Of thousands of fragments few reach into a chunk. They come in blocks with the box around each: those
//! that were written one after the other often lie side by side too.

use std::ops::Range;

use super::window::{Region, Window, hull};

/// Fragments that are passed over at once.
const BLOCK: usize = 32;

/// The boxes of an array's fragments in a window, the oldest first.
#[derive(Debug)]
pub(super) struct Overlay {
    boxes: Vec<(usize, Region)>,
    /// The least boxes around [`BLOCK`] of them each.
    hulls: Vec<Region>,
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
        Self::of_boxes(clipped.filter(|(_, region)| !is_empty(region)).collect())
    }

    fn of_boxes(boxes: Vec<(usize, Region)>) -> Self {
        let block_hull = |block: &[(usize, Region)]| hull(block.iter().map(|(_, region)| region));
        let hulls = boxes.chunks(BLOCK).map(block_hull).collect();
        Self { boxes, hulls }
    }

    /// Leaves out what lies outside `region`.
    pub(super) fn retain(&mut self, region: &[Range<u64>]) {
        self.retain_boxes(|(_, fragment)| meet(fragment, region));
    }

    /// Leaves out all fragments but those to `keep`.
    pub(super) fn retain_fragments(&mut self, keep: impl Fn(usize) -> bool) {
        self.retain_boxes(|(fragment, _)| keep(*fragment));
    }

    fn retain_boxes(&mut self, keep: impl Fn(&(usize, Region)) -> bool) {
        let mut boxes = std::mem::take(&mut self.boxes);
        boxes.retain(keep);
        *self = Self::of_boxes(boxes);
    }

    /// The fragments that may reach into `region`, the newest first.
    fn near<'a>(&'a self, region: &'a [Range<u64>]) -> impl Iterator<Item = &'a (usize, Region)> {
        let blocks = self.hulls.iter().zip(self.boxes.chunks(BLOCK)).rev();
        blocks.filter(|(hull, _)| meet(hull, region)).flat_map(|(_, block)| block.iter().rev())
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
        for (fragment, whole) in self.near(chunk) {
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
        Overlay::of_boxes(boxes.iter().cloned().enumerate().collect())
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

    #[test]
    fn blocks_of_fragments_make_no_difference() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..200 {
            // Along a line as they were written, or anywhere.
            let (count, in_line) = (rng.random_range(0..4 * BLOCK as u64), rng.random::<bool>());
            let boxes = (0..count).map(|at| {
                let from = if in_line { at / 2 } else { rng.random_range(0..60) };
                vec![from..from + rng.random_range(1..4), 0..rng.random_range(1..4)]
            });
            let mut overlay = overlay(&boxes.collect::<Vec<_>>());
            if rng.random() {
                overlay.retain(&[10..50, 0..2]);
            }
            if rng.random() {
                overlay.retain_fragments(|fragment| fragment % 3 != 0);
            }
            let from = rng.random_range(0..60);
            let chunk = vec![from..from + rng.random_range(1..9), 0..4];
            let near: Vec<usize> = overlay.near(&chunk).map(|(fragment, _)| *fragment).collect();
            assert!(near.is_sorted_by(|newer, older| newer > older));
            for (fragment, region) in &overlay.boxes {
                assert!(near.contains(fragment) || !meet(region, &chunk));
            }
        }
    }

    #[test]
    fn blocks_elsewhere_are_passed_over() {
        let boxes: Vec<Region> = (0..10 * BLOCK as u64).map(|at| vec![at..at + 1, 0..4]).collect();
        let overlay = overlay(&boxes);
        let chunk = [BLOCK as u64 * 4..BLOCK as u64 * 5 + 1, 0..4];
        assert_eq!(overlay.near(&chunk).count(), 2 * BLOCK);
        assert_eq!(overlay.pieces(&chunk, |_| true).len(), BLOCK + 1);
    }
}
