//! `date_trunc` outside the years 1677 to 2262.
//!
//! DataFusion 55.2 counts nanoseconds in 64 bits, and fails on a time that needs more. A time without a time zone is truncated
//! here in 128 bits. With a time zone, `chrono` finds its local time, for 262000 years before and after 1970.

use std::sync::Arc;

use arrow::array::temporal_conversions::as_datetime_with_timezone;
use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::common::{ScalarValue, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::calendar::{DAY, SECOND, first_day_of, month_of, nanoseconds};

/// The nanoseconds that a truncated time and its time zone may be away from a time.
const MARGIN: i128 = 400 * DAY;

/// The unit that a time is truncated to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Granularity {
    /// A number of nanoseconds of local time, less than a minute or equal.
    Fine(i128),
    Hour,
    Day,
    Week,
    /// A number of months.
    Months(i128),
}

impl Granularity {
    fn try_new(text: &ColumnarValue) -> Option<Self> {
        let ColumnarValue::Scalar(text) = text else { return None };
        Some(match text.try_as_str()??.to_lowercase().as_str() {
            "microsecond" => Self::Fine(1_000),
            "millisecond" => Self::Fine(1_000_000),
            "second" => Self::Fine(SECOND),
            "minute" => Self::Fine(60 * SECOND),
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            _ => return None,
        })
    }

    /// Truncates a local time in nanoseconds after 1970.
    fn truncated(self, time: i128) -> i128 {
        let days = time.div_euclid(DAY);
        match self {
            Self::Fine(unit) => time - time.rem_euclid(unit),
            Self::Hour => time - time.rem_euclid(3_600 * SECOND),
            Self::Day => days * DAY,
            // 1970-01-01 was a Thursday.
            Self::Week => (days - (days + 3).rem_euclid(7)) * DAY,
            Self::Months(months) => {
                let month = month_of(days).month;
                first_day_of(month - month.rem_euclid(months)) * DAY
            }
        }
    }
}

/// Truncates times of which some may be outside DataFusion's range; `None` if none is, or for other arguments.
///
/// # Errors
/// If the truncated time is before the first one of the type.
pub(super) fn truncated(arguments: &[ColumnarValue]) -> Result<Option<ColumnarValue>> {
    let [granularity, times] = arguments else { return Ok(None) };
    let Some(granularity) = Granularity::try_new(granularity) else { return Ok(None) };
    let DataType::Timestamp(unit, zone) = times.data_type() else { return Ok(None) };
    let Some(zone) = zone.as_deref().map(str::parse::<Tz>).transpose().ok() else {
        return Ok(None);
    };
    let (array, is_scalar) = match times {
        ColumnarValue::Scalar(time) => (time.to_array()?, true),
        ColumnarValue::Array(array) => (Arc::clone(array), false),
    };
    let truncated = match unit {
        TimeUnit::Second => of_array::<TimestampSecondType>(&array, zone, granularity)?,
        TimeUnit::Millisecond => of_array::<TimestampMillisecondType>(&array, zone, granularity)?,
        TimeUnit::Microsecond => of_array::<TimestampMicrosecondType>(&array, zone, granularity)?,
        TimeUnit::Nanosecond => of_array::<TimestampNanosecondType>(&array, zone, granularity)?,
    };
    let Some(truncated) = truncated else { return Ok(None) };
    Ok(Some(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&truncated, 0)?),
        false => ColumnarValue::Array(truncated),
    }))
}

/// Truncates times of an array; `None` if DataFusion can truncate all of them.
fn of_array<T: ArrowTimestampType>(
    array: &ArrayRef,
    zone: Option<Tz>,
    granularity: Granularity,
) -> Result<Option<ArrayRef>> {
    let times = array.as_primitive::<T>();
    let unit = nanoseconds(T::UNIT);
    let range = i128::from(i64::MIN) + MARGIN..i128::from(i64::MAX) - MARGIN;
    let is_far = |time: i64| !range.contains(&(i128::from(time) * unit));
    if !times.iter().flatten().any(is_far) {
        return Ok(None);
    }
    let truncate = |time: i64| {
        let nanoseconds = i128::from(time) * unit;
        let truncated = match (zone, granularity) {
            // Offsets of time zones are whole minutes, as DataFusion has it.
            (None, _) | (_, Granularity::Fine(_)) => Some(granularity.truncated(nanoseconds)),
            (Some(zone), _) => in_zone::<T>(time, zone, granularity),
        };
        let truncated = truncated.and_then(|time| i64::try_from(time.div_euclid(unit)).ok());
        truncated.ok_or_else(|| {
            exec_datafusion_err!(
                "date_trunc: {} has no such time as {time} truncated",
                array.data_type()
            )
        })
    };
    let truncated: PrimitiveArray<T> = times.try_unary(truncate)?;
    Ok(Some(Arc::new(truncated.with_data_type(array.data_type().clone()))))
}

