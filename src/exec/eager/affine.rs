//! [`Affine`]: arguments `scale * x + shift`, where `x` is of the array, and scale and shift are of the other side.
//!
//! All rows of a state are joined with the same row of the other side. So the states of such an argument follow from those
//! of `x`. Anomalies are then aggregated without a row per cell: `avg(t.value - c.mean)`.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal, NegativeExpr, lit};

use crate::exec::columns::columns_of;

/// A function of one expression of the reduced side, over the columns of both sides.
#[derive(Debug, Clone)]
pub(super) struct Affine {
    /// An expression over the reduced side only.
    pub(super) x: PhysicalExprRef,
    /// The factor of `x`.
    pub(super) scale: PhysicalExprRef,
    /// The term that is added to the product.
    pub(super) shift: PhysicalExprRef,
}

impl Affine {
    /// Takes an expression of type `Float64` apart; `schema` has the columns of both sides, of which `own` are of the reduced
    /// one. `None` if the expression is no affine function, or computes in another type in between.
    pub(super) fn of(
        expr: &PhysicalExprRef,
        own: &Range<usize>,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        if expr.data_type(schema)? != DataType::Float64 {
            return Ok(None);
        }
        let columns = columns_of([expr]);
        if columns.iter().all(|at| own.contains(at)) {
            let x = (!columns.is_empty()).then(|| Arc::clone(expr));
            return Ok(x.map(|x| Self { x, scale: lit(1.0), shift: lit(0.0) }));
        }
        if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
            return Ok(Self::of(negative.arg(), own, schema)?.map(|it| it.times(&lit(-1.0))));
        }
        let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return Ok(None) };
        let (left, right) = (binary.left(), binary.right());
        let is_other =
            |expr: &PhysicalExprRef| !columns_of([expr]).iter().any(|at| own.contains(at));
        Ok(match (binary.op(), is_other(left), is_other(right)) {
            (Operator::Plus, true, false) => Self::of(right, own, schema)?.map(|it| it.plus(left)),
            (Operator::Plus, false, true) => Self::of(left, own, schema)?.map(|it| it.plus(right)),
            (Operator::Minus, false, true) => {
                Self::of(left, own, schema)?.map(|it| it.plus(&product(&lit(-1.0), right)))
            }
            (Operator::Minus, true, false) => {
                Self::of(right, own, schema)?.map(|it| it.times(&lit(-1.0)).plus(left))
            }
            (Operator::Multiply, true, false) => {
                Self::of(right, own, schema)?.map(|it| it.times(left))
            }
            (Operator::Multiply, false, true) => {
                Self::of(left, own, schema)?.map(|it| it.times(right))
            }
            (Operator::Divide, false, true) => {
                let inverse = match number(right) {
                    Some(divisor) => lit(1.0 / divisor),
                    None => binary_of(&lit(1.0), Operator::Divide, right),
                };
                Self::of(left, own, schema)?.map(|it| it.times(&inverse))
            }
            _ => None,
        })
    }

    /// Whether the function is `x` itself.
    pub(super) fn is_plain(&self) -> bool {
        is_number(&self.scale, 1.0) && is_number(&self.shift, 0.0)
    }

    /// Whether the order of the values is the reverse of that of `x`. `None` unless the scale is a number that keeps the order
    /// or reverses it.
    pub(super) fn reverses(&self) -> Option<bool> {
        let scale = number(&self.scale).filter(|scale| scale.is_finite() && *scale != 0.0)?;
        Some(scale < 0.0)
    }

    /// Whether the scale is finite, whatever the other side has: a number, an integer, or a product of these.
    pub(super) fn has_finite_scale(&self, schema: &Schema) -> Result<bool> {
        is_finite(&self.scale, schema)
    }

    fn plus(self, term: &PhysicalExprRef) -> Self {
        Self { shift: sum(&self.shift, term), ..self }
    }

    pub(super) fn times(self, factor: &PhysicalExprRef) -> Self {
        let Self { x, scale, shift } = self;
        // Without a shift there is none of the product, also if the factor is infinite.
        let shift = if is_number(&shift, 0.0) { shift } else { product(&shift, factor) };
        Self { x, scale: product(&scale, factor), shift }
    }
}

fn binary_of(a: &PhysicalExprRef, operator: Operator, b: &PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(BinaryExpr::new(Arc::clone(a), operator, Arc::clone(b)))
}

/// Returns `a * b`, or one of them if the other is 1.
pub(super) fn product(a: &PhysicalExprRef, b: &PhysicalExprRef) -> PhysicalExprRef {
    match (is_number(a, 1.0), is_number(b, 1.0)) {
        (true, _) => Arc::clone(b),
        (_, true) => Arc::clone(a),
        _ => binary_of(a, Operator::Multiply, b),
    }
}

/// Returns `a + b`, or one of them if the other is 0.
pub(super) fn sum(a: &PhysicalExprRef, b: &PhysicalExprRef) -> PhysicalExprRef {
    match (is_number(a, 0.0), is_number(b, 0.0)) {
        (true, _) => Arc::clone(b),
        (_, true) => Arc::clone(a),
        _ => binary_of(a, Operator::Plus, b),
    }
}

/// Whether an expression is finite or NULL for each row.
fn is_finite(expr: &PhysicalExprRef, schema: &Schema) -> Result<bool> {
    if let Some(number) = number(expr) {
        return Ok(number.is_finite());
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return Ok(cast.expr().data_type(schema)?.is_integer());
    }
    match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) if *binary.op() == Operator::Multiply => {
            Ok(is_finite(binary.left(), schema)? && is_finite(binary.right(), schema)?)
        }
        _ => Ok(false),
    }
}

fn is_number(expr: &PhysicalExprRef, wanted: f64) -> bool {
    number(expr) == Some(wanted)
}

/// Returns the number that an expression is; `None` for other expressions.
fn number(expr: &PhysicalExprRef) -> Option<f64> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Float64(number) => *number,
        _ => None,
    }
}
