//! Zarr stores of versions 2 and 3, and reference files.
//!
//! The bytes are parsed in `crate::format::zarr`, and `source::hierarchy` makes tables of the variables.

mod format;
mod references;
mod store;

pub(crate) use format::Zarr;
