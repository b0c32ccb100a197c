//! Tests of verification.

/// In HDF5 files.
#[cfg(feature = "hdf5")]
mod hdf5;
/// In `.tet.d` packages.
mod package;
/// In sparse TileDB arrays.
mod sparse;
/// In `.tet` files.
pub(crate) mod tet;
/// In TileDB arrays.
pub(crate) mod tiledb;
