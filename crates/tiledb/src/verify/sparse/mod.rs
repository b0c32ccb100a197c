//! The checks of sparse fragments: rectangles, coordinates, their order, and times.
//!
//! ```text
//!   cells ── decodes the tiles with coordinates and times of the same cells
//!     └─▶ fragment_cells ── checks them
//!           ├─▶ ends         least and greatest coordinate: in the domain? those of the R-tree?
//!           ├─▶ neighbours   each cell and the next one: in order? different?
//!           └─▶ times        in the time of the fragment?
//!   rtree ── checks a whole R-tree, without cells
//! ```

mod cells;
mod ends;
mod fragment_cells;
mod names;
mod neighbours;
mod rtree;
mod times;

pub(super) use cells::StoredCells;
pub(super) use fragment_cells::FragmentCells;
pub(super) use names::{CHECKS, RTREE};
pub(super) use rtree::rtree_findings;
