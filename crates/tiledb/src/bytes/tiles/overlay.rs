//! Overlapping fragments: finds which cells of a chunk each of them shows. Newer fragments override
//! older ones.
//!
//! ```text
//!   ┌──────── tile ────────┐     TileDB decides twice. Per tile, it drops a fragment whose part of the tile
//!   │ ┌────── 3 ──────┐    │     lies wholly in the part of one newer fragment, whatever attributes the
//!   │ │ ┌╌ 1 ╌┐  ┌╌╌╌╌┼╌╌┐ │     newer one has: 3 drops 1, but not 2. Per cell, it takes the newest of
//!   │ │ └╌╌╌╌╌┘  └╌ 2 ┼╌╌┘ │     the remaining fragments that cover the cell and have the attribute.
//!   │ └───────────────┘    │     If 3 lacks the attribute, all of 2 shows and nothing of 1.
//!   └──────────────────────┘
//! ```
//!
//! Regions count cells from the start of the first tiles of the [window](Window), which may be before
//! the window itself. Cells outside the window also determine whether a fragment is dropped.
//!
//! Few of thousands of fragments reach into a given tile. Fragments are therefore grouped in blocks,
//! each with the box around it, and skipped together. Successive writes are often neighbours in the
//! array too.

use std::ops::Range;

use super::window::{Region, Window, hull};
use crate::bytes::array::TileDbArray;

/// The number of fragments per block, which one comparison can skip.
const BLOCK: usize = 32;

/// The boxes of an array's fragments in the tiles of a window, the oldest first.
#[derive(Debug)]
pub(in crate::bytes) struct Overlay {
    /// The number of each fragment and its box, clipped to the window's tiles. Fragments without cells in
    /// these are left out.
    boxes: Vec<(usize, Region)>,
    /// Per block of [`BLOCK`] fragments, the least box around their boxes.
    hulls: Vec<Region>,
    /// The least box around all boxes.
    hull: Region,
}

/// A box of cells of one fragment.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::bytes) struct FragmentBox {
    /// The number of the fragment in the array.
    pub(in crate::bytes) fragment: usize,
    /// Its cells, counted from the start of the window's first tiles.
    pub(in crate::bytes) region: Region,
}

impl TileDbArray {
    /// Returns the boxes of the fragments in the tiles of `window`.
    pub(in crate::bytes) fn overlay(&self, window: &Window) -> Overlay {
        Overlay::new(window, self.boxes())
    }
}

impl Overlay {
    /// Collects the fragments that reach into tiles of the window. `fragments` are numbers and covered
    /// coordinates, the oldest first.
    pub(in crate::bytes) fn new<'a>(
        window: &Window,
        fragments: impl Iterator<Item = (usize, &'a [(i128, i128)])>,
    ) -> Self {
        let clipped = fragments.map(|(fragment, ranges)| (fragment, window.clip(ranges)));
        Self::of_boxes(clipped.filter(|(_, region)| !is_empty(region)).collect())
    }

    fn of_boxes(boxes: Vec<(usize, Region)>) -> Self {
        let block_hull = |block: &[(usize, Region)]| hull(block.iter().map(|(_, region)| region));
        let hulls: Vec<Region> = boxes.chunks(BLOCK).map(block_hull).collect();
        let hull = hull(hulls.iter());
        Self { boxes, hulls, hull }
    }

    /// Drops the fragments that lie wholly outside `region`.
    pub(in crate::bytes) fn retain(&mut self, region: &[Range<u64>]) {
        let mut boxes = std::mem::take(&mut self.boxes);
        boxes.retain(|(_, fragment)| meet(fragment, region));
        *self = Self::of_boxes(boxes);
    }

    /// Returns the fragments that may reach into `region`, the newest first.
    fn near<'a>(&'a self, region: &'a [Range<u64>]) -> impl Iterator<Item = &'a (usize, Region)> {
        let blocks = self.hulls.iter().zip(self.boxes.chunks(BLOCK)).rev();
        blocks.filter(|(hull, _)| meet(hull, region)).flat_map(|(_, block)| block.iter().rev())
    }

