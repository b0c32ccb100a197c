//! Which aggregations the dense kernels can do, and what becomes of their states.

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

/// Aggregates of plain values, by kernels.
#[derive(Debug, Clone)]
pub(super) struct DensePlan {
    pub(super) calls: Vec<DenseCall>,
    /// The values that the calls are of, each once.
    pub(super) columns: Vec<DenseColumn>,
    /// The predicate, if there is one: it is over the only column.
    pub(super) range: Option<ValueRange>,
}

/// One aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DenseCall {
    pub(super) call: Call,
    /// Which of the plan's columns it is of; the one that counts rows is of none.
    pub(super) column: Option<usize>,
}

/// A value of the array and what is to be known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct DenseColumn {
    pub(super) value: usize,
    pub(super) requested: Requested,
}

/// An aggregate in terms of what the kernels find out.
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
    /// How the kernels would do `query`, or `None` if they cannot.
    pub(super) fn of(query: &Query, scan: &GridScanExec) -> Option<Self> {
        let (ranged, range) = match &query.predicate {
            Some(predicate) => {
                let (value, range) = value_range(predicate, scan)?;
                (Some(value), Some(range))
            }
            None => (None, None),
        };
        let mut values: Vec<usize> = ranged.into_iter().collect();
        let mut calls = Vec::new();
        for aggregate in &query.aggregates {
            let (call, value) = match (Call::of(aggregate, scan)?, ranged) {
                // What passes a predicate on a value has one.
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
            return None; // the predicate is over another value
        }
        let columns = values.iter().enumerate().map(|(column, &value)| {
            let of_column = calls.iter().filter(|call| call.column == Some(column));
            let requested = requested_by(of_column.map(|call| call.call));
            let number = scan.array().value(value).as_number()?;
            reducer(number, requested, range.as_ref(), 0)?;
            Some(DenseColumn { value, requested })
        });
        let columns = columns.collect::<Option<_>>()?;
        Some(Self { calls, columns, range })
    }

    /// Bytes of the states of a group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        let of_column = |column: &DenseColumn| 8 + column.requested.bytes_per_group();
        8 + self.columns.iter().map(of_column).sum::<u64>()
    }
}

/// What `calls` need.
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
    /// Whether the value or state is made of the sums.
    pub(super) fn needs_sums(self) -> bool {
        matches!(self, Self::Sum | Self::Average)
    }

    /// The call that `aggregate` is, and the value that it is of.
    fn of(aggregate: &Aggregate, scan: &GridScanExec) -> Option<(Self, Option<usize>)> {
        let function = &aggregate.function;
        if aggregate.filter.is_some() || function.is_distinct() {
            return None;
        }
        let [arg] = aggregate.args.as_slice() else { return None };
        let fun = function.fun();
        if *fun == *count_udaf() && is_never_null(arg, scan) {
            return Some((Self::CountRows, None));
        }
        let (value, number_type) = number_of(arg, scan)?;
        let call = Self::of_value(function, value, &number_type, arg, scan)?;
        Some((call, Some(value)))
    }

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

    /// The columns of the partial state, as DataFusion's own function would have them.
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
            // Their state is their value.
            _ => vec![self.value(stats, rows, false)?],
        })
    }

    /// The column of the final value. The `last` that needs the sums may use their memory: fresh
    /// memory for many groups takes longer than the division.
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

/// A statistic that was requested.
fn computed<T>(statistic: Option<T>) -> Result<T> {
    statistic.ok_or_else(|| internal_datafusion_err!("a statistic that was not requested"))
}

/// Valid where something was counted; `None` if that is everywhere.
fn seen(counts: &[u64]) -> Option<NullBuffer> {
    if !counts.contains(&0) {
        return None;
    }
    Some(counts.iter().map(|&count| count > 0).collect())
}

fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(match nulls {
        None => Arc::clone(array),
        Some(nulls) => make_array(array.to_data().into_builder().nulls(Some(nulls)).build()?),
    })
}

/// What of the array a column of the scan shows, if `expr` is one.
fn column_of(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<ColumnSource> {
    let column = expr.downcast_ref::<PhysicalColumn>()?;
    scan.columns().get(column.index()).copied()
}

/// The value that `expr` shows, if it is one of numbers.
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

/// The value that `expr` shows and the type in which it does: its own or a wider one, without loss of a
/// NULL or an overflow on the way.
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

/// The value that `predicate` is over, and the interval for which it is true, if it is one: comparisons
/// of that value with numbers, joined by AND.
fn value_range(predicate: &PhysicalExprRef, scan: &GridScanExec) -> Option<(usize, ValueRange)> {
    let mut range = ValueRange::default();
    let mut over: Option<usize> = None;
    let mut same = |value: usize| (*over.get_or_insert(value) == value).then_some(());
    for conjunct in split_conjunction(predicate) {
        if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
            // NULLs never count where there is a range.
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
        // Two bounds on one side are rare, and DataFusion's optimizer joins those of one type.
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

/// The value that `side` shows, if comparing its elements with `number` is comparing `side` with it:
/// nothing is rounded.
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

/// The number that `expr` is, if it is a literal one that is not NULL.
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
