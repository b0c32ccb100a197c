//! Verification of TileDB arrays: every tile of every fragment, and its statistics.
//!
//! ```text
//!   checks ── per fragment and attribute: read_tiles ──▶ locations of tiles, stored statistics
//!               └─▶ tiles: each tile decoded, its statistics computed again
//!                     └─▶ sums: exact, to compare with the stored sum
//! ```

mod checks;
mod sums;
mod tiles;

pub use checks::verify;
