//! Dates, times and durations of every unit, in the Arrow type that holds them exactly.
//!
//! | stored unit | point in time | length of time |
//! |---|---|---|
//! | years, months | `Date32` of the first day | |
//! | weeks, days | `Date32` | |
//! | hours, minutes | `Timestamp(s)` | `Duration(s)` |
//! | seconds to nanoseconds | `Timestamp` of the unit | `Duration` of the unit |
//! | finer | `Int64`, as stored | `Int64`, as stored |
//!
//! [`Temporal::Count`] shows any of them as stored.
//!
//! Units that Arrow has are shown in place, without a copy. The others are converted count by count: 2 hours
//! become 7200 seconds, and the month 650 becomes 2024-03-01.

use std::sync::Arc;

use arrow::array::{ArrayRef, PrimitiveArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Int64Type, TimeUnit as ArrowUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use chrono::{Datelike, NaiveDate};

use crate::array::element::elements_of;
use crate::error::{Error, Result};
use crate::format::TimeUnit;

/// An `i64` that counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Temporal {
    /// A point in time, counted from 1970-01-01.
    Point(TimeUnit),
    /// A length of time.
    Length(TimeUnit),
    /// A point or a length of any unit, shown as the stored number.
    Count,
}

/// The count that stands for NaT (not a time) in numpy and in TileDB's fill values.
pub const NOT_A_TIME: i64 = i64::MIN;

/// The day number of 1970-01-01 in the proleptic Gregorian calendar, where 0001-01-01 is day 1.
const EPOCH_FROM_CE: i32 = 719_163;

impl Temporal {
    /// Returns the unit; `None` for counts that are shown as stored.
    fn unit(self) -> Option<TimeUnit> {
        match self {
            Self::Point(unit) | Self::Length(unit) => Some(unit),
            Self::Count => None,
        }
    }

    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        let Some(unit) = self.unit() else { return DataType::Int64 };
        let unit = match unit {
            TimeUnit::Year | TimeUnit::Month | TimeUnit::Week | TimeUnit::Day => {
                return DataType::Date32;
            }
            TimeUnit::Hour | TimeUnit::Minute | TimeUnit::Second => ArrowUnit::Second,
            TimeUnit::Millisecond => ArrowUnit::Millisecond,
            TimeUnit::Microsecond => ArrowUnit::Microsecond,
            TimeUnit::Nanosecond => ArrowUnit::Nanosecond,
            TimeUnit::Picosecond | TimeUnit::Femtosecond | TimeUnit::Attosecond => {
                return DataType::Int64;
            }
        };
        match self {
            Self::Point(_) => DataType::Timestamp(unit, None),
            Self::Length(_) | Self::Count => DataType::Duration(unit),
        }
    }

    /// Converts counts to an Arrow array. Slots that are NULL may hold any count.
    pub(super) fn array(self, counts: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let counts = elements_of::<Int64Type>(counts)?;
        let seconds = |each: i64| move |count: i64| count.checked_mul(each);
        match (self.unit(), self) {
            (Some(TimeUnit::Year), _) => {
                self.converted::<Date32Type>(&counts, nulls, |years| first_day(years, 0))
            }
            // Rounding down, so that month -1 is December 1969.
            (Some(TimeUnit::Month), _) => self.converted::<Date32Type>(&counts, nulls, |months| {
                first_day(months.div_euclid(12), months.rem_euclid(12))
            }),
            (Some(TimeUnit::Week), _) => self.converted::<Date32Type>(&counts, nulls, |weeks| {
                weeks.checked_mul(7)?.try_into().ok()
            }),
            (Some(TimeUnit::Day), _) => {
                self.converted::<Date32Type>(&counts, nulls, |days| days.try_into().ok())
            }
            (Some(TimeUnit::Hour), Self::Point(_)) => {
                self.converted::<TimestampSecondType>(&counts, nulls, seconds(3600))
            }
            (Some(TimeUnit::Hour), Self::Length(_)) => {
                self.converted::<DurationSecondType>(&counts, nulls, seconds(3600))
            }
            (Some(TimeUnit::Minute), Self::Point(_)) => {
                self.converted::<TimestampSecondType>(&counts, nulls, seconds(60))
            }
            (Some(TimeUnit::Minute), Self::Length(_)) => {
                self.converted::<DurationSecondType>(&counts, nulls, seconds(60))
            }
            _ => Ok(self.as_stored(counts, nulls)),
        }
    }

    /// Returns counts whose unit Arrow has, or that are shown as `Int64`, without conversion.
    fn as_stored(self, counts: ScalarBuffer<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
        fn typed<T: ArrowPrimitiveType<Native = i64>>(
            counts: ScalarBuffer<i64>,
            nulls: Option<NullBuffer>,
        ) -> ArrayRef {
            Arc::new(PrimitiveArray::<T>::new(counts, nulls))
        }
        match self.data_type() {
            DataType::Timestamp(ArrowUnit::Second, _) => {
                typed::<TimestampSecondType>(counts, nulls)
            }
            DataType::Timestamp(ArrowUnit::Millisecond, _) => {
                typed::<TimestampMillisecondType>(counts, nulls)
            }
            DataType::Timestamp(ArrowUnit::Microsecond, _) => {
                typed::<TimestampMicrosecondType>(counts, nulls)
            }
            DataType::Timestamp(ArrowUnit::Nanosecond, _) => {
                typed::<TimestampNanosecondType>(counts, nulls)
            }
            DataType::Duration(ArrowUnit::Second) => typed::<DurationSecondType>(counts, nulls),
            DataType::Duration(ArrowUnit::Millisecond) => {
                typed::<DurationMillisecondType>(counts, nulls)
            }
            DataType::Duration(ArrowUnit::Microsecond) => {
                typed::<DurationMicrosecondType>(counts, nulls)
            }
            DataType::Duration(ArrowUnit::Nanosecond) => {
                typed::<DurationNanosecondType>(counts, nulls)
            }
            _ => typed::<Int64Type>(counts, nulls),
        }
    }

    /// Converts each count by `convert`.
    ///
    /// # Errors
    /// `Unsupported` for the first count that is valid and does not fit; see [`Self::beyond`].
    fn converted<T: ArrowPrimitiveType>(
        self,
        counts: &[i64],
        nulls: Option<NullBuffer>,
        convert: impl Fn(i64) -> Option<T::Native>,
    ) -> Result<ArrayRef> {
        let is_valid = |at| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        let value = |(at, &count): (usize, &i64)| match convert(count) {
            Some(value) => Ok(value),
            None if !is_valid(at) => Ok(T::Native::default()),
            None => Err(self.beyond(count)),
        };
        let values: Vec<T::Native> = counts.iter().enumerate().map(value).collect::<Result<_>>()?;
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
    }

    /// Returns the error for a count that does not fit its Arrow type, with the options that avoid it.
    fn beyond(self, count: i64) -> Error {
        let unit = self.unit().map(|unit| format!(" {unit:?}s")).unwrap_or_default();
        let as_null = match count {
            NOT_A_TIME => "this is NaT, which nan_as_null = 'true' shows as NULL; ",
            _ => "",
        };
        Error::unsupported(format!(
            "{count}{unit} does not fit {}; {as_null}time_as_integer = 'true' shows times as they are \
             stored",
            self.data_type()
        ))
    }
}

