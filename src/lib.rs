//! SQL over chunked N-dimensional arrays: Tetration `.tet` files and dense TileDB arrays as
//! [DataFusion] tables.
//!
//! Each array is a table with one row per cell: a column per dimension, holding the dimension's
//! labels, and a column per value. The arrays stay where they are; range predicates become chunk ranges,
//! only the chunks a query needs are read, and an aggregation over dimensions becomes a reduction of
//! the chunks.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionContext::new();
//! ctx.enable_gridfusion();
//! let options = ArrayOptions::default().with_dataset("temperature");
//! ctx.register_array("temperature", "examples/data/stations.tet", options).await?;
//! ctx.sql("SELECT station, mean(value) FROM temperature GROUP BY station").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which entry point
//!
//! | I have | I use |
//! |---|---|
//! | a `SessionContext` | [`GridfusionSessionContextExt`]: `enable_gridfusion`, `register_array`, `read_array`, `register_array_schema`, `register_array_catalog` |
//! | SQL only | [`GridfusionSessionStateBuilderExt::with_gridfusion`], then `CREATE EXTERNAL TABLE … STORED AS ARRAY`, `read_array('path')`, `tet_info('path')`, and `FROM 'path'` after `enable_gridfusion_urls` |
//! | my own catalog | [`ArrayOpener`] for tables and groups of arrays, [`ArraySchema`], [`GridCatalog`], [`GridUrlTables`] |
//! | a format of my own | [`extend`]: an [`ArrayFormat`], which `register_array_format` adds to a session |
//! | a question of health | [`ArrayGroup::verify`](ArrayGroup) and [`verify`] |
//!
//! All of them recognise the format. [`ArrayOptions`] says how arrays are read. `docs/rust.md` is about programs that
//! embed the crate: threads, memory, cancelling, and SQL that others write.
//!
//! # Errors
//!
//! [`Error`] says whose fault it is ([`ErrorKind`]), in which file, and where in it. In a
//! [`DataFusionError`](datafusion::error::DataFusionError), a mistake of the request is `Plan`, something that this
//! version does not read is `NotImplemented`, and all else is `External`, which a downcast turns back:
//!
//! ```
//! use datafusion::error::DataFusionError;
//! use gridfusion::{Error, ErrorKind};
//!
//! fn is_damaged(error: &DataFusionError) -> bool {
//!     let DataFusionError::External(cause) = error.find_root() else { return false };
//!     cause.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Corrupt)
//! }
//! # assert!(is_damaged(&Error::corrupt("footer", 8, "odd").into()));
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `tiledb` | yes | TileDB arrays, with the compression and cryptography of their filters |
//! | `aws`, `azure`, `gcp`, `http` | no | object stores, for programs that register them |
//!
//! # Compatibility
//!
//! A minor version of gridfusion goes with one major version of DataFusion: this one with 55, whose types are in its
//! signatures. The minimum Rust is 1.95. Types that are marked `#[non_exhaustive]` may gain variants and fields in a
//! patch. Modules that the documentation does not show are internals for benches, fuzzing and the command line, and
//! change without notice.
//!
//! # Examples
//!
//! Programs below `examples/`, each of a page, that need nothing but the files there:
//!
//! | program | shows |
//! |---|---|
//! | `embed` | a file as a schema, and its datasets joined |
//! | `directory` | many files as one table, and a catalog of them |
//! | `memory` | an object in a store, here in memory |
//! | `session` | a session built by hand, with settings and the reduction rule |
//! | `metrics` | what a query read, as numbers |
//! | `export` | a query as a Parquet file, and back |
//! | `make_stations`, `make_climate` | write the files that the others and the documentation read |
//!
//! [DataFusion]: https://datafusion.apache.org

#[cfg(target_endian = "big")]
compile_error!(
    "gridfusion hands stored little-endian elements to Arrow as they are and needs a little-endian target"
);

// Rooms that the documentation hides are open for benches, fuzzing, tests and the command line.
#[doc(hidden)]
pub mod array;
mod byte_range;
mod error;
#[doc(hidden)]
pub mod exec;
pub mod extend;
#[doc(hidden)]
pub mod format;
#[doc(hidden)]
pub mod grid;
#[doc(hidden)]
pub mod io;
#[doc(hidden)]
pub mod options;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod provider;
#[doc(hidden)]
pub mod reduce;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod tile;
pub mod verify;

pub use error::{Error, ErrorKind, Result};
pub use exec::{BestFirstRule, GridReduceExec, GridReduceRule, GridScanExec, GridfusionConfig};
pub use io::MappedFile;
pub use options::{
    ArrayOptions, IoMode, OptionInfo, OptionValue, ResolvedOptions, Scope, Secret, ValueKind,
};
pub use provider::{
    ArrayOpener, ArraySchema, ArrayTableFactory, GridCatalog, GridTable, GridUrlTables,
    GridfusionSessionContextExt, GridfusionSessionStateBuilderExt, Locations, TableOrigin,
    UrlCatalogs,
};
pub use source::{ArrayFormat, ArrayGroup, Formats};

/// Compiles and runs the Rust of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles and runs the Rust of the page about options.
#[cfg(doctest)]
#[doc = include_str!("../docs/options.md")]
struct OptionsPage;

/// Compiles and runs the Rust of the page about programs.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
struct RustPage;
