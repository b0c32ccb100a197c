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
use datafusion::physical_expr::expressions::{CastExpr, case, is_not_null, lit};

use super::affine::Affine;
use super::expressions::{binary, either, product, wide};

/// The states of an aggregate of numbers.
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
    /// A count, a sum of products with a weight of the other side, and a sum of these weights.
    Weighted(PhysicalExprRef),
}

/// An aggregate of `scale * x + shift`.
pub(super) struct Scaled {
    /// The argument; the product with the weight for a weighted average.
    affine: Affine,
    kind: Kind,
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
        if !affine.has_finite_scale(schema)? {
            match kind {
                Kind::Sum | Kind::Average => further.extend(extremes(&affine.x, schema)?),
                Kind::Variance => return Ok(None),
                _ => {}
            }
        }
        Ok(Some(Self { affine, kind, main, further }))
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
        Ok(Self { affine, kind: Kind::Weighted(Arc::clone(weight)), main, further })
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
            (Kind::Count, [count], []) => vec![zero(Arc::clone(count), DataType::Int64)?],
            (Kind::Sum, [total], [count, extremes @ ..]) => {
                vec![total_of(&at, total, count, extremes)?]
            }
            (Kind::Average, [count, total], extremes) => {
                // A group without a value has NULL as both.
                let counted = case(None, vec![(known, Arc::clone(count))], None)?;
                vec![counted, total_of(&at, total, count, extremes)?]
            }
            (Kind::Variance, [count, mean, m2], []) => {
                let (mean, scale) = (at(mean)?, over_join(&self.affine.scale)?);
                let m2 = product(&product(&scale, &scale), m2);
                // Infinite numbers have no spread: it is NaN.
                let m2 = binary(&m2, Operator::Plus, &binary(&mean, Operator::Minus, &mean));
                vec![
                    zero(Arc::clone(count), DataType::UInt64)?,
                    zero(mean, DataType::Float64)?,
                    zero(m2, DataType::Float64)?,
                ]
            }
            (Kind::Extreme, [extreme], []) => vec![at(&wide(extreme))?],
            (Kind::Weighted(weight), [count, total], extremes) => {
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
/// With an infinite scale, the sum is NaN if values have both signs, or if one is NaN. The values at the least and the greatest
/// `x` tell.
fn total_of(
    at: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    total: &PhysicalExprRef,
    count: &PhysicalExprRef,
    extremes: &[PhysicalExprRef],
) -> Result<PhysicalExprRef> {
    let mean = binary(total, Operator::Divide, &wide(count));
    let sum = binary(&at(&mean)?, Operator::Multiply, &wide(count));
    let [least, greatest] = extremes else { return Ok(sum) };
    let is_finite = binary(&binary(&sum, Operator::Minus, &sum), Operator::Eq, &lit(0.0));
    let both = binary(&at(&wide(least))?, Operator::Plus, &at(&wide(greatest))?);
    let infinite = binary(&sum, Operator::Plus, &both);
    case(None, vec![(is_finite, sum)], Some(infinite))
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
