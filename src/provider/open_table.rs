//! From a location to a table: what every way to a table ends in.
//!
//! Rust's `register_…` and `read_…`, `CREATE EXTERNAL TABLE`, the table functions and quoted paths differ
//! in how a location and options reach them, and in nothing else.

use datafusion::catalog::Session;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::{GridTable, open, open_tiledb};
use crate::error::Result;
use crate::exec::GridfusionConfig;
use crate::options::{TableDefaults, TetReadOptions, TileDbReadOptions};

/// The table of a dataset in what is at `location`, as [`open`] understands it.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{TetReadOptions, open_table};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion::Result<()> {
/// let ctx = SessionContext::new();
/// let options = TetReadOptions::default().with_dataset("elevation");
/// let table = open_table("examples/data/stations.tet", &options, &ctx.runtime_env()).await?;
/// assert_eq!(table.array().grid().shape(), [6]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`open`] and [`GridTable::open`].
pub async fn open_table(
    location: &str,
    options: &TetReadOptions,
    runtime: &RuntimeEnv,
) -> Result<GridTable> {
    let file = open(location, options, runtime).await?;
    GridTable::open(&file, options).await
}

/// The table of the TileDB array at `location`.
///
/// # Errors
/// Those of [`open_tiledb`] and [`GridTable::of_tiledb`].
pub async fn open_tiledb_table(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> Result<GridTable> {
    let array = open_tiledb(location, options, runtime).await?;
    GridTable::of_tiledb(&array, options)
}

/// What the session says for tables that say nothing.
pub(super) fn defaults(session: &dyn Session) -> TableDefaults {
    GridfusionConfig::of(session.config_options()).tables
}