/// Truncates the local time of a time zone, as DataFusion does. `None` outside the range of `chrono`.
fn in_zone<T: ArrowTimestampType>(time: i64, zone: Tz, granularity: Granularity) -> Option<i128> {
    let local = as_datetime_with_timezone::<T>(time, zone)?;
    let truncated = granularity.truncated(since_1970(&local.naive_local().and_utc()));
    let seconds = i64::try_from(truncated.div_euclid(SECOND)).ok()?;
    let naive = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    let truncated = match local_time(zone, naive) {
        LocalResult::Single(time) => time,
        // The clock was set back, so that this time is there twice. The offset tells which one it is.
        LocalResult::Ambiguous(earlier, later) => {
            let is_earlier = earlier.offset().fix() == local.offset().fix();
            if is_earlier { earlier } else { later }
        }
        // The clock was set forward over this time, which some hours earlier helps to find.
        LocalResult::None => {
            let hours = TimeDelta::hours(3);
            local_time(zone, naive.checked_sub_signed(hours)?)
                .single()?
                .checked_add_signed(hours)?
        }
    };
    Some(since_1970(&truncated.to_utc()))
}

fn local_time(zone: Tz, naive: NaiveDateTime) -> LocalResult<DateTime<Tz>> {
    zone.from_local_datetime(&naive)
}

fn since_1970(time: &DateTime<chrono::Utc>) -> i128 {
    i128::from(time.timestamp()) * SECOND + i128::from(time.timestamp_subsec_nanos())
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;
    use arrow::datatypes::Field;
    use datafusion::config::ConfigOptions;
    use datafusion::functions::all_default_functions;
    use datafusion::logical_expr::ScalarFunctionArgs;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn times_are_truncated_as_datafusion_does() {
        let functions = all_default_functions();
        let function = functions.iter().find(|it| it.name() == "date_trunc").unwrap();
        let mut rng = StdRng::seed_from_u64(6);
        let zones = [
            None,
            Some("+05:30"),
            Some("-08:00"),
            Some("Europe/Berlin"),
            Some("America/Sao_Paulo"),
        ];
        for zone in zones {
            if zone.is_some_and(|zone| zone.parse::<Tz>().is_err()) {
                continue; // without the names of time zones
            }
            for text in [
                "microsecond",
                "second",
                "minute",
                "hour",
                "day",
                "week",
                "month",
                "quarter",
                "year",
            ] {
                let times: Vec<i64> = (0..2_000)
                    .map(|_| rng.random_range(-9_000_000_000_000_000..9_000_000_000_000_000))
                    .collect();
                let array = TimestampMicrosecondArray::from(times.clone());
                let array: ArrayRef = Arc::new(array.with_timezone_opt(zone));
                let text = ColumnarValue::Scalar(ScalarValue::from(text));
                let args = vec![text.clone(), ColumnarValue::Array(Arc::clone(&array))];
                let field = |data_type| Arc::new(Field::new("a", data_type, true));
                let truncated = function.invoke_with_args(ScalarFunctionArgs {
                    arg_fields: args.iter().map(|arg| field(arg.data_type())).collect(),
                    args,
                    number_rows: times.len(),
                    return_field: field(array.data_type().clone()),
                    config_options: Arc::new(ConfigOptions::default()),
                });
                let expected = truncated.unwrap().into_array(times.len()).unwrap();
                let expected = expected.as_primitive::<TimestampMicrosecondType>();
                let granularity = Granularity::try_new(&text).unwrap();
                let zone = zone.map(|zone| zone.parse::<Tz>().unwrap());
                for (time, expected) in times.iter().zip(expected.values()) {
                    let found = match (zone, granularity) {
                        (None, _) | (_, Granularity::Fine(_)) => {
                            granularity.truncated(i128::from(*time) * 1_000)
                        }
                        (Some(zone), _) => {
                            in_zone::<TimestampMicrosecondType>(*time, zone, granularity).unwrap()
                        }
                    };
                    assert_eq!(
                        found,
                        i128::from(*expected) * 1_000,
                        "{time} {granularity:?} {zone:?}"
                    );
                }
            }
        }
    }
}
