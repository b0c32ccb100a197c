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
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column as PhysicalColumn, IsNotNullExpr, Literal,
};
use datafusion::physical_expr::split_conjunction;

use super::query::{Aggregate, Expr, Query};
use crate::exec::GridScanExec;
use crate::scan::Column;
use crate::scan::reduce::{Found, Limit, Moments, Number, ValueRange, Wanted, reducer};

/// Aggregates of plain values, by kernels.
#[derive(Debug, Clone)]
pub(super) struct DensePlan {
    pub(super) calls: Vec<Call>,
    pub(super) wanted: Wanted,
    /// The predicate, if there is one: it is over the value alone.
    pub(super) range: Option<ValueRange>,
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
        let range = match &query.predicate {
            Some(predicate) => Some(value_range(predicate, scan)?),
            None => None,
        };
        let call = |aggregate| match Call::of(aggregate, scan)? {
            // What passes a predicate on the value has one.
            Call::CountRows if range.is_some() => Some(Call::Count),
            call => Some(call),
        };
        let calls: Vec<Call> = query.aggregates.iter().map(call).collect::<Option<_>>()?;
        let wanted = Wanted {
            sum: calls.iter().any(|call| call.needs_sums()),
            wide_sum: calls.contains(&Call::WideSum),
            min: calls.contains(&Call::Min),
            max: calls.contains(&Call::Max),
            spread: calls.iter().any(|call| matches!(call, Call::Variance { .. })),
        };
        let plan = Self { calls, wanted, range };
        let known = reducer(scan.array().value(), wanted, plan.range.as_ref(), 0).is_some();
        (known || !plan.reads_values()).then_some(plan)
    }

    /// Whether zone maps say all that is asked of a chunk: how many values, the least, the greatest.
    pub(super) fn is_in_zone_maps(&self) -> bool {
        let Wanted { sum, wide_sum, spread, .. } = self.wanted;
        self.range.is_none() && !sum && !wide_sum && !spread
    }

    /// Whether a value must be looked at.
    pub(super) fn reads_values(&self) -> bool {
        self.range.is_some() || self.calls.iter().any(|call| *call != Call::CountRows)
    }
}

impl Call {
    /// Whether the value or state is made of the sums.
    pub(super) fn needs_sums(self) -> bool {
        matches!(self, Self::Sum | Self::Average)
    }

    fn of(aggregate: &Aggregate, scan: &GridScanExec) -> Option<Self> {
        let function = &aggregate.function;
        if aggregate.filter.is_some() || function.is_distinct() {
            return None;
        }
        let [arg] = aggregate.args.as_slice() else { return None };
        let fun = function.fun();
        let field = function.field();
        let plain = plain_value(arg, scan);
        if *fun == *count_udaf() {
            return if is_never_null(arg, scan) {
                Some(Self::CountRows)
            } else {
                number_of(arg, scan).map(|_| Self::Count)
            };
        }
        if *fun == *min_udaf() {
            return plain.then_some(Self::Min);
        }
        if *fun == *max_udaf() {
            return plain.then_some(Self::Max);
        }
        let summed_as = number_of(arg, scan)?;
        if *fun == *sum_udaf() {
            let unsigned = scan.array().value().element().is_unsigned();
            return match (summed_as, field.data_type()) {
                (DataType::Float64, DataType::Float64) => Some(Self::Sum),
                (DataType::Int64, DataType::Int64) if !unsigned => Some(Self::WideSum),
                (DataType::UInt64, DataType::UInt64) if unsigned => Some(Self::WideSum),
                _ => None,
            };
        }
        if summed_as != DataType::Float64 || *field.data_type() != DataType::Float64 {
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
    pub(super) fn state(self, found: &mut Found, rows: &[u64]) -> Result<Vec<ArrayRef>> {
        Ok(match self {
            Self::Average => {
                let nulls = seen(&found.counts);
                let counts = UInt64Array::new(found.counts.clone().into(), nulls.clone());
                let sums = asked_for(found.sums.as_ref())?.clone();
                vec![Arc::new(counts), Arc::new(Float64Array::new(sums.into(), nulls))]
            }
            Self::Variance { .. } => {
                let moments = asked_for(found.spreads.as_ref())?;
                let column = |part: fn(&Moments) -> f64| -> ArrayRef {
                    Arc::new(Float64Array::from_iter_values(moments.iter().map(part)))
                };
                let counts = UInt64Array::from(found.counts.clone());
                vec![Arc::new(counts), column(|moments| moments.mean), column(|moments| moments.m2)]
            }
            // Their state is their value.
            _ => vec![self.value(found, rows, false)?],
        })
    }

    /// The column of the final value. The `last` that needs the sums may use their memory: fresh
    /// memory for many groups takes longer than the division.
    pub(super) fn value(self, found: &mut Found, rows: &[u64], last: bool) -> Result<ArrayRef> {
        let counted = |counts: &[u64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(counts.iter().map(|&count| count as i64)))
        };
        let nulls = seen(&found.counts);
        Ok(match self {
            Self::CountRows => counted(rows),
            Self::Count => counted(&found.counts),
            Self::Sum => {
                Arc::new(Float64Array::new(asked_for(found.sums.as_ref())?.clone().into(), nulls))
            }
            Self::Average => {
                let sums = if last { found.sums.take() } else { found.sums.clone() };
                let mut averages = asked_for(sums)?;
                let pairs = averages.iter_mut().zip(&found.counts);
                pairs.for_each(|(average, &count)| *average /= count as f64);
                Arc::new(Float64Array::new(averages.into(), nulls))
            }
            Self::WideSum => with_nulls(asked_for(found.wide_sums.as_ref())?, nulls)?,
            Self::Min => with_nulls(asked_for(found.mins.as_ref())?, nulls)?,
            Self::Max => with_nulls(asked_for(found.maxs.as_ref())?, nulls)?,
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
                    asked_for(found.spreads.as_ref())?
                        .iter()
                        .map(variance)
                        .collect::<Float64Array>(),
                )
            }
        })
    }
}

