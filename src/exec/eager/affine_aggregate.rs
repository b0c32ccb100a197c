//! [`AffineAggregate`]: how the states of `scale * x + shift` follow from those of `x`.
//!
//! All rows of a state are joined with the same row of the other side, so they have the same scale and shift.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{AggregateUDF, Operator};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{case, is_not_null, lit};

use super::affine::{Affine, uncast};
use super::expressions::{binary, either, product, wide};
use crate::exec::matching::known_aggregate;
use crate::exec::own_functions::own_aggregate;

/// The states of an aggregate of numbers.
enum NumberStates {
    /// A count.
    Count,
    /// A sum.
    Sum,
    /// A count and a sum.
    Average,
    /// A count, a mean, and a sum of squared deviations.
    Variance,
    /// The least number.
    Least,
    /// The greatest number.
    Greatest,
    /// A count, a sum of products with a weight of the other side, and a sum of these weights.
    Weighted(PhysicalExprRef),
}

/// An aggregate of `scale * x + shift`.
pub(super) struct AffineAggregate {
    /// The argument; the product with the weight for a weighted average.
    affine: Affine,
    kind: NumberStates,
    /// The aggregate from whose states those of the function follow; `None` for the function itself, of `x`.
    pub(super) main: Option<OfX>,
    /// Further aggregates that are needed, with one state each: the count of a sum, the least and the greatest number where
    /// values may be infinite, and the other extreme of an extreme.
    pub(super) further: Vec<OfX>,
}

/// An aggregate of `x`.
pub(super) struct OfX {
    pub(super) function: Arc<AggregateUDF>,
    /// `x` over both sides. For the least and the greatest number, it is without its cast: casts keep the order of numbers, and
    /// reductions of variables are faster than those of expressions.
    pub(super) argument: PhysicalExprRef,
}

impl AffineAggregate {
    /// Returns how to aggregate; `schema` has the columns of both sides. `None` if the states do not follow from those of `x`.
    pub(super) fn try_new(
        function: &AggregateFunctionExpr,
        affine: Affine,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let (mut main, mut further) = (None, vec![]);
        let kind = match known_aggregate(function.fun()) {
            Some("count") => NumberStates::Count,
            Some("sum") => {
                further.push(OfX { function: count_udaf(), argument: Arc::clone(&affine.x) });
                NumberStates::Sum
            }
            Some("avg") => NumberStates::Average,
            Some("var" | "var_pop" | "stddev" | "stddev_pop") => NumberStates::Variance,
            Some(name @ ("min" | "max")) => {
                let Some(is_reversed) = affine.reverses() else { return Ok(None) };
                let is_least = (name == "min") != is_reversed;
                let [least, greatest] = extremes(&affine.x, schema)?;
                let (this, other) = if is_least { (least, greatest) } else { (greatest, least) };
                main = Some(this);
                further.push(other);
                if name == "min" { NumberStates::Least } else { NumberStates::Greatest }
            }
            _ => return Ok(None),
        };
        match kind {
            NumberStates::Sum | NumberStates::Average if affine.may_overflow(schema)? => {
                further.extend(extremes(&affine.x, schema)?);
            }
            NumberStates::Variance if affine.may_overflow(schema)? => return Ok(None),
            _ => {}
        }
        Ok(Some(Self { affine, kind, main, further }))
    }

    /// Returns how to aggregate a weighted average with a weight of the other side.
    pub(super) fn weighted(
        affine: Affine,
        weight: &PhysicalExprRef,
        schema: &Schema,
    ) -> Result<Self> {
        let affine = affine.times(weight, schema)?;
        let further = match affine.may_overflow(schema)? {
            false => vec![],
            true => extremes(&affine.x, schema)?.into(),
        };
        let main = Some(OfX { function: avg_udaf(), argument: Arc::clone(&affine.x) });
        Ok(Self { affine, kind: NumberStates::Weighted(Arc::clone(weight)), main, further })
    }

    /// The expression of the array.
    pub(super) fn x(&self) -> &PhysicalExprRef {
        &self.affine.x
    }

