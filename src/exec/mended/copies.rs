//! `EXCEPT ALL` and `INTERSECT ALL`, which count copies of a row.
//!
//! DataFusion plans both as joins that only ask whether a row exists on the other side. Here, the copies of a row are numbered on
//! both sides, and a copy meets the copy with its number:
//!
//! ```text
//!   left  1, 1, 2          1 #1   1 #2   2 #1        EXCEPT ALL:    1 #2   2 #1
//!   right 1          ──▶   1 #1                ──▶   INTERSECT ALL: 1 #1
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Cast, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, col,
};

/// The name of the column with the number of a copy.
const NUMBER: &str = "__gridfusion_copy";

/// Rewrites the join of an `EXCEPT ALL` or `INTERSECT ALL`.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
    if !counts_copies(&join) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let shown = join.left.schema().columns().into_iter().map(Expr::from);
    let shown: Vec<Expr> = shown.collect();
    let left = numbered(&join.left, left_keys)?;
    let right = numbered(&join.right, right_keys)?;
    let mut on = join.on;
    on.push((col(Column::from_name(NUMBER)), col(Column::from_name(NUMBER))));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    let plan = LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(shown)?.build()?;
    Ok(Transformed::yes(plan))
}

/// Whether a join is that of `EXCEPT ALL` or `INTERSECT ALL`: over all columns, one by one, with equal NULLs. Without `ALL`, the left
/// side is distinct.
fn counts_copies(join: &Join) -> bool {
    let is_set = matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !join.null_aware
        && !matches!(*join.left, LogicalPlan::Distinct(_));
    let (left, right) = (join.left.schema(), join.right.schema());
    let counts = [left.fields().len(), right.fields().len()];
    let is_column = |key: &Expr, column: Column| match key {
        Expr::Column(key) => *key == column,
        Expr::Cast(Cast { expr, .. }) => **expr == Expr::Column(column),
        _ => false,
    };
    is_set
        && !join.on.is_empty()
        && counts == [join.on.len(); 2]
        && join.on.iter().zip(left.columns().into_iter().zip(right.columns())).all(
            |((left, right), (left_column, right_column))| {
                is_column(left, left_column) && is_column(right, right_column)
            },
        )
}

/// Adds the number of each row among its copies.
fn numbered(side: &Arc<LogicalPlan>, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let number = row_number().partition_by(keys).build()?;
    let name = number.schema_name().to_string();
    let columns = side.schema().columns().into_iter().map(Expr::from);
    let columns = columns.chain([col(Column::from_name(name)).alias(NUMBER)]);
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(Arc::clone(side)).window([number])?.project(columns)?.build()
}