/// A statistic that was asked for.
fn asked_for<T>(found: Option<T>) -> Result<T> {
    found.ok_or_else(|| internal_datafusion_err!("a statistic that was not asked for"))
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
fn column_of(expr: &Expr, scan: &GridScanExec) -> Option<Column> {
    let column = expr.downcast_ref::<PhysicalColumn>()?;
    scan.columns().get(column.index()).copied()
}

fn plain_value(expr: &Expr, scan: &GridScanExec) -> bool {
    column_of(expr, scan) == Some(Column::Value)
}

/// Whether `expr` is a column or a constant without NULLs.
fn is_never_null(expr: &Expr, scan: &GridScanExec) -> bool {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return !literal.value().is_null();
    }
    expr.is::<PhysicalColumn>() && matches!(expr.nullable(scan.schema_ref()), Ok(false))
}

/// The type in which `expr` shows the value: its own or a wider one, without loss of a NULL or an
/// overflow on the way.
fn number_of(expr: &Expr, scan: &GridScanExec) -> Option<DataType> {
    let column = scan.array().value();
    if plain_value(expr, scan) {
        return column.data_type().is_numeric().then(|| column.data_type());
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let to = cast.cast_type();
    let from = column.data_type();
    let widens = match to {
        DataType::Float64 => from.is_numeric(),
        DataType::Float32 => from == DataType::Float16,
        DataType::Int64 => from.is_signed_integer() || is_narrow_unsigned(&from),
        DataType::UInt64 => from.is_unsigned_integer(),
        _ => false,
    };
    (plain_value(cast.expr(), scan) && widens).then(|| to.clone())
}

fn is_narrow_unsigned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32)
}

/// The interval of values for which `predicate` is true, if it is one: comparisons of the value with
/// numbers, joined by AND.
fn value_range(predicate: &Expr, scan: &GridScanExec) -> Option<ValueRange> {
    let mut range = ValueRange::default();
    for conjunct in split_conjunction(predicate) {
        if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
            // NULLs never count where there is a range.
            plain_value(not_null.arg(), scan).then_some(())?;
            continue;
        }
        let comparison = conjunct.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (comparison.left(), comparison.right());
        let (side, number, operator) = match (number(left), number(right)) {
            (None, Some(number)) => (left, number, *comparison.op()),
            (Some(number), None) => (right, number, comparison.op().swap()?),
            _ => return None,
        };
        if !compares_exactly(side, number, scan) {
            return None;
        }
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
    Some(range)
}

/// Whether comparing the elements with `number` is comparing `side` with it: nothing is rounded.
fn compares_exactly(side: &Expr, number: Number, scan: &GridScanExec) -> bool {
    let Some(compared_as) = number_of(side, scan) else { return false };
    let from = scan.array().value().data_type();
    match number {
        Number::Integer(_) => compared_as.is_integer() && from.is_integer(),
        Number::Float(number) => {
            let narrow =
                from.is_floating() || from.primitive_width().is_some_and(|width| width <= 4);
            compared_as.is_floating() && narrow && !number.is_nan()
        }
    }
}

fn number(expr: &Expr) -> Option<Number> {
    Some(match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Float64(Some(number)) => Number::Float(*number),
        ScalarValue::Float32(Some(number)) => Number::Float(f64::from(*number)),
        ScalarValue::Float16(Some(number)) => Number::Float(f64::from(*number)),
        ScalarValue::Int8(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::Int16(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::Int32(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::Int64(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::UInt8(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::UInt16(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::UInt32(Some(number)) => Number::Integer(i128::from(*number)),
        ScalarValue::UInt64(Some(number)) => Number::Integer(i128::from(*number)),
        _ => return None,
    })
}
