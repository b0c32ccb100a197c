//! `avg(CASE WHEN condition THEN value END)` as `avg(value) FILTER (WHERE condition)`, which the kernels support.

use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, Literal};

use super::number::number_of;
use super::query::Aggregate;
use crate::exec::GridScanExec;
use crate::exec::matching::known_aggregate;

/// Functions of one argument that ignore NULL.
const IGNORE_NULL: [&str; 10] =
    ["count", "sum", "avg", "min", "max", "var", "var_pop", "stddev", "stddev_pop", "median"];

impl Aggregate {
    /// Returns the aggregate with the condition of its `CASE` in the filter; itself if it has no such argument.
    pub(super) fn with_case_as_filter(self, scan: &GridScanExec) -> Self {
        match self.case_as_filter(scan) {
            Some((arg, when)) => {
                let filter: PhysicalExprRef = match self.filter {
                    Some(filter) => Arc::new(BinaryExpr::new(filter, Operator::And, when)),
                    None => when,
                };
                Self { args: vec![arg], filter: Some(filter), ..self }
            }
            None => self,
        }
    }

    /// Returns the value and the condition of a `CASE` that is NULL where the condition is not true.
    fn case_as_filter(&self, scan: &GridScanExec) -> Option<(PhysicalExprRef, PhysicalExprRef)> {
        let name = known_aggregate(self.function.fun())?;
        let [arg] = self.args.as_slice() else { return None };
        if !IGNORE_NULL.contains(&name) {
            return None;
        }
        let cast = arg.downcast_ref::<CastExpr>();
        let case = cast.map_or(arg, CastExpr::expr).downcast_ref::<CaseExpr>()?;
        let [(when, then)] = case.when_then_expr() else { return None };
        if case.expr().is_some() || case.else_expr().is_some_and(|it| !is_null(it)) {
            return None;
        }
        let then: PhysicalExprRef = match cast {
            Some(cast) => Arc::new(CastExpr::new(Arc::clone(then), cast.cast_type().clone(), None)),
            None => Arc::clone(then),
        };
        // Other values may fail in cells that do not meet the condition.
        let is_safe = number_of(&then, scan).is_some() || name == "count" && is_constant(&then);
        is_safe.then(|| (then, Arc::clone(when)))
    }
}

/// Whether an expression is NULL in all rows.
pub(super) fn is_null(expr: &PhysicalExprRef) -> bool {
    expr.downcast_ref::<Literal>().is_some_and(|literal| literal.value().is_null())
}

fn is_constant(expr: &PhysicalExprRef) -> bool {
    expr.is::<Literal>() && !is_null(expr)
}
