//! `nth_value` as an aggregate, which DataFusion reverses for rows in descending order, but only in the first of two stages.

use datafusion::common::tree_node::Transformed;
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::logical_expr::Expr;

use crate::exec::own_functions::own_aggregate;

/// Calls our version, which is never reversed, so that rows are sorted instead. Queries call it already; the optimizer makes others.
pub(super) fn rewrite(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call) if *call.func == *nth_value_udaf() => {
            let own = own_aggregate(&call.func);
            let is_replaced = own.is_some();
            call.func = own.unwrap_or(call.func);
            Transformed::new_transformed(Expr::AggregateFunction(call), is_replaced)
        }
        expr => Transformed::no(expr),
    }
}