/// Returns the first day of a month, in days since 1970-01-01. Years count from 1970, and months from
/// 0: `first_day(1, 1)` is 1971-02-01, day 396.
fn first_day(years: i64, month: i64) -> Option<i32> {
    let year = years.checked_add(1970)?.try_into().ok()?;
    let day = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()? + 1, 1)?;
    Some(day.num_days_from_ce() - EPOCH_FROM_CE)
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn shown(temporal: Temporal, count: i64) -> Result<String> {
        let array = temporal.array(Buffer::from_vec(vec![count]), None)?;
        assert_eq!(array.data_type(), &temporal.data_type());
        Ok(array_value_to_string(&array, 0).unwrap())
    }

    #[test]
    fn every_unit_is_exact() {
        for (unit, count, expected) in [
            (TimeUnit::Year, 30, "2000-01-01"),
            (TimeUnit::Year, -1, "1969-01-01"),
            (TimeUnit::Month, -1, "1969-12-01"),
            (TimeUnit::Month, 361, "2000-02-01"),
            (TimeUnit::Week, 2, "1970-01-15"),
            (TimeUnit::Day, 19_000, "2022-01-08"),
            (TimeUnit::Hour, 25, "1970-01-02T01:00:00"),
            (TimeUnit::Minute, -1, "1969-12-31T23:59:00"),
            (TimeUnit::Second, 1, "1970-01-01T00:00:01"),
            (TimeUnit::Millisecond, 1, "1970-01-01T00:00:00.001"),
            (TimeUnit::Microsecond, 1, "1970-01-01T00:00:00.000001"),
            (TimeUnit::Nanosecond, 1, "1970-01-01T00:00:00.000000001"),
            (TimeUnit::Picosecond, 7, "7"),
            (TimeUnit::Attosecond, i64::MAX, "9223372036854775807"),
        ] {
            assert_eq!(shown(Temporal::Point(unit), count).unwrap(), expected, "{unit:?}");
        }
        let hour = Temporal::Length(TimeUnit::Hour).array(Buffer::from_vec(vec![2_i64]), None);
        assert_eq!(hour.unwrap().data_type(), &DataType::Duration(ArrowUnit::Second));
    }

    #[test]
    fn counts_are_shown_as_they_are_stored() {
        for count in [i64::MIN, -1, i64::MAX] {
            assert_eq!(shown(Temporal::Count, count).unwrap(), count.to_string());
        }
        let beyond = |count| shown(Temporal::Point(TimeUnit::Year), count).unwrap_err().to_string();
        let error = beyond(-400_000);
        assert!(error.contains("-400000 Years") && error.contains("time_as_integer"), "{error}");
        assert!(!error.contains("nan_as_null") && beyond(i64::MIN).contains("nan_as_null"));
    }

    #[test]
    fn what_arrow_cannot_hold_is_an_error_unless_it_is_null() {
        for unit in [TimeUnit::Year, TimeUnit::Month, TimeUnit::Week, TimeUnit::Day, TimeUnit::Hour]
        {
            assert!(shown(Temporal::Point(unit), i64::MIN).is_err(), "{unit:?}");
            let counts = Buffer::from_vec(vec![i64::MIN, 0]);
            let nulls = NullBuffer::from(vec![false, true]);
            let array = Temporal::Point(unit).array(counts, Some(nulls)).unwrap();
            assert_eq!(array.null_count(), 1);
        }
    }
}
