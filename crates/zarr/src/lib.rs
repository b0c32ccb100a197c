//! Zarr stores of versions 2 and 3, and reference files.
//!
//! The bytes are parsed in `crate::bytes`, and `source::hierarchy` makes tables of the variables.

pub mod bytes;
mod format;
mod references;
mod store;

pub use format::Zarr;
