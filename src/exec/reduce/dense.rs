//! [`DensePlan`]: the aggregations that the dense kernels support, and the columns made of their states.
//!
//! ```text
//!   call           statistics           partial state      value
//!   count(*)       rows, from extents   count              count
//!   count(v)       counts               count              count
//!   sum(v)         sums or wide_sums    sum                sum
//!   avg(v)         counts, sums         count, sum         sum / count
//!   min(v) max(v)  mins, maxs           extreme            extreme
//!   variances      spreads              count, mean, m2    m2 / count or m2 / (count - 1), or its root
//! ```
//!
//! Partial states have the columns and types of DataFusion's own functions, because its final stage
//! merges them. Without a value in a group, counts are 0, and sums, averages and extremes are NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, UInt64Array, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column as PhysicalColumn, IsNotNullExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExprRef, split_conjunction};

use super::query::{Aggregate, Query};
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::reduce::{GroupStats, Limit, Moments, Number, Requested, ValueRange, reducer};

/// A plan to compute aggregates of plain variables with the dense kernels.
#[derive(Debug, Clone)]
pub(super) struct DensePlan {
    /// The aggregates, in the order of the query.
    pub(super) calls: Vec<DenseCall>,
    /// The variables that the calls use, each once.
    pub(super) columns: Vec<DenseColumn>,
    /// The predicate, if there is one; it is over the only column.
    pub(super) range: Option<ValueRange>,
}

/// One aggregate of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DenseCall {
    pub(super) call: Call,
    /// The position of its variable in the plan's columns; `None` for a count of rows.
    pub(super) column: Option<usize>,
}

/// A variable of the array, and the statistics that the calls need of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct DenseColumn {
    /// The number of the variable.
    pub(super) value: usize,
    pub(super) requested: Requested,
}

/// An aggregate in terms of the statistics that the kernels compute.
///
/// `CountRows` is `count(*)`, or the count of an expression that is never NULL. `Sum` has the type
/// `Float64`, and `WideSum` `Int64` or `UInt64`. A `sample` variance divides by `count - 1`; its `root`
/// is a standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    CountRows,
    Count,
    Sum,
    WideSum,
    Average,
    Min,
    Max,
    Variance { sample: bool, root: bool },
}

impl DensePlan {
    /// Plans `query` with the kernels; `None` if they do not support it.
    pub(super) fn of(query: &Query, scan: &GridScanExec) -> Option<Self> {
        let (ranged, range) = match &query.predicate {
            Some(predicate) => {
                let (value, range) = value_range(predicate, scan)?;
                (Some(value), Some(range))
            }
            None => (None, None),
        };
        // The variables that are read. That of the predicate is needed even if no aggregate is over it.
        let mut values: Vec<usize> = ranged.into_iter().collect();
        let mut calls = Vec::new();
        for aggregate in &query.aggregates {
            let (call, value) = match (Call::of(aggregate, scan)?, ranged) {
                // A row that passes a predicate on a variable has a value: counting values counts rows.
                ((Call::CountRows, _), Some(value)) => (Call::Count, Some(value)),
                (call, _) => call,
            };
            let column = value.map(|value| match values.iter().position(|&it| it == value) {
                Some(column) => column,
                None => {
                    values.push(value);
                    values.len() - 1
                }
            });
            calls.push(DenseCall { call, column });
        }
        if range.is_some() && values.len() > 1 {
            return None; // the predicate is over another variable
        }
        let columns = values.iter().enumerate().map(|(column, &value)| {
            let of_column = calls.iter().filter(|call| call.column == Some(column));
            let requested = requested_by(of_column.map(|call| call.call));
            let number = scan.array().value(value).as_number()?;
            // Makes a reducer without groups, only to learn whether the kernels support the column.
            reducer(number, requested, range.as_ref(), 0)?;
            Some(DenseColumn { value, requested })
        });
        let columns = columns.collect::<Option<_>>()?;
        Some(Self { calls, columns, range })
    }

    /// Returns the bytes of the states of a group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        let of_column = |column: &DenseColumn| 8 + column.requested.bytes_per_group();
        8 + self.columns.iter().map(of_column).sum::<u64>()
    }
}

/// Returns the statistics that `calls` need.
fn requested_by(calls: impl Iterator<Item = Call>) -> Requested {
    let mut requested = Requested::default();
    for call in calls {
        requested.sum |= call.needs_sums();
        requested.wide_sum |= call == Call::WideSum;
        requested.min |= call == Call::Min;
        requested.max |= call == Call::Max;
        requested.spread |= matches!(call, Call::Variance { .. });
    }
    requested
}

