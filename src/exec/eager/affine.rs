//! [`Affine`]: arguments `scale * x + shift`, where `x` is of the array, and scale and shift are of the other side.
//!
//! All rows of a state are joined with the same row of the other side. So the states of such an argument follow from those
//! of `x`. Anomalies are then aggregated without a row per cell: `avg(t.value - c.mean)`.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, NegativeExpr, lit};

use super::expressions::{binary, number, product};
use super::join_sides::uses;
use crate::exec::columns::columns_of;

/// A function of one expression of the reduced side, over the columns of both sides.
#[derive(Debug, Clone)]
pub(super) struct Affine {
    /// The function itself.
    expr: PhysicalExprRef,
    /// An expression over the reduced side only.
    pub(super) x: PhysicalExprRef,
    /// The factor of `x`.
    pub(super) scale: PhysicalExprRef,
    /// The greatest factor by which a step of the function may enlarge `x`; infinite if the other side decides.
    gain: f64,
    /// The columns of the reduced side.
    own: Range<usize>,
}

/// A part of an affine function.
struct AffinePart {
    x: PhysicalExprRef,
    scale: PhysicalExprRef,
    gain: f64,
}

impl Affine {
    /// Takes an expression of type `Float64` apart; `schema` has the columns of both sides, of which `own` are of the reduced
    /// one. `None` if the expression is no affine function, or computes in another type in between.
    pub(super) fn try_new(
        expr: &PhysicalExprRef,
        own: &Range<usize>,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let of = |AffinePart { x, scale, gain }| Self {
            expr: Arc::clone(expr),
            x,
            scale,
            gain,
            own: own.clone(),
        };
        Ok(parts(expr, own, schema)?.map(of))
    }

    /// Whether the function is `x` itself.
    pub(super) fn is_plain(&self) -> bool {
        self.expr.eq(&self.x)
    }

    /// Returns the function times a factor of the other side.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn times(self, factor: &PhysicalExprRef, schema: &Schema) -> Result<Self> {
        let expr = binary(&self.expr, Operator::Multiply, factor);
        let gain = self.gain * gain_of(factor, schema)?;
        Ok(Self { expr, scale: product(&self.scale, factor), gain, ..self })
    }

    /// Returns the value of the function at `x`. `over_join` rewrites expressions of the other side over the output of the join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn at(
        &self,
        x: &PhysicalExprRef,
        over_join: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        self.rewritten(&self.expr, x, over_join)
    }

    fn rewritten(
        &self,
        expr: &PhysicalExprRef,
        x: &PhysicalExprRef,
        over_join: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        if expr.eq(&self.x) {
            return Ok(Arc::clone(x));
        }
        if !uses(expr, &self.own) {
            return over_join(expr);
        }
        let children = expr.children().into_iter();
        let children = children.map(|child| self.rewritten(child, x, over_join));
        Arc::clone(expr).with_new_children(children.collect::<Result<_>>()?)
    }

    /// Whether the order of the values is the reverse of that of `x`. `None` unless the scale is a number that keeps the order
    /// or reverses it.
    pub(super) fn reverses(&self) -> Option<bool> {
        let scale = number(&self.scale).filter(|scale| scale.is_finite() && *scale != 0.0)?;
        Some(scale < 0.0)
    }

    /// Whether a finite `x` may have an infinite value by its scale. Shifts do not count: they make all values infinite, or
    /// only those of the greatest floats.
    pub(super) fn may_overflow(&self, schema: &Schema) -> Result<bool> {
        let from = uncast(&self.x, schema)?.data_type(schema)?;
        // Singles and integers are far from the greatest double.
        let greatest = if from == DataType::Float64 { f64::MAX } else { f32::MAX.into() };
        Ok(self.gain > 1.0 && self.gain * greatest > 1e300)
    }
}

/// Returns the number that a cast to `Float64` takes, or else the expression itself. Such a cast keeps the order.
///
/// # Errors
/// Internal errors only.
pub(super) fn uncast<'a>(x: &'a PhysicalExprRef, schema: &Schema) -> Result<&'a PhysicalExprRef> {
    let Some(cast) = x.downcast_ref::<CastExpr>() else { return Ok(x) };
    let from = cast.expr().data_type(schema)?;
    Ok(if from.is_integer() || from.is_floating() { cast.expr() } else { x })
}

