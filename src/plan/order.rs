//! In which order rows come, and how to read them in another.
//!
//! Chunks come in row-major order of their grid, the cells of a chunk in row-major order of the chunk.
//! That is an order of rows only where no chunk boundary gets in the way; where one does, the chunks of
//! a *slab* are held together and their rows interleaved:
//!
//! ```text
//!                 one by one           in order of time
//!   chunks        ┌─┐ ┌─┐              ┌─┬─┐              slab of two chunks: each of its times is
//!   time 0        │1│ │3│              │1 2│              read across them before the next
//!   time 1        │2│ │4│              │3 4│
//!                 └─┘ └─┘              └─┴─┘
//! ```

use super::touched::TouchedChunks;

/// How much of an array must be held together to read its rows in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabShape {
    /// Chunks of a slab have the coordinates on this many leading axes in common.
    pub axes: usize,
    /// Chunks of the largest slab, at most.
    pub chunks: u64,
    /// Cells of these chunks, at most.
    pub cells: u64,
}

/// An order in which rows are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadOrder {
    /// Of the leading axes by which rows are in order, whether they descend.
    pub(super) descending: Vec<bool>,
    /// How many places in the cross product of touched chunks a slab takes.
    pub(super) places_per_slab: u64,
}

impl ReadOrder {
    /// The order by the leading axes of `chunks`; per axis whether it descends.
    pub(super) fn new(chunks: &TouchedChunks, descending: Vec<bool>) -> Self {
        let slab = SlabShape::new(chunks, descending.len());
        let places_per_slab = chunks.lens()[slab.axes..].iter().product();
        Self { descending, places_per_slab }
    }
}

impl SlabShape {
    /// What must be held together for rows in order of the first `ordered` axes.
    pub(super) fn new(chunks: &TouchedChunks, ordered: usize) -> Self {
        let rank = chunks.axes().len();
        // Chunks across the axes after the first thick one are interleaved.
        let thick = (0..ordered).find(|&axis| is_thick(chunks, axis));
        let axes = thick.map_or(rank, |axis| axis + 1);
        let extents = chunks.axes().iter().enumerate().map(|(axis, of_axis)| {
            let extents = of_axis.iter().map(|&chunk| {
                let range = chunks.grid().axis_range(axis, chunk);
                range.end - range.start
            });
            if axis < axes { extents.max().unwrap_or(0) } else { extents.sum() }
        });
        let cells = extents.fold(1, u64::saturating_mul);
        let chunks = chunks.lens()[axes..].iter().fold(1, |all: u64, &len| all.saturating_mul(len));
        Self { axes, chunks, cells }
    }
}

/// How many leading axes chunks that are read one by one are in order of. Chunks across an axis break the
/// order of the axes before it, unless a chunk holds one index of those.
pub(super) fn ordered_axes(chunks: &TouchedChunks) -> usize {
    let rank = chunks.axes().len();
    for axis in 0..rank {
        if chunks.axes()[axis + 1..].iter().all(|chunks| chunks.len() <= 1) {
            return rank;
        }
        if is_thick(chunks, axis) {
            return axis;
        }
    }
    rank
}

/// Whether a chunk holds several selected indices of `axis`.
fn is_thick(chunks: &TouchedChunks, axis: usize) -> bool {
    let selected = &chunks.selection().axes()[axis];
    let several = |&chunk: &u64| selected.within(chunks.grid().axis_range(axis, chunk)).count() > 1;
    chunks.axes()[axis].iter().any(several)
}
