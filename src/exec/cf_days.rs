//! `cf_days(a, b, calendar)`: the days from one time to another, counted in a calendar of the CF conventions.
//!
//! In `noleap`, the 1st of March follows the 28th of February. Timestamps count a 29th between them in leap years, and this
//! function does not.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::core::array::Calendar;

/// The type to which times are converted.
const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;

/// Returns the function.
pub(crate) fn cf_days() -> Arc<ScalarUDF> {
    static UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(CfDays(signature)))
    });
    Arc::clone(&UDF)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CfDays(Signature);

impl ScalarUDFImpl for CfDays {
    fn name(&self) -> &'static str {
        "cf_days"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [a, b, calendar] = types else {
            return plan_err!("cf_days takes two times and the name of a calendar");
        };
        for time in [a, b] {
            let is_time =
                matches!(time, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
            if !(is_time || time.is_string() || time.is_null()) {
                return plan_err!(
                    "cf_days takes two times and the name of a calendar, and {time} is no time"
                );
            }
        }
        if !(calendar.is_string() || calendar.is_null()) {
            return plan_err!(
                "the calendar of cf_days is text such as 'noleap', and no {calendar}"
            );
        }
        Ok(vec![TIME, TIME, DataType::Utf8])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [a, b, ColumnarValue::Scalar(calendar)] = args.args.as_slice() else {
            return exec_err!("the calendar of cf_days is a constant, such as 'noleap'");
        };
        let Some(name) = calendar.try_as_str().flatten() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(None)));
        };
        let calendar = Calendar::from_name(name).ok_or_else(|| {
            exec_datafusion_err!("cf_days: '{name}' is no calendar of the CF conventions")
        })?;
        let is_scalar = [a, b].iter().all(|it| matches!(it, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let days = days(&a.to_array(rows)?, &b.to_array(rows)?, calendar)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&days, 0)?),
            false => ColumnarValue::Array(Arc::new(days)),
        })
    }
}

/// Returns the days from each time of `a` to that of `b`; NULL where one of both is NULL.
fn days(a: &ArrayRef, b: &ArrayRef, calendar: Calendar) -> Result<Float64Array> {
    let (a, b) = (cast(a, &TIME)?, cast(b, &TIME)?);
    let pairs = a
        .as_primitive::<TimestampMicrosecondType>()
        .iter()
        .zip(b.as_primitive::<TimestampMicrosecondType>());
    let between = |(a, b): (Option<i64>, Option<i64>)| {
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let whole = day(b, calendar)? - day(a, calendar)?;
        let rest = b.rem_euclid(DAY) - a.rem_euclid(DAY);
        Ok(Some(whole as f64 + rest as f64 / DAY as f64))
    };
    pairs.map(between).collect()
}

/// Returns the number of the day of a time in a calendar.
///
/// # Errors
/// If the calendar has no such date.
fn day(time: i64, calendar: Calendar) -> Result<i64> {
    let day = time.div_euclid(DAY);
    // The days of `standard` are those of SQL, whatever their dates are.
    if matches!(calendar, Calendar::Mixed | Calendar::Proleptic) {
        return Ok(day);
    }
    let date = Calendar::Proleptic.date(day);
    date.and_then(|date| calendar.day(date)).ok_or_else(|| {
        let date = date.map(|it| it.to_string()).unwrap_or_default();
        exec_datafusion_err!("cf_days: the calendar {} has no {date}", calendar.name())
    })
}
