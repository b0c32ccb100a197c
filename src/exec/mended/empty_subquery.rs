//! Scalar subqueries without rows, whose value is NULL. DataFusion declares the value as never NULL if the column is never NULL,
//! as labels are.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery, lit};

use super::one_row::{Rows, rows};

/// Makes the value of a scalar subquery nullable by an outer join with one row:
/// `(SELECT x FROM t)` becomes `(SELECT x FROM (one row) LEFT JOIN (SELECT x FROM t) ON true)`.
pub(super) fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expr else { return Ok(Transformed::no(expr)) };
    let plan = &subquery.subquery;
    let is_nullable = plan.schema().fields().iter().all(|field| field.is_nullable());
    let is_correlated = !subquery.outer_ref_columns.is_empty();
    if is_nullable || is_correlated || matches!(rows(plan)?, Rows::One) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let plan = with_one_row(plan)?;
    let subquery = Subquery { subquery: Arc::new(plan), ..subquery };
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

fn with_one_row(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let row = LogicalPlanBuilder::empty(true);
    row.join_on(plan.clone(), JoinType::Left, [lit(true)])?.build()
}
