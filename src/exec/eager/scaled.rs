//! [`Scaled`]: how the states of `scale * x + shift` follow from those of `x`.
//!
//! All rows of a state are joined with the same row of the other side, so they have the same scale and shift.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::{AggregateUDF, Operator};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, case, lit};

use super::affine::{Affine, product, sum};
use super::conditional::{both, either, known};

/// The states of an aggregate of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A count.
    Count,
    /// A sum.
    Sum,
    /// A count and a sum.
    Average,
    /// A count, a mean, and a sum of squared deviations.
    Variance,
    /// The least or the greatest number.
    Extreme,
    /// A count, a sum of products with a weight, and a sum of these weights.
    Weighted,
}

/// An aggregate of `scale * x + shift`.
pub(super) struct Scaled {
    affine: Affine,
    kind: Kind,
    /// The weight of a weighted average, by which scale and shift are multiplied.
    weight: Option<PhysicalExprRef>,
    /// The aggregate from whose states those of the function follow; `None` for the function itself, of `x`.
    pub(super) main: Option<OfX>,
    /// Further aggregates that are needed, with one state each: the count of a sum, and the least and the greatest number where
    /// the scale may be infinite.
    pub(super) further: Vec<OfX>,
}

/// An aggregate of `x`.
pub(super) struct OfX {
    pub(super) function: Arc<AggregateUDF>,
    /// `x` over both sides. For the least and the greatest number, it is without its cast: casts keep the order of numbers, and
    /// reductions of variables are faster than those of expressions.
    pub(super) argument: PhysicalExprRef,
}

impl Scaled {
    /// Returns how to aggregate; `schema` has the columns of both sides. `None` if the states do not follow from those of `x`.
    pub(super) fn of(
        function: &AggregateFunctionExpr,
        affine: Affine,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let fun = function.fun();
        let variances = [var_samp_udaf(), var_pop_udaf(), stddev_udaf(), stddev_pop_udaf()];
        let (mut main, mut further) = (None, vec![]);
        let kind = if *fun == *count_udaf() {
            Kind::Count
        } else if *fun == *sum_udaf() {
            further.push(OfX { function: count_udaf(), argument: Arc::clone(&affine.x) });
            Kind::Sum
        } else if *fun == *avg_udaf() {
            Kind::Average
        } else if variances.iter().any(|it| *fun == **it) {
            Kind::Variance
        } else if *fun == *min_udaf() || *fun == *max_udaf() {
            let Some(is_reversed) = affine.reverses() else { return Ok(None) };
            let is_least = (*fun == *min_udaf()) != is_reversed;
            let [least, greatest] = extremes(&affine.x, schema)?;
            main = Some(if is_least { least } else { greatest });
            Kind::Extreme
        } else {
            return Ok(None);
        };
        if matches!(kind, Kind::Sum | Kind::Average) && !affine.has_finite_scale(schema)? {
            further.extend(extremes(&affine.x, schema)?);
        }
        Ok(Some(Self { affine, kind, weight: None, main, further }))
    }

    /// Returns how to aggregate a weighted average with a weight of the other side.
    pub(super) fn weighted(
        affine: Affine,
        weight: &PhysicalExprRef,
        schema: &Schema,
    ) -> Result<Self> {
        let affine = affine.times(weight);
        let further = match affine.has_finite_scale(schema)? {
            true => vec![],
            false => extremes(&affine.x, schema)?.into(),
        };
        let main = Some(OfX { function: avg_udaf(), argument: Arc::clone(&affine.x) });
        Ok(Self { affine, kind: Kind::Weighted, weight: Some(Arc::clone(weight)), main, further })
    }

    /// The expression of the array.
    pub(super) fn x(&self) -> &PhysicalExprRef {
        &self.affine.x
    }

