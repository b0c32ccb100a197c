//! Correlated subqueries that have a row for every row outside: aggregates without `GROUP BY`.
//!
//! DataFusion joins with the groups that exist, and so loses the row of a count of 0:
//!
//! | condition | becomes |
//! |---|---|
//! | `EXISTS (SELECT count(*) …)` | `true` |
//! | `EXISTS (SELECT … HAVING p)` | `(SELECT p …) IS TRUE` |
//! | `x IN (SELECT count(*) …)`, `x = ANY (…)` | `x = (SELECT count(*) …)` |
//!
//! DataFusion also drops `OFFSET` in `EXISTS`, which is refused.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Subquery, binary_expr, lit};

use super::one_row::{Rows, rows};

/// Rewrites a condition on a correlated subquery whose number of rows is known.
pub(super) fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::Exists(Exists { subquery, negated }) if is_correlated(subquery) => {
            Ok(Transformed::yes(match rows(&subquery.subquery)? {
                Rows::None => lit(*negated),
                Rows::One | Rows::Some => lit(!negated),
                Rows::OneIf(condition) => {
                    let holds = Box::new(value(subquery, condition.holds));
                    if *negated { Expr::IsNotTrue(holds) } else { Expr::IsTrue(holds) }
                }
                Rows::Behind => return refused("EXISTS"),
                Rows::OfTables => return Ok(Transformed::no(expr)),
            }))
        }
        Expr::InSubquery(InSubquery { expr: left, subquery, negated })
            if is_correlated(subquery) =>
        {
            let operator = if *negated { Operator::NotEq } else { Operator::Eq };
            compared(&expr, left, operator, subquery, *negated)
        }
        Expr::SetComparison(SetComparison { expr: left, subquery, op, quantifier })
            if is_correlated(subquery) =>
        {
            let is_met_without_rows = *quantifier == SetQuantifier::All;
            compared(&expr, left, *op, subquery, is_met_without_rows)
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Rewrites a comparison with all rows of a subquery, or with any of them.
fn compared(
    expr: &Expr,
    left: &Expr,
    operator: Operator,
    subquery: &Subquery,
    is_met_without_rows: bool,
) -> Result<Transformed<Expr>> {
    let with = |plan: LogicalPlan| binary_expr(left.clone(), operator, value(subquery, plan));
    Ok(Transformed::yes(match rows(&subquery.subquery)? {
        Rows::None => lit(is_met_without_rows),
        Rows::One => with(subquery.subquery.as_ref().clone()),
        Rows::OneIf(condition) => {
            let holds = Box::new(value(subquery, condition.holds));
            match is_met_without_rows {
                true => Expr::IsNotTrue(holds).or(with(condition.always)),
                false => Expr::IsTrue(holds).and(with(condition.always)),
            }
        }
        Rows::Some | Rows::Behind | Rows::OfTables => return Ok(Transformed::no(expr.clone())),
    }))
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// The value of another plan in place of a subquery.
fn value(subquery: &Subquery, plan: LogicalPlan) -> Expr {
    Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() })
}

fn refused<T>(construct: &str) -> Result<T> {
    plan_err!(
        "{construct} over a subquery with OFFSET that uses columns from outside is not supported: DataFusion 55 ignores the OFFSET; \
         count the rows instead: (SELECT count(*) …) > 1"
    )
}