    /// Returns the states of the function from those of `x`, and from the states of further aggregates. `over_join` rewrites
    /// expressions over the output of the join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn states(
        &self,
        of_x: &[PhysicalExprRef],
        further: &[PhysicalExprRef],
        over_join: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    ) -> Result<Vec<PhysicalExprRef>> {
        let at = |x: &PhysicalExprRef| self.affine.at(x, over_join);
        // Where the other side is NULL, so is the argument of all rows.
        let known = is_not_null(at(&lit(0.0))?)?;
        let zero = |state: PhysicalExprRef, data_type: DataType| {
            let zero = [ScalarValue::new_zero(&data_type)?];
            either(&known, &[state], &zero).map(|mut states| states.remove(0))
        };
        Ok(match (&self.kind, of_x, further) {
            (NumberStates::Count, [count], []) => vec![zero(Arc::clone(count), DataType::Int64)?],
            (NumberStates::Sum, [total], [count, extremes @ ..]) => {
                vec![total_of(&at, total, count, extremes)?]
            }
            (NumberStates::Average, [count, total], extremes) => {
                // A group without a value has NULL as both.
                let counted = case(None, vec![(known, Arc::clone(count))], None)?;
                vec![counted, total_of(&at, total, count, extremes)?]
            }
            (NumberStates::Variance, [count, mean, m2], []) => {
                let (mean, scale) = (at(mean)?, over_join(&self.affine.scale)?);
                // The square of the scale may be too large or too small where the result is not.
                let m2 = product(&product(m2, &scale), &scale);
                // Infinite numbers have no spread: it is NaN.
                let m2 = binary(&m2, Operator::Plus, &binary(&mean, Operator::Minus, &mean));
                vec![
                    zero(Arc::clone(count), DataType::UInt64)?,
                    zero(mean, DataType::Float64)?,
                    zero(m2, DataType::Float64)?,
                ]
            }
            (NumberStates::Least, [x], [other]) => {
                let (value, other) = (at(&wide(x))?, at(&wide(other))?);
                // An infinite shift makes all values equal, but NaN of the infinity at one end.
                vec![case(None, vec![(is_nan(&value), other)], Some(value))?]
            }
            (NumberStates::Greatest, [x], [other]) => {
                let (value, other) = (at(&wide(x))?, at(&wide(other))?);
                // NaN is greater than all numbers.
                vec![case(None, vec![(is_nan(&other), other)], Some(value))?]
            }
            (NumberStates::Weighted(weight), [count, total], extremes) => {
                let total = total_of(&at, total, count, extremes)?;
                let weights = product(&over_join(weight)?, &wide(count));
                let some = binary(count, Operator::Gt, &lit(0_u64));
                let counts = binary(&known, Operator::And, &some);
                let none = [DataType::UInt64, DataType::Float64, DataType::Float64];
                let none = none.iter().map(ScalarValue::try_from).collect::<Result<Vec<_>>>()?;
                either(&counts, &[Arc::clone(count), total, weights], &none)?
            }
            _ => return Err(internal_datafusion_err!("an aggregate has other states")),
        })
    }
}

/// Returns the sum of an affine function from the sum and the count of `x`: its value `at` the mean, times the count.
///
/// If some values are infinite or NaN, the least and the greatest `x` have such a value. The sum of these two is then that of
/// all.
fn total_of(
    at: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    total: &PhysicalExprRef,
    count: &PhysicalExprRef,
    extremes: &[PhysicalExprRef],
) -> Result<PhysicalExprRef> {
    let mean = binary(total, Operator::Divide, &wide(count));
    let sum = binary(&at(&mean)?, Operator::Multiply, &wide(count));
    let [least, greatest] = extremes else { return Ok(sum) };
    let ends = [at(&wide(least))?, at(&wide(greatest))?];
    let zero = |end: &PhysicalExprRef| binary(end, Operator::Minus, end);
    let zero = binary(&zero(&ends[0]), Operator::Plus, &zero(&ends[1]));
    let are_finite = binary(&zero, Operator::Eq, &lit(0.0));
    let infinite = binary(&ends[0], Operator::Plus, &ends[1]);
    case(None, vec![(are_finite, sum)], Some(infinite))
}

/// Whether a number is NaN, of either sign. Comparisons take NaN for greater or less than all numbers by its sign.
fn is_nan(number: &PhysicalExprRef) -> PhysicalExprRef {
    let above = binary(number, Operator::Gt, &lit(f64::INFINITY));
    let below = binary(number, Operator::Lt, &lit(f64::NEG_INFINITY));
    binary(&above, Operator::Or, &below)
}

/// Returns the least and the greatest `x`, where NaN is the greatest.
fn extremes(x: &PhysicalExprRef, schema: &Schema) -> Result<[OfX; 2]> {
    let argument = uncast(x, schema)?;
    let of = |function: Arc<AggregateUDF>| OfX {
        function: own_aggregate(&function).unwrap_or(function),
        argument: Arc::clone(argument),
    };
    Ok([of(min_udaf()), of(max_udaf())])
}