    /// Returns the expressions over both sides that the states need.
    pub(super) fn needed(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        [&self.affine.scale, &self.affine.shift].into_iter().chain(&self.weight)
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
        over_join: impl Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    ) -> Result<Vec<PhysicalExprRef>> {
        let (scale, shift) = (over_join(&self.affine.scale)?, over_join(&self.affine.shift)?);
        // Where one of them is NULL, so is the argument of all rows.
        let known = both(known(&scale)?, known(&shift)?);
        let zero = |state: &PhysicalExprRef, data_type: DataType| {
            let zero = [ScalarValue::new_zero(&data_type)?];
            match &known {
                Some(known) => {
                    either(known, std::slice::from_ref(state), &zero).map(|mut it| it.remove(0))
                }
                None => Ok(Arc::clone(state)),
            }
        };
        let moved = |number: &PhysicalExprRef| sum(&product(&scale, number), &shift);
        Ok(match (self.kind, of_x, further) {
            (Kind::Count, [count], []) => vec![zero(count, DataType::Int64)?],
            (Kind::Sum, [total], [count, extremes @ ..]) => {
                vec![total_of(&scale, &shift, total, count, extremes)?]
            }
            (Kind::Average, [count, total], extremes) => {
                // A group without a value has NULL as both.
                let count_known = match &known {
                    Some(known) => case(None, vec![(Arc::clone(known), Arc::clone(count))], None)?,
                    None => Arc::clone(count),
                };
                vec![count_known, total_of(&scale, &shift, total, count, extremes)?]
            }
            (Kind::Variance, [count, mean, m2], []) => {
                let (mean, squared) = (moved(mean), product(&scale, &scale));
                // Infinite numbers have no spread: it is NaN.
                let nothing = Arc::new(BinaryExpr::new(
                    Arc::clone(&mean),
                    Operator::Minus,
                    Arc::clone(&mean),
                ));
                let m2 = sum(&product(&squared, m2), &(nothing as PhysicalExprRef));
                vec![
                    zero(count, DataType::UInt64)?,
                    zero(&mean, DataType::Float64)?,
                    zero(&m2, DataType::Float64)?,
                ]
            }
            (Kind::Extreme, [extreme], []) => vec![moved(&wide(extreme))],
            (Kind::Weighted, [count, total], extremes) => {
                let total = total_of(&scale, &shift, total, count, extremes)?;
                let weight = self.weight.as_ref().map(&over_join).transpose()?;
                let weights = product(weight.as_ref().unwrap_or(&scale), &wide(count));
                let some: PhysicalExprRef =
                    Arc::new(BinaryExpr::new(Arc::clone(count), Operator::Gt, lit(0_u64)));
                let counts = both(known, Some(Arc::clone(&some))).unwrap_or(some);
                let none = [DataType::UInt64, DataType::Float64, DataType::Float64];
                let none = none.iter().map(ScalarValue::try_from).collect::<Result<Vec<_>>>()?;
                either(&counts, &[Arc::clone(count), total, weights], &none)?
            }
            _ => return Err(internal_datafusion_err!("an aggregate has other states")),
        })
    }
}

/// Returns the sum of `scale * x + shift` from the sum and the count of `x`.
///
/// An infinite scale times the sum is not the sum of the products: these are NaN if a number is 0, or if numbers have both signs.
/// So are the products with the least and the greatest number, or their sum.
fn total_of(
    scale: &PhysicalExprRef,
    shift: &PhysicalExprRef,
    total: &PhysicalExprRef,
    count: &PhysicalExprRef,
    extremes: &[PhysicalExprRef],
) -> Result<PhysicalExprRef> {
    let scaled = product(scale, total);
    let scaled = match extremes {
        [least, greatest] => {
            let is = |number: f64| -> PhysicalExprRef {
                Arc::new(BinaryExpr::new(Arc::clone(scale), Operator::Eq, lit(number)))
            };
            let is_infinite =
                Arc::new(BinaryExpr::new(is(f64::INFINITY), Operator::Or, is(f64::NEG_INFINITY)));
            let products = sum(&product(scale, &wide(least)), &product(scale, &wide(greatest)));
            case(None, vec![(is_infinite, sum(&products, &scaled))], Some(scaled))?
        }
        _ => scaled,
    };
    Ok(sum(&scaled, &product(shift, &wide(count))))
}

/// Returns the least and the greatest `x`.
fn extremes(x: &PhysicalExprRef, schema: &Schema) -> Result<[OfX; 2]> {
    let argument = match x.downcast_ref::<CastExpr>() {
        Some(cast) => {
            let from = cast.expr().data_type(schema)?;
            // The cast is one to `Float64`, as `x` is.
            if from.is_integer() || from.is_floating() { cast.expr() } else { x }
        }
        None => x,
    };
    let of = |function| OfX { function, argument: Arc::clone(argument) };
    Ok([of(min_udaf()), of(max_udaf())])
}

/// Returns a number as a `Float64`.
fn wide(number: &PhysicalExprRef) -> PhysicalExprRef {
    Arc::new(CastExpr::new(Arc::clone(number), DataType::Float64, None))
}
