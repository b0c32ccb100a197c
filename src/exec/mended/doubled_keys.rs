//! Sort keys that are named twice: DataFusion removes them in one place and counts them in another, and panics.

use std::collections::HashSet;

use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, SortExpr};

/// Leaves out the keys of an aggregate's `ORDER BY` that are there already.
pub(super) fn of_aggregate(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call) => {
            let is_shorter = leave_out(&mut call.params.order_by);
            Transformed::new_transformed(Expr::AggregateFunction(call), is_shorter)
        }
        expr => Transformed::no(expr),
    }
}

/// Leaves out the keys of a `DISTINCT ON` and of its `ORDER BY` that are there already. DataFusion makes an aggregate of it later.
pub(super) fn of_distinct_on(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Distinct(Distinct::On(mut distinct)) = plan else {
        return Transformed::no(plan);
    };
    let mut is_shorter = false;
    if let Some(keys) = &mut distinct.sort_expr {
        is_shorter = leave_out(keys);
        let before = distinct.on_expr.len();
        let mut seen = HashSet::new();
        distinct.on_expr.retain(|key| seen.insert(key.clone()));
        is_shorter |= distinct.on_expr.len() < before;
    }
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), is_shorter)
}

/// Leaves out keys that are there already. Returns whether there were any.
fn leave_out(keys: &mut Vec<SortExpr>) -> bool {
    let before = keys.len();
    let mut seen = HashSet::new();
    keys.retain(|key| seen.insert(key.expr.clone()));
    keys.len() < before
}
