//! [`Call`]: an aggregate in terms of the statistics of groups, and the columns made of their states.
//!
//! ```text
//!   call           statistics           partial state      value
//!   count(*)       rows, from extents   count              count
//!   count(v)       counts               count              count
//!   sum(v)         sums or wide_sums    sum                sum
//!   avg(v)         counts, sums         count, sum         sum / count
//!   min(v) max(v)  mins, maxs           extreme            extreme
//!   variances      spreads              count, mean, m2    m2 / count or m2 / (count - 1), or its root
//!   weighted_avg   weighted             sum, weights       sum / weights
//!   regr_… corr    pairs                as the function's  as the function's
//!   first_value    cells                by FirstCell       the label of the cell
//!   of labels      none                 by LabelCall       by LabelCall
//! ```
//!
//! Partial states have the columns and types of the functions themselves, because DataFusion's final stage
//! merges them. Without a value in a group, counts are 0, and all others are NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, UInt64Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::number::{is_never_null, number_of, plain_value};
use super::pair::PairCall;
use super::query::Aggregate;
use crate::exec::GridScanExec;
use crate::exec::matching::known_aggregate;
use crate::exec::nans::one_nan;
use crate::reduce::{GroupStats, Moments, RequestedStats, WeightedStates};

/// An aggregate in terms of the statistics that the kernels compute.
///
/// `CountRows` is `count(*)`, or the count of an expression that is never NULL. `Sum` has the type
/// `Float64`, and `WideSum` `Int64` or `UInt64`. A `sample` variance divides by `count - 1`; its `root`
/// is a standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Call {
    CountRows,
    Count,
    Sum,
    WideSum,
    Average,
    Min,
    Max,
    Variance { sample: bool, root: bool },
    WeightedAverage,
    Pairs(PairCall),
    FirstCell,
    OfLabels,
}

impl Call {
    /// Whether the value or state is computed from the sums.
    pub(super) fn needs_sums(self) -> bool {
        matches!(self, Self::Sum | Self::Average)
    }

    /// Returns the statistics that the call needs of a member.
    pub(in crate::exec) fn requested(self) -> RequestedStats {
        RequestedStats {
            sum: self.needs_sums(),
            wide_sum: self == Self::WideSum,
            min: self == Self::Min,
            max: self == Self::Max,
            spread: matches!(self, Self::Variance { .. }),
            pairs: matches!(self, Self::Pairs(_)),
        }
    }

    /// Translates the function and the argument of `aggregate` into a call and the number of its variable.
    /// `None` if the argument is more than a variable, or no kernel supports it.
    pub(super) fn try_new(
        aggregate: &Aggregate,
        scan: &GridScanExec,
    ) -> Option<(Self, Option<usize>)> {
        let function = &aggregate.function;
        // `count(*)` has the constant 1 as its argument.
        let [arg] = aggregate.args.as_slice() else { return None };
        let name = known_aggregate(function.fun())?;
        if name == "count" && is_never_null(arg, scan) {
            return Some((Self::CountRows, None));
        }
        let (value, number_type) = number_of(arg, scan)?;
        let call = Self::from_value(name, function, value, &number_type, arg, scan)?;
        Some((call, Some(value)))
    }

    /// Translates `function`, known as `name`, over the variable `value`, which is cast to `number_type`. `None` if a type
    /// is not the one that the kernels compute in, such as doubles for an average.
    fn from_value(
        name: &str,
        function: &AggregateFunctionExpr,
        value: usize,
        number_type: &DataType,
        arg: &PhysicalExprRef,
        scan: &GridScanExec,
    ) -> Option<Self> {
        let field = function.field();
        let is_plain = plain_value(arg, scan).is_some();
        let are_doubles =
            *number_type == DataType::Float64 && *field.data_type() == DataType::Float64;
        Some(match name {
            "count" => Self::Count,
            "min" if is_plain => Self::Min,
            "max" if is_plain => Self::Max,
            "sum" => {
                let unsigned = scan.array().value(value).as_number()?.element().is_unsigned();
                match (number_type, field.data_type()) {
                    (DataType::Float64, DataType::Float64) => Self::Sum,
                    (DataType::Int64, DataType::Int64) if !unsigned => Self::WideSum,
                    (DataType::UInt64, DataType::UInt64) if unsigned => Self::WideSum,
                    _ => return None,
                }
            }
            "avg" if are_doubles => Self::Average,
            "var" if are_doubles => Self::Variance { sample: true, root: false },
            "var_pop" if are_doubles => Self::Variance { sample: false, root: false },
            "stddev" if are_doubles => Self::Variance { sample: true, root: true },
            "stddev_pop" if are_doubles => Self::Variance { sample: false, root: true },
            _ => return None,
        })
    }

