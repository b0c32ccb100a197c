//! The library's methods that open tables, in one place: if they change, only this file changes.
//!
//! Every table shows the declared fill value as NULL.

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Report};
use gridfusion::{ArrayOptions, Error, ErrorKind, GridfusionSessionContextExt};

/// The name in SQL of the option that every table is opened with.
pub(crate) const FILL: &str = "fill_as_null";

fn options() -> ArrayOptions {
    ArrayOptions::default().with_fill_as_null(true)
}

/// Registers the arrays at these locations as one table.
pub(crate) async fn register(
    ctx: &SessionContext,
    table: &str,
    locations: Vec<String>,
) -> Result<()> {
    ctx.register_array(table, locations, options()).await
}

/// Counts the rows of the array at a location, without registering a table.
pub(crate) async fn read(ctx: &SessionContext, location: &str) -> Result<usize> {
    let frame = ctx.read_array(location, options()).await;
    frame?.count().await
}

/// Registers the arrays at a location as a schema.
pub(crate) async fn register_schema(
    ctx: &SessionContext,
    schema: &str,
    location: &str,
) -> Result<()> {
    ctx.register_array_schema(schema, location, options()).await
}

/// Registers the arrays of a directory as a catalog.
pub(crate) async fn register_catalog(
    ctx: &SessionContext,
    catalog: &str,
    location: &str,
) -> Result<()> {
    ctx.register_array_catalog(catalog, location, options()).await
}

/// Lets a session open quoted paths as tables.
pub(crate) fn enable_paths(ctx: &SessionContext) {
    ctx.enable_gridfusion_urls();
}

/// Verifies the array at a location, including its cells.
pub(crate) async fn verify(ctx: &SessionContext, location: &str) -> Report {
    crate::support::open::verify(location, &options(), Depth::Cells, ctx).await
}

/// Whether the error is about a mistake in the request.
pub(crate) fn is_mistake(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::Plan(_))
}

/// Whether the error is about corrupt or unsupported bytes.
pub(crate) fn is_damage(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::NotImplemented(_) => true,
        DataFusionError::External(cause) => {
            cause.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Corrupt)
        }
        _ => false,
    }
}
