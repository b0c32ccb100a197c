//! A file of the corpus as tables, and queries over them.

use std::path::Path;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use crate::support::{query, rows_of};

pub(crate) type Result<T> = std::result::Result<T, DataFusionError>;

/// The schema `f`: a file with default options.
pub(crate) fn plain() -> (&'static str, ArrayOptions) {
    ("f", ArrayOptions::default())
}

/// The schema `indexed`: with index columns.
pub(crate) fn indexed() -> (&'static str, ArrayOptions) {
    ("indexed", ArrayOptions::default().with_index_columns(true))
}

/// The schema `raw`: stored values as they are.
pub(crate) fn raw() -> (&'static str, ArrayOptions) {
    ("raw", ArrayOptions::default().with_nan_as_null(false).with_fill_as_null(false))
}

/// A session with `path` registered under each schema.
pub(crate) async fn open(path: &Path, schemas: &[(&str, ArrayOptions)]) -> Result<SessionContext> {
    let ctx = SessionContext::new();
    let location = path.to_str().expect("corpus paths are UTF-8");
    for (schema, options) in schemas {
        ctx.register_array_schema(schema, location, options.clone()).await?;
    }
    Ok(ctx)
}

/// The datasets of the file that is registered as `f`.
pub(crate) fn dataset_names(ctx: &SessionContext) -> Vec<String> {
    let catalog = ctx.catalog("datafusion").expect("the default catalog is called 'datafusion'");
    catalog.schema("f").expect("the schema was registered").table_names()
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(crate) fn table(schema: &str, dataset: &str) -> String {
    format!("{schema}.{}", quoted(dataset))
}

/// The rows of a query as text; NULL is `NULL`.
pub(crate) async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>> {
    let batches = Box::pin(query(ctx, sql)).await.map_err(|error| error.context(sql))?;
    Ok(rows_of(&batches))
}

/// The names of a dataset's columns.
pub(crate) async fn columns(
    ctx: &SessionContext,
    schema: &str,
    dataset: &str,
) -> Result<Vec<String>> {
    let sql = format!("SELECT * FROM {}", table(schema, dataset));
    let frame = Box::pin(ctx.sql(&sql)).await.map_err(|error| error.context(&sql))?;
    Ok(frame.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// The value column of a dataset without index columns, quoted.
pub(crate) async fn value_column(ctx: &SessionContext, dataset: &str) -> Result<String> {
    let columns = columns(ctx, "f", dataset).await?;
    Ok(quoted(columns.last().expect("every table has a value column")))
}

/// The only row of some `aggregates`, in which `$value` stands for the value column.
pub(crate) async fn aggregate(
    ctx: &SessionContext,
    dataset: &str,
    aggregates: &str,
) -> Result<Vec<String>> {
    let aggregates = aggregates.replace("$value", &value_column(ctx, dataset).await?);
    let sql = format!("SELECT {aggregates} FROM {}", table("f", dataset));
    Ok(rows(ctx, &sql).await?.concat())
}
