//! The units of CF times as text: `hours since 1990-01-01 06:00 +01:00`.

use super::calendar::{Calendar, CalendarDate};

/// Nanoseconds per day.
pub(super) const DAY: i64 = 24 * HOUR;
/// Nanoseconds per hour.
pub(super) const HOUR: i64 = 60 * MINUTE;
/// Nanoseconds per minute.
pub(super) const MINUTE: i64 = 60 * SECOND;
/// Nanoseconds per second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// Splits `UNIT since REFERENCE` into the unit and the reference; `since` may be in any case.
pub(super) fn split_units(units: &str) -> Option<(&str, &str)> {
    let (unit, rest) = units.trim().split_once(char::is_whitespace)?;
    let (since, reference) = rest.trim_start().split_once(char::is_whitespace)?;
    since.eq_ignore_ascii_case("since").then(|| (unit, reference.trim()))
}

/// Returns the nanoseconds of a unit; `None` for months and years, whose length varies, and for unknown names.
pub(super) fn nanoseconds(unit: &str) -> Option<i64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ns" | "nsec" | "nsecs" | "nanosec" | "nanosecs" | "nanosecond" | "nanoseconds" => 1,
        "us" | "usec" | "usecs" | "microsec" | "microsecs" | "microsecond" | "microseconds" => {
            1_000
        }
        "ms" | "msec" | "msecs" | "millisec" | "millisecs" | "millisecond" | "milliseconds" => {
            1_000_000
        }
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "week" | "weeks" => 7 * DAY,
        _ => return None,
    })
}

/// Returns the nanoseconds of a unit in a calendar, in some of which years or months have one length.
pub(super) fn nanoseconds_in(unit: &str, calendar: Calendar) -> Option<i64> {
    let days = match (unit.to_ascii_lowercase().as_str(), calendar) {
        ("common_year" | "common_years", Calendar::NoLeap) => 365,
        ("month" | "months", Calendar::Days360) => 30,
        _ => return nanoseconds(unit),
    };
    Some(days * DAY)
}

/// Parses `Y-M-D[ T]h[:m[:s[.f]]] [Z|UTC|±hh[:mm]]`, padded or not, to nanoseconds since 1970 in the calendar. Also returns the
/// calendar, which is another one for years that it lacks.
///
/// # Errors
/// The reason, as a sentence.
pub(super) fn parse_reference(text: &str, calendar: Calendar) -> Result<(i128, Calendar), String> {
    let (date, rest) = match text.find(|it: char| it.is_whitespace() || it == 'T' || it == 't') {
        Some(at) => (&text[..at], text[at..].trim_start_matches(['T', 't']).trim()),
        None => (text, ""),
    };
    let not_a_time = || format!("\"{text}\" is not a date and time");
    let parsed = parse_date(date).ok_or_else(not_a_time)?;
    let (known, calendar) = with_year_0(parsed, calendar);
    let day = calendar.day(known).ok_or_else(|| {
        let left_out = Calendar::Proleptic.day(parsed).is_some() && calendar == Calendar::Mixed;
        let why = if left_out { " in this calendar: 1582-10-15 follows 1582-10-04" } else { "" };
        format!("there is no {date}{why}")
    })?;
    let (clock, zone) = split_zone(rest);
    let instant = || {
        // Clocks east of UTC are ahead of it, so their offset is subtracted.
        let of_day = parse_clock(clock.trim())? - parse_zone(zone)?;
        Some(i128::from(day) * i128::from(DAY) + i128::from(of_day))
    };
    instant().map(|it| (it, calendar)).ok_or_else(not_a_time)
}

/// Counts years with a year 0, as all calendars do but the historical ones: there, 1 follows -1. Files that have a year 0 of
/// theirs hold climatologies, or day numbers of MATLAB; both are meant as dates of SQL.
fn with_year_0(date: CalendarDate, calendar: Calendar) -> (CalendarDate, Calendar) {
    match calendar {
        Calendar::Mixed if date.year == 0 => (date, Calendar::Proleptic),
        Calendar::Mixed | Calendar::Julian if date.year < 0 => {
            (CalendarDate { year: date.year + 1, ..date }, calendar)
        }
        _ => (date, calendar),
    }
}

/// Parses `year-month-day`, `year/month/day`, `year-month`, `year` or `yyyymmdd`; the year may be negative.
fn parse_date(text: &str) -> Option<CalendarDate> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let separator = if digits.contains('/') { '/' } else { '-' };
    let whole = |part: &str| part.parse::<u32>().ok().map(i64::from);
    let parts: Vec<i64> = digits.split(separator).map(whole).collect::<Option<_>>()?;
    let (year, month, day) = match parts[..] {
        [packed] if digits.len() == 8 => (packed / 10_000, packed / 100 % 100, packed % 100),
        [year] if digits.len() <= 4 => (year, 1, 1),
        [year, month] => (year, month, 1),
        [year, month, day] => (year, month, day),
        _ => return None,
    };
    Some(CalendarDate { year: if negative { -year } else { year }, month, day })
}

/// Splits text such as `06:00:00 +01:00`, `06:00:00 1:00` or `06:00Z` into clock and zone.
fn split_zone(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|c: char| "+-(".contains(c) || c.is_ascii_alphabetic());
    text.split_at(at.or_else(|| text.find(' ')).unwrap_or(text.len()))
}

/// Parses a clock time to nanoseconds since midnight; without text, midnight. Accepts the hour 24 and the
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
    Some(hours * HOUR + minutes * MINUTE + (seconds * SECOND as f64).round() as i64)
}

/// Parses a zone such as `Z`, `(UTC)`, `UTC+1`, `+1`, `-0530`, `+05:30` or `5:30` to nanoseconds east of UTC; without text, UTC.
fn parse_zone(text: &str) -> Option<i64> {
    let is_outside = |it: char| it.is_whitespace() || it == '(' || it == ')';
    let mut text = text.trim_matches(is_outside);
    for name in ["Z", "UTC", "GMT"] {
        if text.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)) {
            text = text[name.len()..].trim_matches(is_outside);
        }
    }
    if text.is_empty() {
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
        .then_some(sign * (hours * 60 + minutes) * MINUTE)
}
