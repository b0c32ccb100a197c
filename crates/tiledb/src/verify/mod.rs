//! Verification of TileDB arrays: every tile of every fragment, and its statistics.
//!
//! ```text
//!   checks ── the report
//!     └─▶ fragment_checks ── per fragment and field: read_tiles ──▶ locations of tiles, stored statistics
//!           ├─▶ sparse: R-trees
//!           └─▶ cell_checks: tiles decoded in parallel
//!                 ├─▶ value_tile: statistics of attributes computed again
//!                 │     └─▶ sums: exact, to compare with the stored sum
//!                 └─▶ sparse: the coordinates and times of the same cells together
//! ```

mod cell_checks;
mod checks;
mod fragment_checks;
mod sparse;
mod stored_tile;
mod sums;
mod value_tile;

pub use checks::verify;
pub(crate) use sums::TileSum;
