//! Verification of TileDB arrays: every tile of every fragment, and its statistics.

mod checks;
mod sums;
mod tiles;

pub use checks::verify;
