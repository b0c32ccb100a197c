//! The ends of cells that a file declares: the attribute `bounds` of a coordinate names the array that has them.
//!
//! ```text
//!   column of the query ──▶ label `lat` of a table, bounds = "lat_bnds" ──▶ lat_bnds (lat, bnds) of the same file
//! ```

use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, ident};
use datafusion::prelude::SessionContext;
use gridfusion::source::TableOrigin;
use gridfusion::{ArrayOpener, ErrorKind, GridTable, OptionValue};

use super::titles::Trace;

/// The most cells along an axis whose ends are read.
const MOST: u64 = 100_000;

/// The ends of the cells of a column.
pub(super) struct Cells {
    /// The number of the column in the query.
    pub(super) column: usize,
    /// The labels, and both ends of each.
    pub(super) rows: RecordBatch,
}

/// Reads the ends of the cells of all labels in the columns of a query.
///
/// # Errors
/// If an array of bounds cannot be read. A file that lacks it is no error.
pub(super) async fn read(ctx: &SessionContext, plan: &LogicalPlan) -> Result<Vec<Cells>> {
    let count = plan.schema().fields().len();
    let mut cells = vec![];
    // Pictures of less than three columns have no cells.
    for column in (0..count).filter(|_| count > 2) {
        let trace = Trace::from_plan(plan, column);
        if let Some((label, origin)) = trace.and_then(|trace| declared(&trace))
            && let Some(rows) = Box::pin(ends(ctx, &label, &origin)).await?
        {
            cells.push(Cells { column, rows });
        }
    }
    Ok(cells)
}

/// Returns the name of a label with bounds, and the origin of their table. `None` if the table is of several files, because each of them
/// would be opened once more.
fn declared(trace: &Trace<'_>) -> Option<(String, TableOrigin)> {
    let name = trace.field.metadata().get("bounds").filter(|_| trace.aggregate.is_none())?;
    let TableScan { source, .. } = trace.scan;
    let provider = source_as_provider(source).ok()?;
    let origin = provider.downcast_ref::<GridTable>()?.origin()?;
    let is_one = !origin.is_many && origin.side_by_side.is_empty();
    let group = match origin.options.get("dataset") {
        Some(OptionValue::Text(path)) => path.rsplit_once('/'),
        _ => None,
    };
    let path = match (name.strip_prefix('/'), group) {
        (Some(path), _) => path.to_owned(),
        (None, Some((group, _))) => format!("{group}/{name}"),
        (None, None) => name.clone(),
    };
    is_one.then(|| (trace.field.name().clone(), origin.of_dataset(&path)))
}

/// Returns labels with both ends of their cells; `None` if there is no array of two ends per label.
async fn ends(
    ctx: &SessionContext,
    label: &str,
    origin: &TableOrigin,
) -> Result<Option<RecordBatch>> {
    let table = match ArrayOpener::from_session(&ctx.state()).reopen(origin).await {
        Err(error) if error.kind() == ErrorKind::Usage => return Ok(None),
        opened => opened?,
    };
    let suits = table.as_grid().is_some_and(|grid| {
        let has_label = grid.array().schema().field_with_name(label).is_ok();
        has_label && matches!(grid.shape()[..], [count, 2] if count <= MOST)
    });
    if !suits {
        return Ok(None);
    }
    let value = || ident("value");
    let rows = ctx.read_table(table.into_provider())?;
    let ends: Vec<Expr> = vec![min(value()), max(value())];
    let batches = rows.aggregate(vec![ident(label)], ends)?.collect().await?;
    let Some(first) = batches.first() else { return Ok(None) };
    Ok(Some(concat_batches(&first.schema(), &batches)?))
}
