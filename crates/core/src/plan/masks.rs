//! [`ChunkMask`]: chunks that may hold rows that pass the filters, as combinations along some axes.
//!
//! A filter over two dimensions tells nothing about the third, so its mask covers only its own axes:
//!
//! ```text
//!   touched chunks 2 × 3 × 2     mask over axes 0 and 2: 2 × 2     keep [yes, no, yes, yes]
//!   place (0, 1, 1)              combination (0, 1)                dropped, as are (0, 0, 1) and (0, 2, 1)
//! ```
//!
//! The masks of a query are applied together, once, when its plan is made. That takes O(places × masks).

use crate::error::{Error, Result};

/// A mask over combinations of chunks along some axes: a combination that it drops holds no wanted row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMask {
    /// The axes of `keep`, outermost first.
    pub axes: Vec<usize>,
    /// Whether to keep each combination: row-major over the chunks that the selection touches on `axes`.
    pub keep: Vec<bool>,
    /// Whether the mask comes from zone maps.
    pub by_zones: bool,
}

/// Returns the places that every mask keeps in the cross product of the touched chunks, of which axis `i`
/// has `lens[i]`. The result is `None` without masks. Also counts the places that only zone maps exclude.
pub(super) fn kept_places(lens: &[u64], masks: &[ChunkMask]) -> Result<(Option<Vec<u64>>, u64)> {
    for mask in masks {
        // `None` if the mask names an axis that the array does not have.
        let size: Option<u64> = mask.axes.iter().map(|&axis| lens.get(axis).copied()).product();
        if size != Some(mask.keep.len() as u64) {
            return Err(Error::internal("the size of a chunk mask does not match its axes"));
        }
    }
    if masks.is_empty() {
        return Ok((None, 0));
    }
    let mut walk = Walk { lens, masks, kept: vec![], by_zones: 0 };
    walk.axis(0, 0, &mut vec![0; masks.len()]);
    Ok((Some(walk.kept), walk.by_zones))
}

/// A walk over all places, which tracks the corresponding position in every mask.
struct Walk<'a> {
    lens: &'a [u64],
    masks: &'a [ChunkMask],
    kept: Vec<u64>,
    by_zones: u64,
}

impl Walk<'_> {
    /// Visits all places that begin with `place`, which is over the axes before `axis`. `in_masks` holds the
    /// position in each mask so far; it is the same again when the call returns.
    fn axis(&mut self, axis: usize, place: u64, in_masks: &mut [u64]) {
        // A scalar has one place, and no axis.
        let Some(&len) = self.lens.get(axis) else { return self.visit(place, in_masks) };
        // The distance between neighbours on this axis, in each mask.
        let strides: Vec<u64> = self.masks.iter().map(|mask| self.stride(mask, axis)).collect();
        for at in 0..len {
            let place = place * len + at;
            if axis + 1 < self.lens.len() {
                self.axis(axis + 1, place, in_masks);
            } else {
                self.visit(place, in_masks);
            }
            in_masks.iter_mut().zip(&strides).for_each(|(place, stride)| *place += stride);
        }
        in_masks.iter_mut().zip(&strides).for_each(|(place, stride)| *place -= stride * len);
    }

    fn visit(&mut self, place: u64, in_masks: &[u64]) {
        // A place counts as excluded by zone maps only if every mask that drops it comes from them.
        let (mut kept, mut only_by_zones) = (true, true);
        for (mask, &at) in self.masks.iter().zip(in_masks) {
            if !mask.keep[at as usize] {
                kept = false;
                only_by_zones &= mask.by_zones;
            }
        }
        if kept {
            self.kept.push(place);
        }
        self.by_zones += u64::from(!kept && only_by_zones);
    }

    /// Returns the distance in `mask` between neighbours on `axis`; 0 if the mask does not cover the axis.
    fn stride(&self, mask: &ChunkMask, axis: usize) -> u64 {
        match mask.axes.iter().position(|&it| it == axis) {
            Some(at) => mask.axes[at + 1..].iter().map(|&axis| self.lens[axis]).product(),
            None => 0,
        }
    }
}
