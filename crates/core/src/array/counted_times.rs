//! [`CountedTimes`]: numbers that count time in a calendar whose dates SQL lacks.
//!
//! ```text
//!   54419.5   days since 1850-01-01 in 360_day   ⇄   2001-02-30T12:00:00
//! ```
//!
//! Such columns hold the numbers of the file. Field metadata has the units, the calendar, and a mark: `gridfusion.times` = `dates`.
//! Without the mark, numbers are numbers, whatever their units are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array, ListArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, TimeUnit};

use super::arrow_error::failed_to;
use super::calendar::Calendar;
use super::calendar_time::CalendarTime;
use super::time_reference::{nanoseconds_in, parse_reference, split_units};
use crate::error::{Error, Result};

/// The key of the mark in a field's metadata.
pub const COUNTED_TIMES: &str = "gridfusion.times";

/// Its value for numbers that are shown as dates.
const DATES: &str = "dates";
/// Its value for numbers that stay numbers.
const NUMBERS: &str = "numbers";

/// The meaning of numbers such as `days since 1850-01-01` in the calendar `360_day`.
///
/// ```
/// use gridfusion_core::array::CountedTimes;
///
/// let days = CountedTimes::from_attributes("days since 1850-01-01", "360_day").unwrap();
/// assert_eq!(days.number("1850-02-30 12:00"), Ok(59.5));
/// assert!(days.number("1850-01-31").is_err());
/// assert_eq!(days.time(59.5).unwrap().to_string(), "1850-02-30T12:00:00");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTimes {
    /// Nanoseconds per unit.
    unit: i64,
    /// The reference instant, in nanoseconds since 1970 of the calendar.
    epoch: i128,
    calendar: Calendar,
}

impl CountedTimes {
    /// Parses the attributes `units` and `calendar`. `None` if one of both is unknown, if the unit has no fixed length, or if the
    /// calendar lacks the reference.
    pub fn from_attributes(units: &str, calendar: &str) -> Option<Self> {
        let calendar = Calendar::from_name(calendar)?;
        let (unit, reference) = split_units(units)?;
        let unit = nanoseconds_in(unit, calendar)?;
        let (epoch, calendar) = parse_reference(reference, calendar).ok()?;
        Some(Self { unit, epoch, calendar })
    }

    /// Returns the meaning of the numbers of a column that are shown as dates; `None` for other columns.
    pub fn from_field(field: &Field) -> Option<Self> {
        let metadata = field.metadata();
        let is_marked = metadata.get(COUNTED_TIMES).is_some_and(|it| it == DATES);
        if !is_marked || !field.data_type().is_numeric() {
            return None;
        }
        let calendar = metadata.get("calendar").map_or("", String::as_str);
        Self::from_attributes(metadata.get("units")?, calendar)
    }

    /// Returns the meaning of the numbers in a column of lists, as for [`Self::from_field`]: the field of the lists has the metadata.
    pub fn from_lists(field: &Field) -> Option<Self> {
        let (DataType::List(item) | DataType::LargeList(item)) = field.data_type() else {
            return None;
        };
        Self::from_field(&item.as_ref().clone().with_metadata(field.metadata().clone()))
    }

    /// Returns the number that stands for a date, with or without a time: `2001-02-30`, `2001-02-30 12:00`, `2001-02`.
    ///
    /// # Errors
    /// The reason, as a sentence, if the text is no date of the calendar.
    pub fn number(self, text: &str) -> std::result::Result<f64, String> {
        let (instant, calendar) = parse_reference(text.trim(), self.calendar)?;
        if calendar != self.calendar {
            return Err(format!("there is no year 0 in the calendar {}", self.calendar.name()));
        }
        Ok(self.number_at(instant))
    }

    fn number_at(self, instant: i128) -> f64 {
        let offset = instant - self.epoch;
        let (whole, rest) =
            (offset.div_euclid(self.unit.into()), offset.rem_euclid(self.unit.into()));
        whole as f64 + rest as f64 / self.unit as f64
    }

    /// Returns the number that stands for a time of the calendar; `None` for another calendar.
    pub fn number_of(self, time: CalendarTime) -> Option<f64> {
        time.instant().filter(|_| time.calendar() == self.calendar).map(|it| self.number_at(it))
    }

    /// Returns the time that a number stands for, rounded to microseconds; `None` if it is beyond all times.
    pub fn time(self, number: f64) -> Option<CalendarTime> {
        // Whole units are exact; only the fraction is rounded.
        let (whole, fraction) = (number.trunc(), number.fract());
        if !number.is_finite() || whole.abs() > 1e18 {
            return None;
        }
        let tick = if self.unit % 1_000 == 0 { 1_000 } else { 1 };
        let fraction = (fraction * self.unit as f64 / tick as f64).round() as i128 * tick;
        let offset = (whole as i128).checked_mul(self.unit.into())?;
        CalendarTime::from_instant(offset + self.epoch + fraction, self.calendar)
    }

