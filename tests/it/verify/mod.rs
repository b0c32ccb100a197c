//! Tests of verification.

/// In `.tet.d` packages.
mod package;
/// In sparse TileDB arrays.
mod sparse;
/// In `.tet` files.
pub(crate) mod tet;
/// In TileDB arrays.
pub(crate) mod tiledb;
