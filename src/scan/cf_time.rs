//! CF time coordinates: `hours since 1990-01-01 06:00` to timestamps.
//!
//! Only the calendars that SQL shares are converted. In the `standard` (`gregorian`) calendar, a
//! reference date before 1582-10-15 is Julian, so `days since 1-1-1` begins two days earlier than
//! in the `proleptic_gregorian` calendar. Months and years have no fixed length and stay numbers.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveTime};

/// A linear map from numbers to microseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeUnits {
    /// Microseconds per unit.
    unit: i64,
    /// The reference instant.
    epoch: i64,
}

impl TimeUnits {
    /// Reads the `units` and `calendar` attributes; `None` if they are not of a time that a
    /// timestamp can hold.
    pub(super) fn from_attributes(attributes: &BTreeMap<String, String>) -> Option<Self> {
        let (unit, reference) = attributes.get("units")?.split_once(" since ")?;
        let calendar = attributes.get("calendar").map_or("standard", String::as_str);
        let mixed = match calendar.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" | "" => true,
            "proleptic_gregorian" => false,
            _ => return None,
        };
        Some(Self {
            unit: microseconds(unit.trim())?,
            epoch: parse_reference(reference.trim(), mixed)?,
        })
    }

    /// The instant `value` units after the reference, if a timestamp can hold it.
    pub(super) fn at_integer(self, value: i128) -> Option<i64> {
        let offset = value.checked_mul(self.unit.into())?;
        offset.checked_add(self.epoch.into())?.try_into().ok()
    }

    /// The same for a fractional number of units, rounded to the nearest microsecond.
    pub(super) fn at_float(self, value: f64) -> Option<i64> {
        // Whole units are exact; only the fraction is rounded, so a large offset loses nothing.
        let (whole, fraction) = (value.trunc(), value.fract());
        if !value.is_finite() || whole.abs() > 1e18 {
            return None;
        }
        let fraction = (fraction * self.unit as f64).round() as i64;
        self.at_integer(whole as i128)?.checked_add(fraction)
    }
}

fn microseconds(unit: &str) -> Option<i64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" => 1,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000,
        "min" | "mins" | "minute" | "minutes" => 60_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000,
        "d" | "day" | "days" => 86_400_000_000,
        "week" | "weeks" => 7 * 86_400_000_000,
        _ => return None,
    })
}

/// `Y-M-D[ T]h[:m[:s[.f]]] [Z|UTC|±hh[:mm]]` with or without padding, in microseconds since 1970.
fn parse_reference(text: &str, mixed_calendar: bool) -> Option<i64> {
    let (date, rest) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    let (clock, zone) = split_zone(rest);
    let midnight =
        parse_date(date, mixed_calendar)?.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
    midnight.checked_add(parse_clock(clock.trim())?)?.checked_sub(parse_zone(zone.trim())?)
}

fn parse_date(text: &str, mixed_calendar: bool) -> Option<NaiveDate> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let parts: Vec<u32> = digits.split('-').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day] = parts.try_into().ok()?;
    let year = i32::try_from(year).ok()? * if negative { -1 } else { 1 };
    if mixed_calendar && (year, month, day) < (1582, 10, 15) {
        return julian_date(year, month, day);
    }
    NaiveDate::from_ymd_opt(year, month, day)
}

/// The day that the Julian calendar calls `year-month-day`, by its Julian day number.
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
    // Years counted from March, so that the leap day is the last of its year.
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

/// Splits `06:00:00 +01:00` or `06:00Z` before the zone.
fn split_zone(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| c == '+' || c == '-' || c.is_ascii_alphabetic());
    text.split_at(at.unwrap_or(text.len()))
}

/// Microseconds since midnight.
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

/// Microseconds east of UTC.
fn parse_zone(text: &str) -> Option<i64> {
    if ["", "Z", "UTC", "GMT"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => return None,
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

/// The instant as a date and time; only for tests and messages.
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
        TimeUnits::from_attributes(&attributes)
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
            ("days since 1990-01-01 0:0:0 -0330", "1990-01-01 03:30:00"),
        ] {
            assert_eq!(epoch(text, None), expected, "{text}");
        }
    }

    /// Dates that both calendars name, from published conversion tables.
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
