//! CF time coordinates: numbers with `units` such as `hours since 1990-01-01 06:00`, as timestamps.
//!
//! Only the calendars that SQL shares are converted. The `standard` (`gregorian`) calendar is Julian
//! before 1582-10-15. So `days since 1-1-1` begins two days earlier there than in the
//! `proleptic_gregorian` calendar. The `standard` calendar also skips the ten dates before 1582-10-15.
//! Months and years have no fixed length and stay numbers.

use std::collections::BTreeMap;
use std::fmt;

use arrow::array::TimestampMicrosecondArray;
use arrow::compute::min;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveTime};

/// A linear map from numbers to microseconds since 1970-01-01 00:00 UTC: `epoch + number * unit`.
///
/// `days since 1970-01-02` has the unit 86 400 000 000 and the epoch 86 400 000 000, so 1.5 is noon of
/// 1970-01-03.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeUnits {
    /// Microseconds per unit.
    unit: i64,
    /// The reference instant, in microseconds since 1970; 0 for lengths of time.
    epoch: i64,
    /// The calendar of the reference; `None` for lengths of time.
    calendar: Option<Calendar>,
}

/// A calendar that agrees with SQL's from 1582-10-15 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calendar {
    /// Julian before that day: CF's `standard`.
    Mixed,
    /// Gregorian for all dates, as in SQL.
    Proleptic,
}

/// 1582-10-15, the first day of the Gregorian calendar.
const REFORM: (i32, u32, u32) = (1582, 10, 15);

/// Midnight of [`REFORM`], in microseconds since 1970.
const REFORM_MICROS: i64 = -12_219_292_800_000_000;

impl TimeUnits {
    /// Parses the `units` and `calendar` attributes. `None` if `units` is not `UNIT since REFERENCE`,
    /// if the unit is unknown or has no fixed length, or if SQL does not share the calendar.
    ///
    /// # Errors
    /// The reason, as a sentence, if the reference is not a date that the calendar has.
    pub fn from_attributes(attributes: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let known = || {
            let units = attributes.get("units")?;
            let (unit, reference) = split_units(units)?;
            let calendar = attributes.get("calendar").map_or("standard", String::as_str);
            Some((units, microseconds(unit)?, reference, Calendar::named(calendar.trim())?))
        };
        let Some((units, unit, reference, calendar)) = known() else { return Ok(None) };
        let epoch = parse_reference(reference, calendar)
            .map_err(|why| format!("attribute units = \"{units}\": {why}"))?;
        Ok(Some(Self { unit, epoch, calendar: Some(calendar) }))
    }

    /// Returns the units of lengths of time. `None` unless the attributes `dtype` and `units` are such as
    /// `timedelta64[ns]` and `hours`: units alone do not tell a length of time from other numbers.
    pub fn from_lengths(attributes: &BTreeMap<String, String>) -> Option<Self> {
        let is_length = attributes.get("dtype").is_some_and(|it| it.starts_with("timedelta64"));
        let unit = microseconds(attributes.get("units").filter(|_| is_length)?.trim())?;
        Some(Self { unit, epoch: 0, calendar: None })
    }

    /// Returns the type of the converted numbers.
    pub(crate) fn data_type(self) -> DataType {
        match self.calendar {
            Some(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
            None => DataType::Duration(TimeUnit::Microsecond),
        }
    }

    /// Returns a warning if the file's calendar gives some of the `times` other dates than SQL does.
    pub(crate) fn renamed(self, times: &TimestampMicrosecondArray) -> Option<String> {
        let is_before = min(times).is_some_and(|first| first < REFORM_MICROS);
        (self.calendar == Some(Calendar::Mixed) && is_before).then(|| {
            "times before 1582-10-15 are shown with other dates than the file has: SQL uses the proleptic \
             Gregorian calendar, and the file's calendar is Julian before that day; the instants are the same"
                .to_owned()
        })
    }

    /// Returns the instant `value` units after the reference; `None` if a timestamp cannot hold it.
    pub(crate) fn at_integer(self, value: i128) -> Option<i64> {
        let offset = value.checked_mul(self.unit.into())?;
        offset.checked_add(self.epoch.into())?.try_into().ok()
    }

    /// Like [`TimeUnits::at_integer`] for a fractional number of units, rounded to the nearest
    /// microsecond.
    pub(crate) fn at_float(self, value: f64) -> Option<i64> {
        // Whole units are exact; only the fraction is rounded, so a large offset loses nothing.
        let (whole, fraction) = (value.trunc(), value.fract());
        if !value.is_finite() || whole.abs() > 1e18 {
            return None;
        }
        let fraction = (fraction * self.unit as f64).round() as i64;
        self.at_integer(whole as i128)?.checked_add(fraction)
    }
}

impl fmt::Display for TimeUnits {
    /// Shows the unit in seconds and the reference: `3600 s since 1990-01-01T06:00:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.unit as f64 / 1e6)?;
        match DateTime::from_timestamp_micros(self.epoch).filter(|_| self.calendar.is_some()) {
            Some(epoch) => write!(f, " since {}", epoch.format("%FT%T%.f")),
            None => Ok(()),
        }
    }
}

