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
//! use gridfusion::{GridfusionSessionContextExt, TetReadOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! let ctx = SessionContext::new();
//! ctx.enable_gridfusion();
//! let options = TetReadOptions::default().with_dataset("temperature");
//! ctx.register_tet("temperature", "examples/data/stations.tet", options).await?;
//! ctx.sql("SELECT station, mean(value) FROM temperature GROUP BY station").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which entry point
//!
//! | I have | I use |
//! |---|---|
//! | a `SessionContext` | [`GridfusionSessionContextExt`]: `enable_gridfusion`, `register_tet`, `register_tet_schema`, `read_tet`, and the same for `tiledb`; `register_grid_catalog` for a directory |
//! | SQL only | [`GridfusionSessionStateBuilderExt::with_gridfusion`], then `CREATE EXTERNAL TABLE … STORED AS TET` or `TILEDB`, `read_tet('path')`, `read_tiledb('path')`, `tet_info('path')`, and `FROM 'path'` after `enable_gridfusion_urls` |
//! | my own catalog | [`open_table`] or [`open_tiledb_table`], or [`TetSchema`], [`TileDbSchema`], [`GridCatalog`], [`GridUrlTables`] |
//! | no DataFusion | [`scan`] for Arrow, [`format`](mod@format) for bytes |
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
//! # Layers
//!
//! ```text
//! provider ── exec ── options ── scan ──┬── format   bytes <-> meaning, no I/O
//!                                       ├── io       byte ranges, no arrays
//!                                       └── grid     N-d index arithmetic
//! ```
//!
//! A module imports only what stands to its right; nothing at or below `scan` knows DataFusion.
//!
//! [DataFusion]: https://datafusion.apache.org

#[cfg(target_endian = "big")]
compile_error!(
    "gridfusion hands stored little-endian elements to Arrow as they are and needs a little-endian target"
);

pub mod array;
mod byte_range;
mod error;
pub mod exec;
pub mod extend;
pub mod format;
pub mod grid;
pub mod io;
pub mod options;
pub mod plan;
pub mod provider;
pub mod reduce;
pub mod source;
pub mod tile;
pub mod verify;

pub use error::{Error, ErrorKind, Result};
pub use exec::GridfusionConfig;
pub use io::MappedFile;
pub use options::{ArrayOptions, IoMode, OptionInfo, OptionValue, Secret, ValueKind};
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
