//! What the fuzz targets share.
//!
//! ```text
//!   bytes of the fuzzer ──▶ cut ──▶ contents, tiles, folders ──▶ parsers, codecs, machines
//!                                                                         │
//!                         check: no bugs of ours, right lengths ◀────────┘
//! ```
//!
//! The crate does not depend on gridfusion, whose DataFusion would take half an hour to build with
//! the fuzzer's instrumentation. It maps the layers that know nothing of DataFusion instead.

pub mod check;
pub mod cut;
pub mod folder;
pub mod parsers;
pub mod tet;
pub mod tiledb;
pub mod tiles;

#[path = "../../src/byte_range.rs"]
pub mod byte_range;
#[path = "../../src/error.rs"]
pub mod error;
#[path = "../../src/format/mod.rs"]
pub mod format;
#[path = "../../src/grid/mod.rs"]
pub mod grid;

pub use error::{Error, ErrorKind, Result};