    /// Returns the numbers of the fragments that reach into tiles of the window.
    pub(in crate::bytes) fn fragments(&self) -> impl Iterator<Item = usize> {
        self.boxes.iter().map(|(fragment, _)| *fragment)
    }

    /// Returns the fragments' parts of a whole tile, the newest first. Parts that lie wholly in a newer
    /// part are dropped.
    pub(in crate::bytes) fn parts(&self, tile: &[Range<u64>]) -> Vec<FragmentBox> {
        // The cells of the tile that any fragment can reach. Once a part covers them, all older parts are
        // hidden.
        let reached = intersect(&self.hull, tile);
        let mut parts: Vec<FragmentBox> = vec![];
        for (fragment, whole) in self.near(tile) {
            let region = intersect(whole, tile);
            if is_empty(&region) || parts.iter().any(|newer| lies_in(&region, &newer.region)) {
                continue;
            }
            let covers_all = lies_in(&reached, &region);
            parts.push(FragmentBox { fragment: *fragment, region });
            if covers_all {
                break;
            }
        }
        parts
    }
}

/// Returns the pieces that a chunk shows, the oldest first. `parts` are the parts of its tile, the
/// newest first; only fragments that `have` the attribute show.
///
/// Pieces may overlap: the newest one counts. Only pieces that a single newer one covers are left out, so a
/// tile that several newer ones cover together is read in vain.
pub(in crate::bytes) fn pieces(
    parts: &[FragmentBox],
    chunk: &[Range<u64>],
    have: impl Fn(usize) -> bool,
) -> Vec<FragmentBox> {
    let mut pieces: Vec<FragmentBox> = vec![];
    for part in parts.iter().filter(|part| have(part.fragment)) {
        let region = intersect(&part.region, chunk);
        if !is_empty(&region) && !pieces.iter().any(|newer| lies_in(&region, &newer.region)) {
            pieces.push(FragmentBox { fragment: part.fragment, region });
        }
    }
    pieces.reverse();
    pieces
}

/// Whether `newer` pieces together hide all of `region`. To limit the work, the answer is `false` if
/// more than 256 boxes remain on the way. Then the caller may refuse a hidden tile that cannot be read, which
/// is the safe side.
pub(in crate::bytes) fn is_hidden(region: &[Range<u64>], newer: &[FragmentBox]) -> bool {
    const MAX_BOXES: usize = 256;
    let mut left = vec![region.to_vec()];
    for piece in newer {
        left = left.iter().flat_map(|region| without(region, &piece.region)).collect();
        if left.len() > MAX_BOXES {
            return false;
        }
    }
    left.is_empty()
}

