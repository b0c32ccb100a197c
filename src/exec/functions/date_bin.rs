//! `date_bin` outside the years 1677 to 2262.
//!
//! DataFusion 55.2 counts nanoseconds in 64 bits, and returns NULL for a time whose bin needs more. This is the same
//! arithmetic in 128 bits.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use datafusion::common::{ScalarValue, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::calendar::{DAY, MonthDay, first_day_of, month_of, nanoseconds};

/// The width of bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stride {
    Nanoseconds(i128),
    Months(i128),
}

/// Bins of the same width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bins {
    stride: Stride,
    /// The begin of one of them, in nanoseconds after 1970.
    origin: i128,
}

/// Fills the NULLs in `binned`, DataFusion's answer for `arguments`, where times are not NULL.
///
/// # Errors
/// If a bin begins before the first time of the type.
pub(super) fn with_all_bins(
    arguments: &[ColumnarValue],
    binned: ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let (Some(bins), [_, times, ..]) = (Bins::try_new(arguments), arguments) else {
        return Ok(binned);
    };
    if !matches!(times.data_type(), DataType::Timestamp(..)) {
        return Ok(binned);
    }
    let is_scalar = matches!(binned, ColumnarValue::Scalar(_));
    let len = if is_scalar { 1 } else { rows };
    let (times, binned) = (times.clone().into_array(len)?, binned.into_array(len)?);
    if times.logical_null_count() == binned.logical_null_count() {
        return returned(binned, is_scalar);
    }
    let filled = match times.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            filled::<TimestampSecondType>(bins, &times, &binned)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            filled::<TimestampMillisecondType>(bins, &times, &binned)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            filled::<TimestampMicrosecondType>(bins, &times, &binned)
        }
        _ => filled::<TimestampNanosecondType>(bins, &times, &binned),
    };
    returned(filled?, is_scalar)
}

/// Returns an array as a scalar again, if it was one.
fn returned(array: ArrayRef, is_scalar: bool) -> Result<ColumnarValue> {
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
        false => ColumnarValue::Array(array),
    })
}

fn filled<T: ArrowTimestampType>(
    bins: Bins,
    times: &ArrayRef,
    binned: &ArrayRef,
) -> Result<ArrayRef> {
    let (times, binned) = (times.as_primitive::<T>(), binned.as_primitive::<T>());
    let unit = nanoseconds(T::UNIT);
    let fill = |(time, bin): (Option<i64>, Option<i64>)| match (time, bin) {
        (Some(time), None) => {
            let bin = bins.begin(i128::from(time) * unit) / unit;
            let bin = i64::try_from(bin).map_err(|_| {
                exec_datafusion_err!(
                    "the bin of a time begins before the first {}; date_bin cannot return it",
                    times.data_type()
                )
            });
            bin.map(Some)
        }
        (_, bin) => Ok(bin),
    };
    let filled = times.iter().zip(binned).map(fill).collect::<Result<PrimitiveArray<T>>>()?;
    Ok(Arc::new(filled.with_data_type(times.data_type().clone())))
}

