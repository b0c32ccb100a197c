//! Small expressions of which states are made.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal, case, lit};

/// Returns `a`, the operator and `b`.
pub(super) fn binary(
    a: &PhysicalExprRef,
    operator: Operator,
    b: &PhysicalExprRef,
) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(Arc::clone(a), operator, Arc::clone(b)))
}

/// Returns `a * b`, or one of them if the other is 1.
pub(super) fn product(a: &PhysicalExprRef, b: &PhysicalExprRef) -> PhysicalExprRef {
    match (is_number(a, 1.0), is_number(b, 1.0)) {
        (true, _) => Arc::clone(b),
        (_, true) => Arc::clone(a),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => lit(a * b),
            _ => binary(a, Operator::Multiply, b),
        },
    }
}

/// Returns a number as a `Float64`.
pub(super) fn wide(number: &PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(CastExpr::new(Arc::clone(number), DataType::Float64, None))
}

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

fn is_number(expr: &PhysicalExprRef, wanted: f64) -> bool {
    number(expr) == Some(wanted)
}

/// Returns the number that an expression is; `None` for other expressions.
pub(super) fn number(expr: &PhysicalExprRef) -> Option<f64> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Float64(number) => *number,
        _ => None,
    }
}