    /// Returns the time that a whole number stands for; `None` if it is beyond all times.
    pub fn time_of_integer(self, number: i64) -> Option<CalendarTime> {
        let offset = i128::from(number) * i128::from(self.unit);
        CalendarTime::from_instant(offset + self.epoch, self.calendar)
    }

    /// Returns the calendar.
    pub fn calendar(self) -> Calendar {
        self.calendar
    }

    /// Returns the times of an array of numbers, without those of NULL and NaN.
    ///
    /// # Errors
    /// `Usage` for a number that is beyond all times.
    pub fn times(self, numbers: &dyn Array) -> Result<Vec<Option<CalendarTime>>> {
        self.each(numbers, |time, number| match time {
            None if !number().is_nan() => {
                let calendar = self.calendar.name();
                let message = format!("{} is no time in the calendar {calendar}", number());
                Err(Error::usage(message))
            }
            time => Ok(time),
        })
        .map(|times| times.into_iter().map(Option::flatten).collect())
    }

    /// Returns the times of timestamps of the standard calendar since 1582-10-15.
    ///
    /// # Errors
    /// `Internal` if the array has no timestamps.
    pub(crate) fn times_of_timestamps(timestamps: &dyn Array) -> Result<Vec<Option<CalendarTime>>> {
        let DataType::Timestamp(unit, _) = timestamps.data_type() else {
            return Err(Error::internal("timestamps of another type"));
        };
        let unit: i128 = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let counts = cast(timestamps, &DataType::Int64).map_err(failed_to("count times"))?;
        let counts = counts.as_primitive::<Int64Type>().iter();
        let time = |it: i64| CalendarTime::from_instant(i128::from(it) * unit, Calendar::Mixed);
        Ok(counts.map(|it| it.and_then(time)).collect())
    }

    /// Returns the numbers that stand for times.
    ///
    /// # Errors
    /// `Usage` for a time that no number stands for exactly.
    pub(crate) fn numbers(self, times: &[Option<CalendarTime>]) -> Result<Float64Array> {
        let number = |time: CalendarTime| match self.number_of(time) {
            Some(number) if self.time(number) == Some(time) => Ok(number),
            _ => Err(Error::usage(format!("no number of the units stands for {time}"))),
        };
        times.iter().map(|time| time.map(number).transpose()).collect()
    }

    /// Returns an array of numbers as dates: `2001-02-30`, `2001-02-30T12:00:00`. Numbers that are no times stay numbers.
    ///
    /// # Errors
    /// `Internal` if the array has no numbers.
    pub fn texts(self, numbers: &dyn Array) -> Result<StringArray> {
        let texts = self.each(numbers, |time, number| {
            Ok(time.map_or_else(|| number().to_string(), |it| it.to_string()))
        });
        Ok(texts?.into_iter().collect())
    }

    /// As [`Self::texts`], for an array of lists of numbers.
    ///
    /// # Errors
    /// `Internal` if the array has no lists of numbers.
    pub fn lists_of_texts(self, lists: &dyn Array) -> Result<ListArray> {
        let lists = cast(lists, &DataType::new_list(DataType::Float64, true))
            .map_err(failed_to("list times"))?;
        let lists: &ListArray = lists.as_list();
        let texts = self.texts(lists.values().as_ref())?;
        let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
        ListArray::try_new(item, lists.offsets().clone(), Arc::new(texts), lists.nulls().cloned())
            .map_err(failed_to("list times"))
    }

    /// Applies a function to the time of each number. Integers are exact.
    fn each<T>(
        self,
        numbers: &dyn Array,
        of: impl Fn(Option<CalendarTime>, &dyn Fn() -> f64) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        if numbers.data_type().is_signed_integer() || *numbers.data_type() == DataType::UInt32 {
            let numbers = cast(numbers, &DataType::Int64).map_err(failed_to("count times"))?;
            let of = |it: i64| of(self.time_of_integer(it), &|| it as f64);
            return numbers
                .as_primitive::<Int64Type>()
                .iter()
                .map(|it| it.map(of).transpose())
                .collect();
        }
        let numbers = cast(numbers, &DataType::Float64).map_err(failed_to("count times"))?;
        let of = |it: f64| of(self.time(it), &|| it);
        numbers.as_primitive::<Float64Type>().iter().map(|it| it.map(of).transpose()).collect()
    }

    /// Returns the metadata of a column of such numbers.
    pub fn metadata(units: &str, calendar: &str) -> HashMap<String, String> {
        let pairs = [("units", units), ("calendar", calendar), (COUNTED_TIMES, DATES)];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }
}

/// Returns the attributes of times that an option shows as numbers.
pub fn as_numbers(mut attributes: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let counts = attributes.get("units").is_some_and(|it| split_units(it).is_some());
    if counts {
        attributes.insert(COUNTED_TIMES.to_owned(), NUMBERS.to_owned());
    }
    attributes
}