impl Call {
    /// Whether the value or state is computed from the sums.
    pub(super) fn needs_sums(self) -> bool {
        matches!(self, Self::Sum | Self::Average)
    }

    /// Translates `aggregate` into a call and the number of its variable; `None` if no kernel supports it.
    fn of(aggregate: &Aggregate, scan: &GridScanExec) -> Option<(Self, Option<usize>)> {
        let function = &aggregate.function;
        if aggregate.filter.is_some() || function.is_distinct() {
            return None;
        }
        // `count(*)` has the constant 1 as its argument.
        let [arg] = aggregate.args.as_slice() else { return None };
        let fun = function.fun();
        if *fun == *count_udaf() && is_never_null(arg, scan) {
            return Some((Self::CountRows, None));
        }
        let (value, number_type) = number_of(arg, scan)?;
        let call = Self::of_value(function, value, &number_type, arg, scan)?;
        Some((call, Some(value)))
    }

    /// Translates `function` over the variable `value`, which is cast to `number_type`. `None` if a type
    /// is not the one that the kernels compute in, such as doubles for an average.
    fn of_value(
        function: &AggregateFunctionExpr,
        value: usize,
        number_type: &DataType,
        arg: &PhysicalExprRef,
        scan: &GridScanExec,
    ) -> Option<Self> {
        let (fun, field) = (function.fun(), function.field());
        let plain = plain_value(arg, scan).is_some();
        if *fun == *count_udaf() {
            return Some(Self::Count);
        }
        if *fun == *min_udaf() {
            return plain.then_some(Self::Min);
        }
        if *fun == *max_udaf() {
            return plain.then_some(Self::Max);
        }
        if *fun == *sum_udaf() {
            let unsigned = scan.array().value(value).as_number()?.element().is_unsigned();
            return match (number_type, field.data_type()) {
                (DataType::Float64, DataType::Float64) => Some(Self::Sum),
                (DataType::Int64, DataType::Int64) if !unsigned => Some(Self::WideSum),
                (DataType::UInt64, DataType::UInt64) if unsigned => Some(Self::WideSum),
                _ => None,
            };
        }
        if *number_type != DataType::Float64 || *field.data_type() != DataType::Float64 {
            return None;
        }
        let variances = [
            (var_samp_udaf(), true, false),
            (var_pop_udaf(), false, false),
            (stddev_udaf(), true, true),
            (stddev_pop_udaf(), false, true),
        ];
        if *fun == *avg_udaf() {
            return Some(Self::Average);
        }
        variances
            .iter()
            .find(|(udaf, ..)| *fun == **udaf)
            .map(|(_, sample, root)| Self::Variance { sample: *sample, root: *root })
    }

    /// Returns the columns of the partial state, in the form of DataFusion's own function.
    pub(super) fn state(self, stats: &mut GroupStats, rows: &[u64]) -> Result<Vec<ArrayRef>> {
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
            // The state of the other calls is their value.
            _ => vec![self.value(stats, rows, false)?],
        })
    }

    /// Returns the column of the final values. The `last` call that needs the sums reuses their memory,
    /// because fresh memory for many groups takes longer than the division.
    pub(super) fn value(
        self,
        stats: &mut GroupStats,
        rows: &[u64],
        last: bool,
    ) -> Result<ArrayRef> {
        let counted = |counts: &[u64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(counts.iter().map(|&count| count as i64)))
        };
        let nulls = seen(&stats.counts);
        Ok(match self {
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
        })
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

