//! Comparisons of intervals. DataFusion compares months, then days, then nanoseconds, so that 32 hours are less than a day.
//!
//! Here, intervals are compared by length, with 24 hours a day and 30 days a month, as in PostgreSQL. That concerns comparisons, `IN`,
//! `BETWEEN`, sort keys, join keys, `min` and `max`. Groups are still those of equal parts.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Between, InList, NullTreatment};
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SortExpr, Volatility, lit, not,
};

use super::constants::constant;
use crate::exec::matching::known_aggregate;

const DAY: i128 = 86_400_000_000_000;
const MONTH: i128 = 30 * DAY;
/// A number of nanoseconds.
const LENGTH: DataType = DataType::Decimal128(38, 0);

/// Rewrites an expression that compares intervals.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_interval = |expr: &Expr| is_interval(expr, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() && (is_interval(&left) || is_interval(&right)) =>
        {
            let (left, right) = comparable(*left, *right, schema);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr) => {
            let (from, low) = comparable(expr.as_ref().clone(), *low, schema);
            let (to, high) = comparable(*expr, *high, schema);
            let between = from.gt_eq(low).and(to.lt_eq(high));
            Transformed::yes(if negated { not(between) } else { between })
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr) => {
            let list = list.into_iter().map(length).collect();
            Transformed::yes(Expr::InList(InList::new(Box::new(length(*expr)), list, negated)))
        }
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|it| is_interval(it)) => {
            in_case(&mut case);
            Transformed::yes(Expr::Case(case))
        }
        Expr::AggregateFunction(call) => in_aggregate(call, schema),
        Expr::WindowFunction(mut call) => {
            let is_other = by_length(&mut call.params.order_by, schema);
            Transformed::new_transformed(Expr::WindowFunction(call), is_other)
        }
        expr => Transformed::no(expr),
    })
}

/// Replaces a key of a sort or a join that is an interval by its length.
pub(super) fn as_key(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match is_interval(&expr, schema) {
        true => Transformed::yes(length(expr)),
        false => Transformed::no(expr),
    })
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

/// Returns the length of an interval or duration.
fn length(expr: Expr) -> Expr {
    interval_length().call(vec![expr])
}

/// Returns two expressions to compare in place of intervals. A duration is compared as such with an interval of the same unit, because
/// statistics have durations.
fn comparable(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let (left, right) = (without_cast(left, schema), without_cast(right, schema));
    let as_duration = |expr: &Expr, other: &Expr| {
        let unit = other.get_type(schema).ok()?;
        duration(&constant(expr)?, &unit).map(lit)
    };
    if let Some(left) = as_duration(&left, &right) {
        return (left, right);
    }
    match as_duration(&right, &left) {
        Some(right) => (left, right),
        None => (length(left), length(right)),
    }
}

/// Removes the cast of a duration to an interval, which type coercion adds.
fn without_cast(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Cast(Cast { expr, field })
            if matches!(field.data_type(), DataType::Interval(_))
                && matches!(expr.get_type(schema), Ok(DataType::Duration(_))) =>
        {
            *expr
        }
        expr => expr,
    }
}

/// Returns an interval without months as a duration, if the type has it.
fn duration(value: &ScalarValue, data_type: &DataType) -> Option<ScalarValue> {
    let DataType::Duration(unit) = data_type else { return None };
    let value = value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)).ok()?;
    let ScalarValue::IntervalMonthDayNano(Some(value)) = value else { return None };
    let (length, unit) = (of_interval(value), nanoseconds(*unit));
    let count = i64::try_from(length / unit).ok()?;
    let is_exact = value.months == 0 && length % unit == 0;
    is_exact.then(|| ScalarValue::Int64(Some(count)).cast_to(data_type).ok())?
}

fn in_case(case: &mut Case) {
    case.expr = case.expr.take().map(|base| Box::new(length(*base)));
    for (when, _) in &mut case.when_then_expr {
        **when = length(when.as_ref().clone());
    }
}

/// Sorts the rows of an aggregate by length. The least and the greatest interval are the first by length.
fn in_aggregate(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut is_other = by_length(&mut call.params.order_by, schema);
    let known = known_aggregate(&call.func);
    let is_min = known == Some("min");
    if let [of] = call.params.args.as_slice()
        && (is_min || known == Some("max"))
        && is_interval(of, schema)
    {
        call.params.order_by = vec![length(of.clone()).sort(is_min, false)];
        call.params.null_treatment = Some(NullTreatment::IgnoreNulls);
        call.params.distinct = false;
        call.func = first_value_udaf();
        is_other = true;
    }
    Transformed::new_transformed(Expr::AggregateFunction(call), is_other)
}

fn by_length(keys: &mut [SortExpr], schema: &DFSchema) -> bool {
    let mut is_other = false;
    for key in keys.iter_mut().filter(|key| is_interval(&key.expr, schema)) {
        key.expr = length(key.expr.clone());
        is_other = true;
    }
    is_other
}

fn of_interval(interval: IntervalMonthDayNano) -> i128 {
    i128::from(interval.months) * MONTH
        + i128::from(interval.days) * DAY
        + i128::from(interval.nanoseconds)
}

fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the function that computes the length of intervals and durations in nanoseconds.
pub(crate) fn interval_length() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(IntervalLength(Signature::any(1, Volatility::Immutable))))
    });
    Arc::clone(&FUNCTION)
}

/// `gridfusion_interval_length(interval)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalLength(Signature);

impl ScalarUDFImpl for IntervalLength {
    fn name(&self) -> &'static str {
        "gridfusion_interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(lengths(array)?)),
            Some(ColumnarValue::Scalar(scalar)) => {
                let lengths = lengths(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lengths, 0)?))
            }
            None => exec_err!("gridfusion_interval_length needs an interval"),
        }
    }
}

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    let unit = |unit, count: i64| Some(i128::from(count) * nanoseconds(unit));
    let lengths: Decimal128Array = match array.data_type() {
        DataType::Duration(of @ TimeUnit::Second) => {
            array.as_primitive::<DurationSecondType>().unary_opt(|it| unit(*of, it))
        }
        DataType::Duration(of @ TimeUnit::Millisecond) => {
            array.as_primitive::<DurationMillisecondType>().unary_opt(|it| unit(*of, it))
        }
        DataType::Duration(of @ TimeUnit::Microsecond) => {
            array.as_primitive::<DurationMicrosecondType>().unary_opt(|it| unit(*of, it))
        }
        DataType::Duration(of @ TimeUnit::Nanosecond) => {
            array.as_primitive::<DurationNanosecondType>().unary_opt(|it| unit(*of, it))
        }
        _ => {
            let intervals = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            intervals.unary_opt(|it| Some(of_interval(it)))
        }
    };
    Ok(Arc::new(lengths.with_precision_and_scale(38, 0)?))
}