/// Marks a field of numbers that count time, if its calendar has no timestamps. Labels that no timestamp can hold are marked in
/// all calendars.
pub(super) fn marked_times(field: Field, is_label: bool) -> Field {
    let mut metadata = field.metadata().clone();
    let Some(units) = metadata.get("units") else { return field };
    if !field.data_type().is_numeric() || metadata.contains_key(COUNTED_TIMES) {
        return field;
    }
    let calendar = metadata.get("calendar").map_or("", String::as_str);
    let has_dates = |it: Calendar| is_label || !it.has_timestamps();
    let is_shown = Calendar::from_name(calendar).is_some_and(has_dates);
    if !is_shown || CountedTimes::from_attributes(units, calendar).is_none() {
        return field;
    }
    metadata.insert(COUNTED_TIMES.to_owned(), DATES.to_owned());
    field.with_metadata(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_numbers() {
        for (units, calendar, date, number) in [
            ("days since 1850-01-01", "360_day", "1849-12-30", -1.0),
            ("days since 1850-01-01", "360_day", "2001-02-30T06:00", 54_419.25),
            ("hours since 1850-02-01", "all_leap", "1851-03-02", 9_504.0),
            ("months since 1850-01-01", "360_day", "1851-02", 13.0),
            ("days since 2000-02-28", "julian", "1900-02-29", -36_524.0),
        ] {
            let times = CountedTimes::from_attributes(units, calendar).unwrap();
            assert_eq!(times.number(date), Ok(number), "{units} {calendar} {date}");
        }
        let days = CountedTimes::from_attributes("days since 2000-01-01", "360_day").unwrap();
        assert_eq!(days.number("2000-01-31"), Err("there is no 2000-01-31".to_owned()));
        assert!(days.number("soon").is_err());
        for (units, calendar) in [
            ("days since 2000-01-01", "none"),
            ("days since 2000-01-31", "360_day"),
            ("months since 2000-01-01", "julian"),
            ("days", "360_day"),
        ] {
            assert_eq!(CountedTimes::from_attributes(units, calendar), None, "{units} {calendar}");
        }
    }

    #[test]
    fn numbers_are_dates() {
        for (units, calendar, number, date) in [
            ("days since 1850-01-01", "360_day", 54_419.25, "2001-02-30T06:00:00"),
            ("days since 2000-02-30", "360_day", 1.0, "2000-03-01"),
            ("months since 1850-01-01", "360_day", 13.5, "1851-02-16"),
            ("hours since 1850-02-29 12:00", "366_day", 12.5, "1850-03-01T00:30:00"),
            ("days since 1900-02-29", "julian", 0.0, "1900-02-29"),
            ("days since 1582-10-04", "standard", 1.0, "1582-10-15"),
            ("days since 0001-01-01", "gregorian", -1.0, "-0001-12-31"),
            ("days since 0001-01-01", "360_day", -1.0, "0000-12-30"),
            ("seconds since 1850-01-01", "360_day", 0.25, "1850-01-01T00:00:00.250"),
            ("days since 1850-01-01", "360_day", 1.0 / 3.0, "1850-01-01T08:00:00"),
        ] {
            let times = CountedTimes::from_attributes(units, calendar).unwrap();
            let time = times.time(number).unwrap();
            assert_eq!(time.to_string(), date, "{units} {calendar}");
            assert_eq!(times.number_of(time), times.number(date).ok(), "{units} {calendar}");
        }
        let days = CountedTimes::from_attributes("days since 1850-01-01", "360_day").unwrap();
        for far in [f64::NAN, f64::INFINITY, 1e300, -1e18] {
            assert!(days.time(far).is_none_or(|it| it.to_string().len() > 10), "{far}");
        }
        assert_eq!((days.time(f64::NAN), days.time(1e300)), (None, None));
        assert_eq!(days.time_of_integer(i64::MAX), None);
        let standard = CountedTimes::from_attributes("days since 1500-01-01", "").unwrap();
        assert!(standard.number("0000-01-01").is_err());
    }

    #[test]
    fn fields_are_marked_if_their_calendar_has_no_timestamps() {
        use arrow::datatypes::DataType::{Float64, Utf8};
        let marked = |units: &str, calendar: &str, is_label| {
            let attributes = [("units", units), ("calendar", calendar)];
            let attributes = attributes.map(|(key, text)| (key.to_owned(), text.to_owned()));
            let field = |data_type, attributes| {
                let field = Field::new("time", data_type, true).with_metadata(attributes);
                CountedTimes::from_field(&marked_times(field, is_label)).is_some()
            };
            assert!(!field(Utf8, attributes.clone().into()));
            let numbers = as_numbers(attributes.clone().into());
            assert!(!field(Float64, numbers.into_iter().collect()));
            field(Float64, attributes.into())
        };
        assert!(marked("days since 2000-02-30", "360_day", false));
        assert!(marked("days since 1000-01-01", "standard", true));
        assert!(!marked("days since 1000-01-01", "standard", false));
        assert!(!marked("days since 2000-02-31", "360_day", true));
        assert!(!marked("months since 2000-01-01", "julian", true));
        assert!(!marked("days", "360_day", true));
        assert!(!marked("days since 2000-01-01", "lunar", true));
    }
}
