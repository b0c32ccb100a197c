//! The code that the fuzz targets share.
//!
//! ```text
//!   bytes of the fuzzer ──▶ cut ──▶ contents, tiles, folders ──▶ parsers, codecs, machines
//!                                                                         │
//!                         check: no internal errors, right lengths ◀────────┘
//! ```
//!
//! The crate includes the source files of the layers below DataFusion instead of depending on
//! gridfusion. Building DataFusion with the fuzzer's instrumentation would take half an hour.

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

#[path = "../../src/byte_range.rs"]
pub mod byte_range;
#[path = "../../src/error/mod.rs"]
pub mod error;
#[path = "../../src/format/mod.rs"]
pub mod format;
#[path = "../../src/grid/mod.rs"]
pub mod grid;

pub use error::{Error, ErrorKind, Result};
