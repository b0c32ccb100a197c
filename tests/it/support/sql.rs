//! Sessions, queries, and their rows as text.

use std::ffi::OsString;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::GridfusionSessionContextExt;

/// The absolute path of a file of the repository.
pub(crate) fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    path.to_str().unwrap().to_owned()
}

/// The value of an environment variable, without which an ignored test cannot run.
pub(crate) fn variable(name: &str) -> OsString {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.unwrap_or_else(|| panic!("set {name}, which CONTRIBUTING.md describes"))
}

/// A session with this many partitions and rows per batch.
pub(crate) fn session(partitions: usize, batch_size: usize) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size)
        .with_information_schema(true);
    SessionContext::new_with_config(config)
}

/// A session with everything that gridfusion adds, array reductions among them.
pub(crate) fn reducing(partitions: usize, batch_size: usize) -> SessionContext {
    let ctx = session(partitions, batch_size);
    ctx.enable_gridfusion();
    ctx
}

/// A session as of [`reducing`] with so many bytes of memory.
pub(crate) fn limited(partitions: usize, batch_size: usize, bytes: usize) -> SessionContext {
    let config =
        SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_size);
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc().unwrap();
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    ctx.enable_gridfusion();
    ctx
}

pub(crate) async fn query(
    ctx: &SessionContext,
    sql: &str,
) -> Result<Vec<RecordBatch>, DataFusionError> {
    ctx.sql(sql).await?.collect().await
}

/// Each row as the text of its cells; NULL is `NULL`.
pub(crate) fn rows_of(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>()
        }));
    }
    rows
}

/// Runs a query and returns its rows as text.
pub(crate) async fn rows_from(ctx: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    match query(ctx, sql).await {
        Ok(batches) => rows_of(&batches),
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// The rows of a query without ORDER BY, sorted: partitions hand them over in any order.
pub(crate) async fn sorted_rows_from(ctx: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let mut rows = rows_from(ctx, sql).await;
    rows.sort();
    rows
}

/// The only cell of a query's result.
pub(crate) async fn cell(ctx: &SessionContext, sql: &str) -> String {
    let rows = rows_from(ctx, sql).await;
    match rows.as_slice() {
        [row] if row.len() == 1 => row[0].clone(),
        _ => panic!("{sql}: expected one cell, found {rows:?}"),
    }
}
