//! `a IS DISTINCT FROM b OR c`, which sqlparser reads as `a IS DISTINCT FROM (b OR c)`, unlike all other databases.
//!
//! The parentheses of a query are not in the plan, so both are refused. Each has another form without doubt.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator};

/// Refuses a comparison whose right side is a condition with `AND` or `OR`.
pub(super) fn check(expr: &Expr) -> Result<()> {
    use Operator::{And, IsDistinctFrom, IsNotDistinctFrom, Or};
    let Expr::BinaryExpr(BinaryExpr { op: IsDistinctFrom | IsNotDistinctFrom, right, .. }) = expr
    else {
        return Ok(());
    };
    match right.as_ref() {
        Expr::BinaryExpr(BinaryExpr { op: And | Or, .. }) => refused(right),
        Expr::Cast(Cast { expr, .. }) => match expr.as_ref() {
            Expr::BinaryExpr(BinaryExpr { op: And | Or, .. }) => refused(expr),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn refused(right: &Expr) -> Result<()> {
    plan_err!(
        "IS DISTINCT FROM with ({right}) at its right is not supported, because DataFusion 55 reads a IS DISTINCT FROM b OR c as \
         a IS DISTINCT FROM (b OR c); write (a IS DISTINCT FROM b) OR c, or (b OR c) IS DISTINCT FROM a"
    )
}