impl Bins {
    /// Returns the bins of the arguments of `date_bin`; `None` for arguments that are no constants.
    fn try_new(arguments: &[ColumnarValue]) -> Option<Self> {
        let [ColumnarValue::Scalar(stride), _, origin @ ..] = arguments else { return None };
        let stride = match stride {
            ScalarValue::IntervalDayTime(Some(interval)) => Stride::Nanoseconds(
                i128::from(interval.days) * DAY + i128::from(interval.milliseconds) * 1_000_000,
            ),
            ScalarValue::IntervalMonthDayNano(Some(interval)) => match interval.months {
                0 => Stride::Nanoseconds(
                    i128::from(interval.days) * DAY + i128::from(interval.nanoseconds),
                ),
                months => Stride::Months(months.into()),
            },
            _ => return None,
        };
        let origin = match origin {
            [] => 0,
            [ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), _)), ..] => {
                (*origin).into()
            }
            _ => return None,
        };
        (!matches!(stride, Stride::Nanoseconds(0))).then_some(Self { stride, origin })
    }

    /// Returns the begin of the bin of a time, both in nanoseconds after 1970.
    fn begin(self, time: i128) -> i128 {
        match self.stride {
            Stride::Nanoseconds(stride) => self.origin + distance(time - self.origin, stride),
            Stride::Months(stride) => {
                let month = |time: i128| month_of(time.div_euclid(DAY)).month;
                let months = distance(month(time) - month(self.origin), stride);
                match self.months_later(months) {
                    // The origin need not be the begin of a month.
                    begin if begin > time => self.months_later(months - stride),
                    begin => begin,
                }
            }
        }
    }

    /// Returns the origin so many months later. In a shorter month, it is the last day.
    fn months_later(self, months: i128) -> i128 {
        let MonthDay { month, day } = month_of(self.origin.div_euclid(DAY));
        let month = month + months;
        let first = first_day_of(month);
        let last = first_day_of(month + 1) - 1;
        (first + day).min(last) * DAY + self.origin.rem_euclid(DAY)
    }
}

/// Returns the distance from the origin to the begin of a bin, from that to a time in it, as DataFusion does.
fn distance(to_time: i128, stride: i128) -> i128 {
    let whole = to_time - to_time % stride;
    if to_time < 0 && stride > 1 && whole != to_time { whole - stride } else { whole }
}

#[cfg(test)]
mod tests {
    use arrow::array::types::{IntervalMonthDayNano, TimestampMicrosecondType};
    use arrow::array::{PrimitiveArray, TimestampMicrosecondArray};
    use arrow::datatypes::Field;
    use datafusion::config::ConfigOptions;
    use datafusion::functions::all_default_functions;
    use datafusion::logical_expr::ScalarFunctionArgs;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn bins_begin_where_datafusion_has_them() {
        let functions = all_default_functions();
        let function = functions.iter().find(|it| it.name() == "date_bin").unwrap();
        let mut rng = StdRng::seed_from_u64(5);
        for _ in 0..400 {
            let interval = |months, days, nanoseconds| {
                let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
                ScalarValue::IntervalMonthDayNano(Some(interval))
            };
            let stride = match rng.random_range(0..3) {
                0 => interval(rng.random_range(1..40), 0, 0),
                1 => interval(0, rng.random_range(1..100), rng.random_range(0..1_000_000)),
                _ => interval(0, 0, *[1, 7, 1_000, 3_600_000_000_000].choose(&mut rng).unwrap()),
            };
            let origin = rng.random_range(-1_000_000_000_000_000_000..1_000_000_000_000_000_000);
            let times: Vec<i64> = (0..40)
                .map(|_| rng.random_range(-8_000_000_000_000_000..8_000_000_000_000_000))
                .collect();
            let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times.clone()));
            let args = vec![
                ColumnarValue::Scalar(stride),
                ColumnarValue::Array(Arc::clone(&array)),
                ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(origin), None)),
            ];
            let field = |data_type| Arc::new(Field::new("a", data_type, true));
            let binned = function.invoke_with_args(ScalarFunctionArgs {
                arg_fields: args.iter().map(|arg| field(arg.data_type())).collect(),
                args: args.clone(),
                number_rows: times.len(),
                return_field: field(array.data_type().clone()),
                config_options: Arc::new(ConfigOptions::default()),
            });
            let binned = binned.unwrap().into_array(times.len()).unwrap();
            let expected: &PrimitiveArray<TimestampMicrosecondType> = binned.as_primitive();
            let bins = Bins::try_new(&args).unwrap();
            for (time, expected) in times.iter().zip(expected) {
                let begin = bins.begin(i128::from(*time) * 1_000) / 1_000;
                assert!(expected.is_none_or(|it| i128::from(it) == begin), "{bins:?} {time}");
            }
            assert!(expected.null_count() < times.len());
        }
    }
}