impl Calendar {
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" | "" => Some(Self::Mixed),
            "proleptic_gregorian" => Some(Self::Proleptic),
            _ => None,
        }
    }

    /// Returns the day with the date `year-month-day` in this calendar; `None` if it has no such date.
    fn date(self, year: i32, month: u32, day: u32) -> Option<NaiveDate> {
        /// The day before [`REFORM`]; the calendar skips the ten dates between them.
        const LAST_JULIAN: (i32, u32, u32) = (1582, 10, 4);
        let date = (year, month, day);
        if self == Self::Proleptic || date >= REFORM {
            return NaiveDate::from_ymd_opt(year, month, day);
        }
        if date <= LAST_JULIAN { julian_date(year, month, day) } else { None }
    }
}

/// Splits `UNIT since REFERENCE` into the unit and the reference; `since` may be in any case.
fn split_units(units: &str) -> Option<(&str, &str)> {
    let (unit, rest) = units.trim().split_once(char::is_whitespace)?;
    let (since, reference) = rest.trim_start().split_once(char::is_whitespace)?;
    since.eq_ignore_ascii_case("since").then(|| (unit, reference.trim()))
}

/// Returns the microseconds of a unit; `None` for months and years, and for unknown names.
fn microseconds(unit: &str) -> Option<i64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "us" | "usec" | "usecs" | "microsec" | "microsecs" | "microsecond" | "microseconds" => 1,
        "ms" | "msec" | "msecs" | "millisec" | "millisecs" | "millisecond" | "milliseconds" => {
            1_000
        }
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000,
        "min" | "mins" | "minute" | "minutes" => 60_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000,
        "d" | "day" | "days" => 86_400_000_000,
        "week" | "weeks" => 7 * 86_400_000_000,
        _ => return None,
    })
}

/// Parses `Y-M-D[ T]h[:m[:s[.f]]] [Z|UTC|±hh[:mm]]`, padded or not, to microseconds since 1970.
///
/// # Errors
/// The reason, as a sentence.
fn parse_reference(text: &str, calendar: Calendar) -> Result<i64, String> {
    let (date, rest) = match text.find(|it: char| it.is_whitespace() || it == 'T' || it == 't') {
        Some(at) => (&text[..at], text[at..].trim_start_matches(['T', 't']).trim()),
        None => (text, ""),
    };
    let not_a_time = || format!("\"{text}\" is not a date and time");
    let (year, month, day) = parse_date(date).ok_or_else(not_a_time)?;
    let midnight = calendar.date(year, month, day).ok_or_else(|| {
        let left_out = NaiveDate::from_ymd_opt(year, month, day).is_some();
        let why = if left_out { " in this calendar: 1582-10-15 follows 1582-10-04" } else { "" };
        format!("there is no {date}{why}")
    })?;
    let (clock, zone) = split_zone(rest);
    let midnight = midnight.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
    let instant = || {
        let at = midnight.checked_add(parse_clock(clock.trim())?)?;
        // Clocks east of UTC are ahead of it, so their offset is subtracted.
        at.checked_sub(parse_zone(zone.trim())?)
    };
    instant().ok_or_else(not_a_time)
}

/// Parses `year-month-day`; the year may be negative.
fn parse_date(text: &str) -> Option<(i32, u32, u32)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let parts: Vec<u32> = digits.split('-').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day] = parts.try_into().ok()?;
    let year = i32::try_from(year).ok()? * if negative { -1 } else { 1 };
    Some((year, month, day))
}

