//! The columns that expressions of a query use.
//!
//! Expressions refer to columns by position. To evaluate one over a few columns only, its positions
//! change:
//!
//! ```text
//!   scan         [time, station, level, value]      value@3 > 0 AND station@1 = 'A'
//!   columns_of   [1, 3]
//!   batch        [station, value]                   value@1 > 0 AND station@0 = 'A'      over_columns
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// Returns the numbers of the columns that `exprs` use, ascending, each once.
pub(super) fn columns_of<'a>(exprs: impl IntoIterator<Item = &'a PhysicalExprRef>) -> Vec<usize> {
    let mut columns: Vec<usize> =
        exprs.into_iter().flat_map(collect_columns).map(|column| column.index()).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Rewrites `expr` for a batch that holds only `columns` of the scan, which must ascend and include all
/// columns of `expr`.
pub(super) fn over_columns(expr: &PhysicalExprRef, columns: &[usize]) -> Result<PhysicalExprRef> {
    replace_columns(expr, &|column| {
        // A missing column would fail when the expression is evaluated.
        let at = columns.binary_search(&column.index()).unwrap_or(usize::MAX);
        Some(Arc::new(PhysicalColumn::new(column.name(), at)))
    })
}

/// Moves the columns of an expression to other positions.
///
/// # Errors
/// `Internal` for a column that has no other position.
pub(super) fn move_columns(
    expr: &PhysicalExprRef,
    place: &dyn Fn(usize) -> Option<usize>,
) -> Result<PhysicalExprRef> {
    replace_columns(expr, &|column| {
        let at = place(column.index())?;
        Some(Arc::new(PhysicalColumn::new(column.name(), at)))
    })
}

/// Replaces the columns of an expression.
///
/// # Errors
/// `Internal` for a column that has no replacement.
pub(super) fn replace_columns(
    expr: &PhysicalExprRef,
    by: &dyn Fn(&PhysicalColumn) -> Option<PhysicalExprRef>,
) -> Result<PhysicalExprRef> {
    Arc::clone(expr)
        .transform(|expr| {
            let Some(column) = expr.downcast_ref::<PhysicalColumn>() else {
                return Ok(Transformed::no(expr));
            };
            // The traversal goes up the tree, so it does not visit the inserted expression.
            let replacement = by(column).map(Transformed::yes);
            replacement
                .ok_or_else(|| internal_datafusion_err!("column {column} has no replacement"))
        })
        .data()
}

/// Returns the columns that a projection picks; `None` if it computes or renames anything.
pub(super) fn picked(projection: &ProjectionExec) -> Option<Vec<usize>> {
    let column = |projected: &ProjectionExpr| {
        let column = projected.expr.downcast_ref::<PhysicalColumn>()?;
        // A column under another name needs a node that renames it.
        (column.name() == projected.alias).then(|| column.index())
    };
    projection.expr().iter().map(column).collect()
}

/// Returns what replaces a projection over an operator of `width` columns that can leave out columns. `narrow` returns the
/// operator with these of its columns. A projection that computes something stays above it. `None` if all columns are used.
pub(super) fn projected(
    projection: &ProjectionExec,
    width: usize,
    narrow: impl FnOnce(Vec<usize>) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(columns) = picked(projection) {
        return narrow(columns).map(Some);
    }
    let exprs = projection.expr();
    let used = columns_of(exprs.iter().map(|projected| &projected.expr));
    if used.len() == width {
        return Ok(None);
    }
    let over_used = |projected: &ProjectionExpr| {
        Ok((over_columns(&projected.expr, &used)?, projected.alias.clone()))
    };
    let columns = exprs.iter().map(over_used).collect::<Result<Vec<_>>>()?;
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, narrow(used)?)?)))
}

/// Whether the outputs of two plans have columns of the same types.
pub(super) fn have_same_types(a: &dyn ExecutionPlan, b: &dyn ExecutionPlan) -> bool {
    let (a, b) = (a.schema(), b.schema());
    let types = |schema: &Schema| -> Vec<DataType> {
        schema.fields().iter().map(|field| field.data_type().clone()).collect()
    };
    types(&a) == types(&b)
}

/// Returns the side and the column of each output column of a join.
pub(super) fn output_columns(join: &HashJoinExec) -> Vec<(JoinSide, usize)> {
    use JoinType::{LeftAnti, LeftSemi, RightAnti, RightSemi};
    let (returns_left, returns_right) = match join.join_type() {
        LeftSemi | LeftAnti | JoinType::LeftMark => (true, false),
        RightSemi | RightAnti | JoinType::RightMark => (false, true),
        _ => (true, true),
    };
    let columns = |side: &Arc<dyn ExecutionPlan>, is_returned: bool| match is_returned {
        true => 0..side.schema().fields().len(),
        false => 0..0,
    };
    let left = columns(join.left(), returns_left).map(|column| (JoinSide::Left, column));
    let right = columns(join.right(), returns_right).map(|column| (JoinSide::Right, column));
    let all: Vec<_> = left.chain(right).collect();
    match join.projection.as_deref() {
        Some(projection) => projection.iter().map(|&column| all[column]).collect(),
        None => all,
    }
}
