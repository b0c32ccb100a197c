//! The order of a plan's rows, and the slabs of chunks that another order needs.
//!
//! Chunks come in row-major order of their grid, and the cells of a chunk in row-major order of the chunk.
//! Rows of chunks that lie side by side are then not sorted by dimensions. To sort them, a scan holds the
//! chunks of a *slab* in memory and interleaves their rows:
//!
//! ```text
//!                 one by one           in order of time
//!   chunks        ┌─┐ ┌─┐              ┌─┬─┐              slab of two chunks: each of its times is
//!   time 0        │1│ │3│              │1 2│              read across them before the next
//!   time 1        │2│ │4│              │3 4│
//!                 └─┘ └─┘              └─┴─┘
//! ```
//!
//! `ScanPlan::in_order` reverses the chunks of descending axes. The scan declares the requested order literally.

use super::touched::TouchedChunks;

/// The size of the slabs that a scan holds in memory to read rows in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabShape {
    /// The number of leading axes on which all chunks of a slab have the same coordinates.
    pub axes: usize,
    /// An upper bound of the number of chunks in a slab.
    pub chunks: u64,
    /// An upper bound of the number of cells in the chunks of a slab.
    pub cells: u64,
}

/// An order to read rows in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadOrder {
    /// Per leading axis that sorts the rows, whether its indices descend.
    pub(super) descending: Vec<bool>,
    /// The number of places per slab, in the cross product of touched chunks.
    pub(super) places_per_slab: u64,
}

impl ReadOrder {
    /// Makes the order by the leading axes of `chunks`: `descending` has one entry per axis.
    pub(super) fn new(chunks: &TouchedChunks, descending: Vec<bool>) -> Self {
        let slab = SlabShape::new(chunks, descending.len());
        let places_per_slab = chunks.lens()[slab.axes..].iter().product();
        Self { descending, places_per_slab }
    }
}

impl SlabShape {
    /// Returns the size of the slabs for rows in order of the first `ordered` axes.
    ///
    /// In the picture above, with 3 chunks along time and rows in order of time, `axes` is 1: a slab is the
    /// 2 chunks of one time coordinate. If each chunk held one selected time, no chunks would be
    /// interleaved, and `axes` would be 2, the rank. A slab is then one chunk.
    pub(super) fn new(chunks: &TouchedChunks, ordered: usize) -> Self {
        let rank = chunks.axes().len();
        // All chunks along the axes after the first thick one are interleaved.
        let thick = (0..ordered).find(|&axis| has_wide_chunk(chunks, axis));
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

/// Returns how many leading axes sort the rows when chunks are read one by one. Several chunks along an
/// axis break the order of the axes before it, unless each chunk holds one selected index of those.
pub(super) fn ordered_axes(chunks: &TouchedChunks) -> usize {
    let rank = chunks.axes().len();
    for axis in 0..rank {
        if chunks.axes()[axis + 1..].iter().all(|chunks| chunks.len() <= 1) {
            return rank;
        }
        if has_wide_chunk(chunks, axis) {
            return axis;
        }
    }
    rank
}

/// Whether any chunk holds several selected indices of `axis`.
fn has_wide_chunk(chunks: &TouchedChunks, axis: usize) -> bool {
    let selected = &chunks.selection().axes()[axis];
    let several = |&chunk: &u64| selected.within(chunks.grid().axis_range(axis, chunk)).count() > 1;
    chunks.axes()[axis].iter().any(several)
}
