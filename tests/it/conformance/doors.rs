//! The public ways from a location to a table: the one file that a change of them touches.
//!
//! Every table shows the declared fill value as NULL.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion::{
    Error, GridfusionSessionContextExt, Kind, TetReadOptions, TileDbReadOptions, open, open_tiledb,
};

/// The option that every table is opened with, as SQL has it.
pub(crate) const FILL: &str = "fill_as_null";

fn tet() -> TetReadOptions {
    TetReadOptions::default().with_fill_as_null(true)
}

fn tiledb() -> TileDbReadOptions {
    TileDbReadOptions::default().with_fill_as_null(true)
}

/// Registers what is at these locations as a table.
pub(crate) async fn register(
    ctx: &SessionContext,
    format: &str,
    table: &str,
    locations: Vec<String>,
) -> Result<()> {
    match format {
        "tet" => ctx.register_tet(table, locations, tet()).await,
        _ => ctx.register_tiledb(table, locations, tiledb()).await,
    }
}

/// Counts the rows of what is at a location, without a table.
pub(crate) async fn read(ctx: &SessionContext, format: &str, location: &str) -> Result<usize> {
    let frame = match format {
        "tet" => ctx.read_tet(location, tet()).await,
        _ => ctx.read_tiledb(location, tiledb()).await,
    };
    frame?.count().await
}

/// Registers what is at a location as a schema.
pub(crate) async fn register_schema(
    ctx: &SessionContext,
    format: &str,
    schema: &str,
    location: &str,
) -> Result<()> {
    match format {
        "tet" => ctx.register_tet_schema(schema, location, tet()).await,
        _ => ctx.register_tiledb_schema(schema, location, tiledb()).await,
    }
}

/// Registers a directory as a catalog; its tables have what the session says.
pub(crate) async fn register_catalog(
    ctx: &SessionContext,
    catalog: &str,
    location: &str,
) -> Result<()> {
    ctx.register_grid_catalog(catalog, location, tet()).await
}

/// Lets sessions find tables by quoted paths.
pub(crate) fn enable_paths(ctx: &SessionContext) {
    ctx.enable_gridfusion_urls();
}

/// Verifies what is at a location, cells too.
pub(crate) async fn verify(ctx: &SessionContext, format: &str, location: &str) -> Report {
    let (runtime, depth) = (ctx.runtime_env(), Depth::Cells);
    let progress = Arc::new(Progress::default());
    let report = match format {
        "tet" => match open(location, &tet(), &runtime).await {
            Ok(file) => Ok(file.verify(depth, &progress).await),
            Err(error) => Err(error),
        },
        _ => match open_tiledb(location, &tiledb(), &runtime).await {
            Ok(array) => Ok(array.verify(depth, &progress).await),
            Err(error) => Err(error),
        },
    };
    report.unwrap_or_else(|error| Report::of_error(location, depth, &error))
}

/// Whether the error blames the request.
pub(crate) fn is_mistake(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::Plan(_))
}

/// Whether the error blames what is stored.
pub(crate) fn is_damage(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::NotImplemented(_) => true,
        DataFusionError::External(cause) => {
            cause.downcast_ref::<Error>().is_some_and(|error| error.kind() == Kind::Corrupt)
        }
        _ => false,
    }
}
