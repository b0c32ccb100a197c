//! SQL over chunked N-dimensional arrays: NetCDF and HDF5 files, Zarr stores, Icechunk repositories, TileDB arrays and Tetration `.tet`
//! files as [DataFusion] tables.
//!
//! Each array is a table with one row per cell: a column per dimension, which holds the dimension's
//! labels, and a column per variable. The arrays stay in their files. Predicates on dimensions select
//! chunks, and a query reads only the chunks that it needs. An aggregation over dimensions reduces the
//! chunks without making rows.
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
//! | you have | use |
//! |---|---|
//! | a `SessionContext` | [`GridfusionSessionContextExt`]: `enable_gridfusion`, `register_array`, `read_array`, `register_array_schema`, `register_array_catalog` |
//! | a `DataFrame` | [`GridfusionDataFrameExt`]: `write_array` |
//! | SQL only | [`GridfusionSessionStateBuilderExt::with_gridfusion`], then `CREATE EXTERNAL TABLE … STORED AS ARRAY`, `read_array('path')`, `array_info('path')`, and `FROM 'path'` after `enable_gridfusion_urls` |
//! | a catalog of your own | [`ArrayOpener`] for tables and groups of arrays, [`ArraySchema`], [`GridCatalog`], [`GridUrlTables`] |
//! | a format of your own | [`extend`]: an [`ArrayFormat`], which `register_array_format` adds to a session |
//! | a session of chosen parts | [`gridfusion_rules`], [`functions`], [`GridfusionConfig`] |
//! | workers in other processes | `codec`, with the feature of that name |
//! | no need for SQL | the crates of the formats, [`cf`], [`tet`], [`tiledb`] and [`zarr`]: labels, record batches and typed cells |
//! | files that may be damaged | [`ArrayGroup::verify`](ArrayGroup) and [`verify`] |
//!
//! All entry points recognise the format of the arrays. [`ArrayOptions`] sets options, such as the dataset. The page
//! `docs/embedding.md` of the repository covers threads, memory, cancellation and untrusted SQL.
//!
//! # Errors
//!
//! An [`Error`] has a kind ([`ErrorKind`]), which distinguishes mistakes in the request from damaged files. It often
//! has a file and a place in that file. In a [`DataFusionError`](datafusion::error::DataFusionError), a mistake in the
//! request is `Plan`, and a feature that this version lacks is `NotImplemented`. All other errors are `External`, and
//! a downcast returns the [`Error`]:
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
//! | `zarr` | yes | Zarr stores and Icechunk repositories, and the compression of their chunks |
//! | `hdf5` | yes | NetCDF-4 and other HDF5 files; NetCDF-3 needs no feature |
//! | `codec` | no | physical plans as bytes, for engines that run parts of them in other processes |
//! | `aws`, `azure`, `gcp`, `http` | no | object stores, for programs that register them |
//!
//! # Compatibility
//!
//! Each minor version of gridfusion works with one major version of DataFusion, because the interface contains types
//! of DataFusion: this version with 55. The minimum Rust version is 1.95. Types that are marked `#[non_exhaustive]` may gain variants and
//! fields in a patch release. Modules that the documentation does not show are internals for benches, tests and the
//! command line. They change without notice.
//!
//! # Examples
//!
//! Short programs in `examples/`, which need only the files in `examples/data`:
//!
//! | program | shows |
//! |---|---|
//! | `netcdf`, `zarr` | a first question to a file, and to a store |
//! | `embed` | a file as a schema, and its datasets joined |
//! | `directory` | many files as one table, and a catalog with a schema per file |
//! | `memory` | an object in a store, here in memory |
//! | `session` | a session built by hand, with settings and the rules of gridfusion |
//! | `metrics` | the numbers of chunks and bytes that a query read |
//! | `export` | a query written to a Parquet file and read back |
//! | `geodatafusion` | `ST_…` functions of another crate, and the cells of their geometries |
//! | `make_stations`, `make_climate` | write the files that the others and the documentation read |
//!
//! [DataFusion]: https://datafusion.apache.org

// Hidden modules are public for benches, tests and the command line. Examples do not import them, and shown signatures do not name
// their types: tests/it/docs/hidden.rs checks that.
#[cfg(feature = "codec")]
pub mod codec;
#[doc(hidden)]
pub mod exec;
pub mod extend;
mod formats;
pub mod functions;
#[doc(hidden)]
pub mod provider;
mod settings;

pub use exec::{
    GridReduceExec, GridScanExec, GridfusionConfig, SparseAnswerExec, SparseScanExec,
    gridfusion_rules,
};
pub use formats::built_in_formats;
/// NetCDF and HDF5 files without SQL.
pub use gridfusion_cf as cf;
/// Arrays without SQL. This crate has the types of signatures that `gridfusion` does not name itself.
pub use gridfusion_core as core;
use gridfusion_core::error;
#[doc(hidden)]
pub use gridfusion_core::error::{
    has_secrets, is_url, secrets_of, shown_location, with_causes, without_secrets,
};
pub use gridfusion_core::io::{MappedFile, Remote, RemoteLimits, RequestCounts, Root};
pub use gridfusion_core::options::{
    ArrayOptions, IoMode, OptionInfo, OptionValue, Overlap, ResolvedOptions, Scope, Secret,
    ValueKind,
};
pub use gridfusion_core::source::{
    ArrayFormat, ArrayGroup, Formats, Locations, OpeningCounter, TableOrigin,
};
pub use gridfusion_core::{Error, ErrorKind, Result, verify};
#[doc(hidden)]
pub use gridfusion_core::{array, format, grid, io, merge, options, plan, reduce, source, tile};
/// `.tet` files without SQL.
pub use gridfusion_tet as tet;
/// TileDB arrays without SQL.
#[cfg(feature = "tiledb")]
pub use gridfusion_tiledb as tiledb;
/// Zarr stores without SQL.
#[cfg(feature = "zarr")]
pub use gridfusion_zarr as zarr;
pub use provider::{
    ArrayOpener, ArraySchema, ArrayTable, ArrayTableFactory, GridCatalog, GridTable, GridUrlTables,
    GridfusionDataFrameExt, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt,
    SparseTable, UrlCatalogs, without_panics,
};
pub use settings::OptimizerSettings;

/// Compiles and runs the Rust blocks of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles and runs the Rust blocks of the page about options.
#[cfg(doctest)]
#[doc = include_str!("../docs/options.md")]
struct OptionsPage;

/// Compiles and runs the Rust blocks of the page about embedding.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct RustPage;
