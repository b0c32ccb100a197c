//! Cells of the same coordinates in a sparse array: which tiles may hold them, and which cell is the newest.
//!
//! ```text
//!   tiles ─ overlaps ─▶ groups of tiles ─ keys ─▶ Window ─▶ the cells that newer ones replace
//!                     └▶ tiles alone
//! ```

mod overlap;
mod shared_places;
mod window;

pub use overlap::{Overlaps, coordinates, overlapping_fragments, overlaps};
pub use window::{BYTES_PER_CELL, Decisions, RunCell, SortedRun, Window};