    /// Returns the columns of the partial state, in the form of DataFusion's own function.
    pub(in crate::exec) fn state(
        self,
        stats: &mut GroupStats,
        rows: &[u64],
    ) -> Result<Vec<ArrayRef>> {
        Ok(match self {
            Self::Average => {
                let nulls = seen(&stats.counts);
                let counts = UInt64Array::new(stats.counts.clone().into(), nulls.clone());
                let sums = computed(stats.sums.as_ref())?.clone();
                vec![Arc::new(counts), Arc::new(Float64Array::new(sums.into(), nulls))]
            }
            Self::Variance { .. } => {
                let moments = computed(stats.spreads.as_ref())?;
                let column = |part: fn(&Moments) -> f64| -> ArrayRef {
                    Arc::new(Float64Array::from_iter_values(moments.iter().map(part)))
                };
                let counts = UInt64Array::from(stats.counts.clone());
                vec![Arc::new(counts), column(|moments| moments.mean), column(|moments| moments.m2)]
            }
            Self::WeightedAverage => {
                let nulls = seen(&stats.counts);
                let WeightedStates { sums, weights } = computed(stats.weighted.clone())?;
                let column = |numbers: Vec<f64>| -> ArrayRef {
                    Arc::new(Float64Array::new(numbers.into(), nulls.clone()))
                };
                let counts = UInt64Array::from(stats.counts.clone());
                vec![Arc::new(counts), column(sums), column(weights)]
            }
            Self::Pairs(call) => call.state(computed(stats.pairs.as_deref())?),
            // The state of the other calls is their value.
            _ => vec![self.value(stats, rows, false)?],
        })
    }

    /// Returns the column of the final values. The `last` call that needs the sums reuses their memory,
    /// because fresh memory for many groups takes longer than the division.
    pub(in crate::exec) fn value(
        self,
        stats: &mut GroupStats,
        rows: &[u64],
        last: bool,
    ) -> Result<ArrayRef> {
        let counted = |counts: &[u64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(counts.iter().map(|&count| count as i64)))
        };
        let nulls = seen(&stats.counts);
        let values: ArrayRef = match self {
            Self::CountRows => counted(rows),
            Self::Count => counted(&stats.counts),
            Self::Sum => {
                Arc::new(Float64Array::new(computed(stats.sums.as_ref())?.clone().into(), nulls))
            }
            Self::Average => {
                let sums = if last { stats.sums.take() } else { stats.sums.clone() };
                let mut averages = computed(sums)?;
                let pairs = averages.iter_mut().zip(&stats.counts);
                pairs.for_each(|(average, &count)| *average /= count as f64);
                Arc::new(Float64Array::new(averages.into(), nulls))
            }
            Self::WideSum => with_nulls(computed(stats.wide_sums.as_ref())?, nulls)?,
            Self::Min => with_nulls(computed(stats.mins.as_ref())?, nulls)?,
            Self::Max => with_nulls(computed(stats.maxs.as_ref())?, nulls)?,
            Self::WeightedAverage => {
                let WeightedStates { sums, weights } = computed(stats.weighted.as_ref())?;
                let averages = sums.iter().zip(weights).map(|(sum, weights)| sum / weights);
                Arc::new(Float64Array::new(averages.collect::<Vec<_>>().into(), nulls))
            }
            Self::Pairs(call) => call.value(computed(stats.pairs.as_deref())?),
            Self::FirstCell | Self::OfLabels => return internal_err!("a call without its labels"),
            Self::Variance { sample, root } => {
                let variance = |moments: &Moments| {
                    let count = moments.count as f64;
                    let variance = match (sample, moments.count) {
                        (_, 0) | (true, 1) => return None,
                        (true, _) => moments.m2 / (count - 1.0),
                        (false, _) => moments.m2 / count,
                    };
                    Some(if root { variance.sqrt() } else { variance })
                };
                Arc::new(
                    computed(stats.spreads.as_ref())?
                        .iter()
                        .map(variance)
                        .collect::<Float64Array>(),
                )
            }
        };
        Ok(one_nan(values))
    }
}

/// Unwraps a statistic, which must have been requested.
fn computed<T>(statistic: Option<T>) -> Result<T> {
    statistic.ok_or_else(|| internal_datafusion_err!("a statistic was not requested"))
}

/// Returns the validity of groups: valid where the count is not 0. `None` if all are valid.
fn seen(counts: &[u64]) -> Option<NullBuffer> {
    if !counts.contains(&0) {
        return None;
    }
    Some(counts.iter().map(|&count| count > 0).collect())
}

/// Returns the array with these NULLs. The elements there are neutral ones, which nothing reads.
fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(match nulls {
        None => Arc::clone(array),
        Some(nulls) => make_array(array.to_data().into_builder().nulls(Some(nulls)).build()?),
    })
}
