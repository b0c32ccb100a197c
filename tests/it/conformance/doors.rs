//! The public ways from a location to a table: the one file that a change of them touches.
//!
//! Every table shows the declared fill value as NULL.

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Report};
use gridfusion::{ArrayOptions, Error, ErrorKind, GridfusionSessionContextExt};

/// The option that every table is opened with, as SQL has it.
pub(crate) const FILL: &str = "fill_as_null";

fn options() -> ArrayOptions {
    ArrayOptions::default().with_fill_as_null(true)
}

/// Registers what is at these locations as a table.
pub(crate) async fn register(
    ctx: &SessionContext,
    table: &str,
    locations: Vec<String>,
) -> Result<()> {
    ctx.register_array(table, locations, options()).await
}

/// Counts the rows of what is at a location, without a table.
pub(crate) async fn read(ctx: &SessionContext, location: &str) -> Result<usize> {
    let frame = ctx.read_array(location, options()).await;
    frame?.count().await
}

/// Registers what is at a location as a schema.
pub(crate) async fn register_schema(
    ctx: &SessionContext,
    schema: &str,
    location: &str,
) -> Result<()> {
    ctx.register_array_schema(schema, location, options()).await
}

/// Registers a directory as a catalog; its tables have what the session says.
pub(crate) async fn register_catalog(
    ctx: &SessionContext,
    catalog: &str,
    location: &str,
) -> Result<()> {
    ctx.register_array_catalog(catalog, location, options()).await
}

/// Lets sessions find tables by quoted paths.
pub(crate) fn enable_paths(ctx: &SessionContext) {
    ctx.enable_gridfusion_urls();
}

/// Verifies what is at a location, cells too.
pub(crate) async fn verify(ctx: &SessionContext, location: &str) -> Report {
    crate::support::open::verify(location, &options(), Depth::Cells, ctx).await
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
            cause.downcast_ref::<Error>().is_some_and(|error| error.kind() == ErrorKind::Corrupt)
        }
        _ => false,
    }
}