/// Returns `x` and its factor in an affine function; `None` for other expressions.
fn parts(
    expr: &PhysicalExprRef,
    own: &Range<usize>,
    schema: &Schema,
) -> Result<Option<AffinePart>> {
    if expr.data_type(schema)? != DataType::Float64 {
        return Ok(None);
    }
    let columns = columns_of([expr]);
    if columns.iter().all(|at| own.contains(at)) {
        let part = || AffinePart { x: Arc::clone(expr), scale: lit(1.0), gain: 1.0 };
        return Ok((!columns.is_empty()).then(part));
    }
    let scaled = |inner: &PhysicalExprRef, factor: &PhysicalExprRef| {
        let Some(AffinePart { x, scale, gain }) = parts(inner, own, schema)? else {
            return Ok(None);
        };
        let gain = gain * gain_of(factor, schema)?;
        Ok(Some(AffinePart { x, scale: product(&scale, factor), gain }))
    };
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        return scaled(negative.arg(), &lit(-1.0));
    }
    let Some(operation) = expr.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let (left, right) = (operation.left(), operation.right());
    match (operation.op(), !uses(left, own), !uses(right, own)) {
        (Operator::Plus | Operator::Minus, false, true) => parts(left, own, schema),
        (Operator::Plus, true, false) => parts(right, own, schema),
        (Operator::Minus, true, false) => scaled(right, &lit(-1.0)),
        (Operator::Multiply, true, false) => scaled(right, left),
        (Operator::Multiply, false, true) => scaled(left, right),
        (Operator::Divide, false, true) => match number(right) {
            Some(divisor) => scaled(left, &lit(1.0 / divisor)),
            None => scaled(left, &binary(&lit(1.0), Operator::Divide, right)),
        },
        _ => Ok(None),
    }
}

/// Returns the greatest factor by which a product with `expr` may enlarge a number, at least 1.
fn gain_of(expr: &PhysicalExprRef, schema: &Schema) -> Result<f64> {
    if let Some(number) = number(expr) {
        let is_number = !number.is_nan();
        return Ok(if is_number { number.abs().max(1.0) } else { f64::INFINITY });
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let is_integer = cast.expr().data_type(schema)?.is_integer();
        return Ok(if is_integer { u64::MAX as f64 } else { f64::INFINITY });
    }
    match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) if *binary.op() == Operator::Multiply => {
            Ok(gain_of(binary.left(), schema)? * gain_of(binary.right(), schema)?)
        }
        _ => Ok(f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::Column as PhysicalColumn;

    use super::*;

    /// The columns: `x` of the array, `i` of the array as an integer, and `c` of the other side.
    fn schema() -> Schema {
        let field = |name, data_type| Field::new(name, data_type, true);
        let (x, i) = (field("x", DataType::Float64), field("i", DataType::Int32));
        Schema::new(vec![x, i, field("c", DataType::Float64)])
    }

    fn column(at: usize) -> PhysicalExprRef {
        Arc::new(PhysicalColumn::new(schema().field(at).name(), at))
    }

    /// Returns `x`, the scale, and whether it reverses the order.
    fn affine(expr: &PhysicalExprRef) -> Option<(String, String, Option<bool>)> {
        let affine = Affine::try_new(expr, &(0..2), &schema()).unwrap()?;
        Some((affine.x.to_string(), affine.scale.to_string(), affine.reverses()))
    }

    #[test]
    fn affine_functions_are_taken_apart() {
        use Operator::{Divide, Minus, Multiply, Plus};
        let (x, c) = (column(0), column(2));
        let square = binary(&x, Multiply, &x);
        let cast: PhysicalExprRef = Arc::new(CastExpr::new(column(1), DataType::Float64, None));
        for (expr, of, scale, reverses) in [
            (Arc::clone(&x), "x@0", "1", Some(false)),
            (binary(&x, Minus, &c), "x@0", "1", Some(false)),
            (binary(&c, Minus, &x), "x@0", "-1", Some(true)),
            (binary(&binary(&x, Plus, &c), Multiply, &lit(4.0)), "x@0", "4", Some(false)),
            (binary(&binary(&c, Minus, &x), Divide, &lit(2.0)), "x@0", "-0.5", Some(true)),
            (binary(&x, Multiply, &c), "x@0", "c@2", None),
            (binary(&x, Divide, &c), "x@0", "1 / c@2", None),
            // Anything over the array alone is an `x`.
            (binary(&square, Minus, &c), "x@0 * x@0", "1", Some(false)),
            (binary(&cast, Minus, &c), "CAST(i@1 AS Float64)", "1", Some(false)),
        ] {
            assert_eq!(affine(&expr), Some((of.to_owned(), scale.to_owned(), reverses)), "{expr}");
        }
    }

    #[test]
    fn other_functions_are_not() {
        use Operator::{Divide, Minus, Multiply, Plus};
        let (x, c) = (column(0), column(2));
        let integers = binary(&column(1), Plus, &column(1));
        for expr in [
            binary(&c, Divide, &x),
            binary(&binary(&x, Minus, &c), Multiply, &x),
            binary(&binary(&x, Minus, &c), Plus, &binary(&x, Plus, &c)),
            c,
            // Integers wrap or fail, and floats do not.
            integers,
        ] {
            assert_eq!(affine(&expr), None, "{expr}");
        }
    }

    #[test]
    fn large_scales_may_overflow() {
        let may_overflow = |factor: &PhysicalExprRef| {
            let anomaly = binary(&column(0), Operator::Minus, &column(2));
            let expr = binary(&anomaly, Operator::Multiply, factor);
            let affine = Affine::try_new(&expr, &(0..2), &schema()).unwrap().unwrap();
            affine.may_overflow(&schema()).unwrap()
        };
        assert!(may_overflow(&column(2)) && may_overflow(&lit(1e10)));
        assert!(!may_overflow(&lit(0.5)));
    }
}
