//! The code that the fuzz targets share.
//!
//! ```text
//!   bytes of the fuzzer ──▶ cut ──▶ contents, tiles, folders ──▶ parsers, codecs, machines
//!                                                                         │
//!                         check: no internal errors, right lengths ◀────────┘
//! ```
//!
//! The crate depends on those of the formats, and not on DataFusion: building that with the fuzzer's instrumentation
//! would take half an hour.

pub mod check;
pub mod cut;
pub mod folder;
pub mod hdf5;
pub mod netcdf3;
pub mod parsers;
pub mod sparse;
pub mod tet;
pub mod tiledb;
pub mod tiles;
pub mod zarr;