/// Returns the day with the Julian date `year-month-day`, computed from its Julian day number.
///
/// The Julian 1582-10-04 is the Gregorian 1582-10-14, and is followed by 1582-10-15 in both calendars.
fn julian_date(year: i32, month: u32, day: u32) -> Option<NaiveDate> {
    let days_in_month = match month {
        2 => 28 + u32::from(year.rem_euclid(4) == 0),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > days_in_month || year.abs() > 100_000 {
        return None;
    }
    // Count years from March, so that the leap day is the last of its year. Then (153 * m + 2) / 5 is the
    // number of days in the first m months: 0, 31, 61, 92, 122, 153, ….
    let before_march = i64::from(month < 3);
    let year = i64::from(year) + 4800 - before_march;
    let months_since_march = i64::from(month) + 12 * before_march - 3;
    let day_number =
        i64::from(day) + (153 * months_since_march + 2) / 5 + 365 * year + year.div_euclid(4)
            - 32083;
    /// The Julian day number of 1970-01-01.
    const UNIX_EPOCH_DAY_NUMBER: i64 = 2_440_588;
    NaiveDate::default()
        .checked_add_signed(chrono::TimeDelta::days(day_number - UNIX_EPOCH_DAY_NUMBER))
}

/// Splits text such as `06:00:00 +01:00`, `06:00:00 1:00` or `06:00Z` into clock and zone.
fn split_zone(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|c: char| c == '+' || c == '-' || c.is_ascii_alphabetic());
    text.split_at(at.or_else(|| text.find(' ')).unwrap_or(text.len()))
}

/// Parses a clock time to microseconds since midnight; without text, midnight. Accepts the hour 24 and the
/// leap second 60.
fn parse_clock(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let mut parts = text.split(':');
    let mut whole = |limit: i64| match parts.next() {
        None => Some(0),
        Some(part) => part.parse::<i64>().ok().filter(|value| (0..limit).contains(value)),
    };
    let (hours, minutes) = (whole(25)?, whole(60)?);
    let seconds: f64 = parts.next().map_or(Some(0.0), |part| part.parse().ok())?;
    if parts.next().is_some() || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    Some((hours * 3_600 + minutes * 60) * 1_000_000 + (seconds * 1e6).round() as i64)
}

/// Parses a zone such as `Z`, `+1`, `-0530`, `+05:30` or `5:30` to microseconds east of UTC; without text, UTC.
fn parse_zone(text: &str) -> Option<i64> {
    if ["", "Z", "UTC", "GMT"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => (1, text),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=24).contains(&hours) && (0..60).contains(&minutes))
        .then_some(sign * (hours * 60 + minutes) * 60_000_000)
}