/// Returns the part of `region` outside `other`, as disjoint boxes, at most two per axis. In two dimensions:
///
/// ```text
///   ┌───────────────┐     axis 0: 1 and 2, the rows above and below `other`
///   │       1       │     axis 1: 3 and 4, beside `other` in the rows that are left
///   ├────┬─────┬────┤
///   │ 3  │other│ 4  │
///   ├────┴─────┴────┤
///   │       2       │
///   └───────────────┘
/// ```
fn without(region: &[Range<u64>], other: &[Range<u64>]) -> Vec<Region> {
    if !meet(region, other) {
        return vec![region.to_vec()];
    }
    let mut rest = region.to_vec();
    let mut outside = vec![];
    for (axis, other) in other.iter().enumerate() {
        let own = rest[axis].clone();
        for side in [own.start..other.start, other.end..own.end] {
            if !side.is_empty() {
                rest[axis] = side;
                outside.push(rest.clone());
            }
        }
        // Later axes only cut up what `other` has on this one.
        rest[axis] = own.start.max(other.start)..own.end.min(other.end);
    }
    outside
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

    fn fragments(pieces: &[FragmentBox]) -> Vec<usize> {
        pieces.iter().map(|piece| piece.fragment).collect()
    }

    #[test]
    fn hidden_layers_are_left_out() {
        let overlay =
            overlay(&[vec![0..9, 0..9], vec![2..4, 2..4], vec![2..5, 2..5], vec![8..9, 8..9]]);
        let seen = |tile: Region, all: bool| {
            let parts = overlay.parts(&tile);
            fragments(&pieces(&parts, &tile, |fragment| all || fragment != 2))
        };
        assert_eq!(seen(vec![0..8, 0..8], true), [0, 2]);
        assert_eq!(seen(vec![3..4, 3..4], true), [2]);
        assert_eq!(seen(vec![9..10, 0..8], true), [0; 0]);
        // If 2 lacks the attribute, parts wholly inside 2 are hidden, and parts that reach out of it
        // show.
        assert_eq!(seen(vec![0..8, 0..8], false), [0]);
        assert_eq!(seen(vec![3..4, 3..4], false), [0; 0]);
        assert_eq!(fragments(&overlay.parts(&[3..4, 3..4])), [2]);
    }

    #[test]
    fn what_lies_outside_the_window_decides_too() {
        let overlay = overlay(&[vec![0..8, 0..1], vec![2..8, 0..1]]);
        let parts = overlay.parts(&[0..8, 0..1]);
        let seen = |from| fragments(&pieces(&parts, &[from..8, 0..1], |fragment| fragment == 0));
        assert_eq!([seen(0), seen(2)], [[0], [0]]);
    }

    fn range(rng: &mut StdRng) -> Range<u64> {
        let from = rng.random_range(0..8);
        from..rng.random_range(from + 1..=8)
    }

    #[test]
    fn each_cell_shows_the_newest_part_that_counts_and_has_it() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..500 {
            let mut region = || vec![range(&mut rng), range(&mut rng)];
            let boxes: Vec<Region> = (0..6).map(|_| region()).collect();
            let (tile, window) = (region(), region());
            let chunk = intersect(&tile, &window);
            let parts = overlay(&boxes).parts(&tile);
            let pieces = pieces(&parts, &chunk, |fragment| fragment != 3);
            let part = |at: usize| intersect(&boxes[at], &tile);
            let cells = |region: &Region| {
                let (ys, xs) = (region[0].clone(), region[1].clone());
                ys.flat_map(|y| xs.clone().map(move |x| (y, x))).collect::<Vec<_>>()
            };
            // Cell by cell, unlike the code under test.
            let covers = |newer: usize, older: usize| {
                cells(&part(older)).iter().all(|cell| cells(&part(newer)).contains(cell))
            };
            for cell in cells(&chunk) {
                let shows = |at: &usize| {
                    let counts = !(at + 1..6).any(|newer| covers(newer, *at));
                    *at != 3 && counts && cells(&part(*at)).contains(&cell)
                };
                let shown = pieces.iter().rev().find(|piece| cells(&piece.region).contains(&cell));
                assert_eq!(shown.map(|piece| piece.fragment), (0..6).rev().find(shows));
            }
            assert!(pieces.iter().all(|piece| lies_in(&piece.region, &chunk)));
        }
    }

    #[test]
    fn boxes_hide_one_another_together() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut hidden = 0;
        for _ in 0..2_000 {
            let mut region = || vec![range(&mut rng), range(&mut rng)];
            let below = region();
            let newer: Vec<FragmentBox> =
                (0..5).map(|fragment| FragmentBox { fragment, region: region() }).collect();
            let mut cells = below[0].clone().flat_map(|y| below[1].clone().map(move |x| (y, x)));
            let expected = cells.all(|(y, x)| {
                newer.iter().any(|it| it.region[0].contains(&y) && it.region[1].contains(&x))
            });
            assert_eq!(is_hidden(&below, &newer), expected);
            hidden += usize::from(expected);
        }
        assert!((200..1_800).contains(&hidden), "{hidden}");
    }

    #[test]
    fn blocks_of_fragments_make_no_difference() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..200 {
            // Boxes along a line in the order of writing, or anywhere.
            let (count, in_line) = (rng.random_range(0..4 * BLOCK as u64), rng.random::<bool>());
            let boxes = (0..count).map(|at| {
                let from = if in_line { at / 2 } else { rng.random_range(0..60) };
                vec![from..from + rng.random_range(1..4), 0..rng.random_range(1..4)]
            });
            let mut overlay = overlay(&boxes.collect::<Vec<_>>());
            if rng.random() {
                overlay.retain(&[10..50, 0..2]);
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
        assert_eq!(overlay.parts(&chunk).len(), BLOCK + 1);
    }
}
