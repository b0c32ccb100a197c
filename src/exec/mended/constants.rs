//! The values of constant expressions.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// Returns the value of an expression of literals, signs and casts.
pub(super) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => constant(&alias.expr),
        Expr::Cast(cast) => constant(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        Expr::Negative(of) => constant(of)?.arithmetic_negate().ok(),
        _ => None,
    }
}