/// Returns the source of the scan's column `expr`; `None` if `expr` is not a column.
fn column_of(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<ColumnSource> {
    let column = expr.downcast_ref::<PhysicalColumn>()?;
    scan.columns().get(column.index()).copied()
}

/// Returns the number of the variable whose column `expr` is; `None` unless the variable is numeric.
fn plain_value(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<usize> {
    let value = column_of(expr, scan)?.value()?;
    scan.array().value(value).as_number().map(|_| value)
}

/// Whether `expr` is a column or a constant without NULLs.
fn is_never_null(expr: &PhysicalExprRef, scan: &GridScanExec) -> bool {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return !literal.value().is_null();
    }
    expr.is::<PhysicalColumn>() && matches!(expr.nullable(scan.schema_ref()), Ok(false))
}

/// Returns the variable of `expr`, and the type of `expr`: the variable's own, or a wider one that it is
/// cast to. Such a cast never overflows, and never changes which values are NULL.
///
/// DataFusion adds such casts: `avg(value)` of singles is `avg(CAST(value AS Float64))`. The kernels read
/// stored elements and widen them one by one.
fn number_of(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<(usize, DataType)> {
    let type_of = |value: usize| scan.array().value(value).data_type();
    if let Some(value) = plain_value(expr, scan) {
        return type_of(value).is_numeric().then(|| (value, type_of(value)));
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let to = cast.cast_type();
    let value = plain_value(cast.expr(), scan)?;
    let from = type_of(value);
    let widens = match to {
        DataType::Float64 => from.is_numeric(),
        DataType::Float32 => from == DataType::Float16,
        DataType::Int64 => from.is_signed_integer() || is_narrow_unsigned(&from),
        DataType::UInt64 => from.is_unsigned_integer(),
        _ => false,
    };
    widens.then(|| (value, to.clone()))
}

fn is_narrow_unsigned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32)
}

/// Returns the variable that `predicate` is over, and the interval for which `predicate` is true. `None`
/// unless it consists of comparisons of one variable with numbers, joined by AND.
///
/// `value > 5 AND 10 >= value AND value IS NOT NULL` is the interval from 5, exclusive, to 10, inclusive.
fn value_range(predicate: &PhysicalExprRef, scan: &GridScanExec) -> Option<(usize, ValueRange)> {
    let mut range = ValueRange::default();
    let mut over: Option<usize> = None;
    // `None` as soon as a conjunct is over another variable.
    let mut same = |value: usize| (*over.get_or_insert(value) == value).then_some(());
    for conjunct in split_conjunction(predicate) {
        if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
            // With a range, NULLs never count.
            same(plain_value(not_null.arg(), scan)?)?;
            continue;
        }
        let comparison = conjunct.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (comparison.left(), comparison.right());
        let (side, number, operator) = match (number(left), number(right)) {
            (None, Some(number)) => (left, number, *comparison.op()),
            (Some(number), None) => (right, number, comparison.op().swap()?),
            _ => return None,
        };
        same(compared_exactly(side, number, scan)?)?;
        let limit = |inclusive| Some(Limit { number, inclusive });
        let (least, greatest) = match operator {
            Operator::Gt => (limit(false), None),
            Operator::GtEq => (limit(true), None),
            Operator::Lt => (None, limit(false)),
            Operator::LtEq => (None, limit(true)),
            Operator::Eq => (limit(true), limit(true)),
            _ => return None,
        };
        // Two bounds on the same side are rare: DataFusion's optimizer merges those of one type.
        if (least.is_some() && range.least.is_some())
            || (greatest.is_some() && range.greatest.is_some())
        {
            return None;
        }
        range.least = range.least.or(least);
        range.greatest = range.greatest.or(greatest);
    }
    Some((over?, range))
}

/// Returns the variable of `side`, if its elements compare with `number` exactly as `side` does: nothing
/// is rounded.
///
/// DataFusion compares both sides in one type. `CAST(value AS Float64) > 0.1` is exact for singles and for
/// integers of up to 4 bytes. An `Int64` may be rounded to a double, so the kernels do not take it.
fn compared_exactly(side: &PhysicalExprRef, number: Number, scan: &GridScanExec) -> Option<usize> {
    let (value, compared_as) = number_of(side, scan)?;
    let from = scan.array().value(value).data_type();
    let exact = match number {
        Number::Integer(_) => compared_as.is_integer() && from.is_integer(),
        Number::Float(number) => {
            let narrow =
                from.is_floating() || from.primitive_width().is_some_and(|width| width <= 4);
            compared_as.is_floating() && narrow && !number.is_nan()
        }
    };
    exact.then_some(value)
}

/// Returns the number that `expr` is; `None` unless `expr` is a numeric literal other than NULL.
fn number(expr: &PhysicalExprRef) -> Option<Number> {
    let value = expr.downcast_ref::<Literal>()?.value();
    let widest = match value.data_type() {
        float if float.is_floating() => DataType::Float64,
        unsigned if unsigned.is_unsigned_integer() => DataType::UInt64,
        signed if signed.is_signed_integer() => DataType::Int64,
        _ => return None,
    };
    match value.cast_to(&widest).ok()? {
        ScalarValue::Float64(number) => number.map(Number::Float),
        ScalarValue::UInt64(number) => number.map(|number| Number::Integer(number.into())),
        ScalarValue::Int64(number) => number.map(|number| Number::Integer(number.into())),
        _ => None,
    }
}