/// Returns the instant as a date and time.
#[cfg(test)]
fn shown(micros: i64) -> Option<chrono::NaiveDateTime> {
    chrono::DateTime::from_timestamp_micros(micros).map(|time| time.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: &str, calendar: Option<&str>) -> Option<TimeUnits> {
        let mut attributes = BTreeMap::from([("units".to_owned(), units.to_owned())]);
        attributes.extend(calendar.map(|it| ("calendar".to_owned(), it.to_owned())));
        TimeUnits::from_attributes(&attributes).ok().flatten()
    }

    fn epoch(text: &str, calendar: Option<&str>) -> String {
        let units = units(text, calendar).unwrap_or_else(|| panic!("{text}"));
        shown(units.at_integer(0).unwrap()).unwrap().to_string()
    }

    #[test]
    fn references_in_the_forms_that_files_use() {
        for (text, expected) in [
            ("days since 2024-01-01", "2024-01-01 00:00:00"),
            ("hours since 1900-1-1 00:00:0.0", "1900-01-01 00:00:00"),
            ("seconds since 1970-01-01T06:30:15.5Z", "1970-01-01 06:30:15.500"),
            ("minutes since 1990-01-01 06:00 UTC", "1990-01-01 06:00:00"),
            ("Hours since 1990-01-01 06:00:00 +01:00", "1990-01-01 05:00:00"),
            ("seconds since 1970-1-1 0:00:00 0:00", "1970-01-01 00:00:00"),
            ("seconds since 1970-1-1 6:00 1:30", "1970-01-01 04:30:00"),
            ("days since 1990-01-01 0:0:0 -0330", "1990-01-01 03:30:00"),
            ("Days Since 1990-01-01", "1990-01-01 00:00:00"),
            (" SECONDS\tSINCE  1990-01-01t06:00z ", "1990-01-01 06:00:00"),
            ("millisecs since 1990-01-01  06:00  utc", "1990-01-01 06:00:00"),
        ] {
            assert_eq!(epoch(text, None), expected, "{text}");
        }
    }

    /// Checks dates against published tables of conversions between the two calendars.
    #[test]
    fn the_standard_calendar_is_julian_before_1582() {
        let standard = Some("standard");
        assert_eq!(epoch("days since 0001-01-01", standard), "0000-12-30 00:00:00");
        assert_eq!(epoch("days since 1582-10-04", standard), "1582-10-14 00:00:00");
        assert_eq!(epoch("days since 1582-10-15", standard), "1582-10-15 00:00:00");
        assert_eq!(epoch("days since 1500-02-29", standard), "1500-03-10 00:00:00");
        assert_eq!(
            epoch("days since 0001-01-01", Some("proleptic_gregorian")),
            "0001-01-01 00:00:00"
        );
    }

    #[test]
    fn dates_that_a_calendar_does_not_have_are_refused() {
        let refused = |text: &str, calendar: &str| {
            let attributes = [("units", text), ("calendar", calendar)];
            let attributes = attributes.map(|(key, text)| (key.to_owned(), text.to_owned()));
            TimeUnits::from_attributes(&attributes.into()).err()
        };
        for day in 5..15 {
            let text = format!("days since 1582-10-{day:02}");
            for calendar in ["standard", "Gregorian", ""] {
                let why = refused(&text, calendar).unwrap_or_else(|| panic!("{text} {calendar}"));
                assert!(why.contains("1582-10-15 follows 1582-10-04"), "{why}");
            }
            assert_eq!(refused(&text, "proleptic_gregorian"), None);
        }
        for (text, why) in [
            ("days since 2000-13-01", "there is no 2000-13-01"),
            ("days since 2001-02-29", "there is no 2001-02-29"),
            ("days since 1500-02-30", "there is no 1500-02-30"),
            ("days since the flood", "\"the flood\" is not a date and time"),
            ("days since 2000-01-01 25:99", "is not a date and time"),
        ] {
            let found = refused(text, "standard").unwrap_or_else(|| panic!("{text}"));
            assert!(found.contains(why) && found.contains(text), "{found}");
            assert_eq!(refused(text, "noleap"), None, "{text}");
        }
        assert_eq!(refused("months since 2000-13-01", "standard"), None);
    }

    #[test]
    fn times_before_the_reform_have_a_warning() {
        let renamed = |first: i64, calendar: &str| {
            let times = TimestampMicrosecondArray::from(vec![None, Some(first), Some(0)]);
            units("days since 1970-01-01", Some(calendar)).unwrap().renamed(&times).is_some()
        };
        let reform = NaiveDate::from_ymd_opt(1582, 10, 15).unwrap().and_time(NaiveTime::MIN);
        assert_eq!(reform.and_utc().timestamp_micros(), REFORM_MICROS);
        assert!(renamed(REFORM_MICROS - 1, "standard") && !renamed(REFORM_MICROS, "standard"));
        assert!(!renamed(REFORM_MICROS - 1, "proleptic_gregorian"));
    }

    #[test]
    fn offsets_are_exact_and_bounded() {
        let hours = units("hours since 2000-01-01", None).unwrap();
        assert_eq!(shown(hours.at_float(1.5).unwrap()).unwrap().to_string(), "2000-01-01 01:30:00");
        assert_eq!(
            shown(hours.at_float(-0.25).unwrap()).unwrap().to_string(),
            "1999-12-31 23:45:00"
        );
        assert_eq!(hours.at_integer(i128::from(i64::MAX)), None);
        assert_eq!(hours.at_float(f64::INFINITY), None);
        assert_eq!(hours.at_float(1e300), None);
        let days = units("days since 1-1-1", None).unwrap();
        let far = days.at_float(738_000.25).unwrap() - days.at_integer(738_000).unwrap();
        assert_eq!(far, 6 * 3_600_000_000);
    }

    #[test]
    fn what_a_timestamp_cannot_hold_stays_a_number() {
        for (text, calendar) in [
            ("months since 2000-01-01", None),
            ("days since 2000-01-01", Some("noleap")),
            ("days since 2000-01-01", Some("360_day")),
            ("days since the flood", None),
            ("days since 2000-13-01", None),
            ("days since 1500-02-30", None),
            ("days since 2000-01-01 25:99", None),
            ("days since 2000-01-01 00:00 +99", None),
            ("days since 2000-01-01 00:00 +1é9", None),
            ("K", None),
        ] {
            assert_eq!(units(text, calendar), None, "{text} {calendar:?}");
        }
    }
}
