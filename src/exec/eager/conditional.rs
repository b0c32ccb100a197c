//! Expressions that depend on a condition on the rows of a join.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal, case, is_not_null};

/// Returns each of `states` where `condition` is true, and each of `otherwise` elsewhere.
pub(super) fn either(
    condition: &PhysicalExprRef,
    states: &[PhysicalExprRef],
    otherwise: &[ScalarValue],
) -> Result<Vec<PhysicalExprRef>> {
    let choose = |(state, otherwise): (&PhysicalExprRef, &ScalarValue)| {
        let otherwise: PhysicalExprRef = Arc::new(Literal::new(otherwise.clone()));
        case(None, vec![(Arc::clone(condition), Arc::clone(state))], Some(otherwise))
    };
    states.iter().zip(otherwise).map(choose).collect()
}

/// Returns the condition that an expression is not NULL; `None` for a number.
pub(super) fn known(expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
    let is_number = |literal: &Literal| !literal.value().is_null();
    match expr.downcast_ref::<Literal>().is_some_and(is_number) {
        true => Ok(None),
        false => is_not_null(Arc::clone(expr)).map(Some),
    }
}

/// Returns the condition that both hold; `None` always holds.
pub(super) fn both(
    a: Option<PhysicalExprRef>,
    b: Option<PhysicalExprRef>,
) -> Option<PhysicalExprRef> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Arc::new(BinaryExpr::new(a, Operator::And, b))),
        (a, b) => a.or(b),
    }
}
