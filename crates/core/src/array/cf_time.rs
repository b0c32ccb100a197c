//! CF time coordinates: numbers with `units` such as `hours since 1990-01-01 06:00`, as timestamps.
//!
//! | calendar | timestamp of a time |
//! |---|---|
//! | `proleptic_gregorian` | the same date |
//! | `standard`, `gregorian` | the same date; labels before 1582-10-15 stay numbers, shown as dates |
//! | `noleap`, `365_day` | the same date: SQL has all dates of the calendar |
//!
//! Other calendars have dates that SQL lacks, and their times stay numbers. So do months and years, which have no fixed length.

use std::collections::BTreeMap;
use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};

use super::calendar::{Calendar, REFORM_DAY};
use super::time_reference::{DAY, nanoseconds, nanoseconds_in, parse_reference, split_units};

/// 1582-10-15, in nanoseconds since 1970.
const REFORM: i128 = REFORM_DAY as i128 * DAY as i128;

/// A map from numbers to timestamps: `epoch + number * unit`, and the same date of SQL.
///
/// `days since 1970-01-02` has the unit and the epoch 86 400 000 000 000, so 1.5 is noon of 1970-01-03.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeUnits {
    /// Nanoseconds per unit.
    unit: i64,
    /// The reference instant, in nanoseconds since 1970 of the calendar; 0 for lengths of time.
    epoch: i128,
    /// The calendar of the reference; `None` for lengths of time.
    calendar: Option<Calendar>,
}

impl TimeUnits {
    /// Parses the `units` and `calendar` attributes. `None` if `units` is not `UNIT since REFERENCE`,
    /// if the unit is unknown or has no fixed length, or if SQL lacks dates of the calendar.
    ///
    /// # Errors
    /// The reason, as a sentence, if the reference is not a date that the calendar has.
    pub fn from_attributes(attributes: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let known = || {
            let units = attributes.get("units")?;
            let (unit, reference) = split_units(units)?;
            let calendar = attributes.get("calendar").map_or("", String::as_str);
            let calendar = Calendar::from_name(calendar).filter(|it| it.has_timestamps())?;
            Some((units, nanoseconds_in(unit, calendar)?, reference, calendar))
        };
        let Some((units, unit, reference, calendar)) = known() else { return Ok(None) };
        let (epoch, calendar) = parse_reference(reference, calendar)
            .map_err(|why| format!("attribute units = \"{units}\": {why}"))?;
        Ok(Some(Self { unit, epoch, calendar: Some(calendar) }))
    }

    /// Returns the units of lengths of time. `None` unless the attributes `dtype` and `units` are such as
    /// `timedelta64[ns]` and `hours`: units alone do not tell a length of time from other numbers.
    pub fn from_lengths(attributes: &BTreeMap<String, String>) -> Option<Self> {
        let is_length = attributes.get("dtype").is_some_and(|it| it.starts_with("timedelta64"));
        let unit = nanoseconds(attributes.get("units").filter(|_| is_length)?.trim())?;
        Some(Self { unit, epoch: 0, calendar: None })
    }

    /// Returns the type of the converted numbers: whole nanoseconds need it, and all others have a longer range.
    pub(crate) fn data_type(self) -> DataType {
        let unit = if self.tick() == 1 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        match self.calendar {
            Some(_) => DataType::Timestamp(unit, None),
            None => DataType::Duration(unit),
        }
    }

    /// Returns the units with SQL's date for the instant of each time, instead of the file's date.
    pub(crate) fn of_instants(self) -> Self {
        let calendar = self.calendar.map(|it| match it {
            Calendar::Mixed => Calendar::Proleptic,
            calendar => calendar,
        });
        Self { calendar, ..self }
    }

    /// Whether the calendar has leap days before 1582 that SQL lacks.
    pub(crate) fn has_julian_dates(self) -> bool {
        self.calendar == Some(Calendar::Mixed)
    }

    /// Returns the nanoseconds per count of [`Self::data_type`].
    fn tick(self) -> i64 {
        if self.unit % 1_000 == 0 { 1_000 } else { 1 }
    }

    /// Whether the file's calendar gives times other dates than SQL does, of which this is the first: it is Julian before 1582-10-15.
    pub(crate) fn precedes_reform(self, first: Option<i64>) -> bool {
        let is_before = first.is_some_and(|it| i128::from(it) * i128::from(self.tick()) < REFORM);
        self.calendar == Some(Calendar::Mixed) && is_before
    }

    /// Returns the timestamp `value` units after the reference; `None` if the type cannot hold it.
    pub(crate) fn at_integer(self, value: i128) -> Option<i64> {
        let offset = value.checked_mul(self.unit.into())?;
        self.timestamp(offset.checked_add(self.epoch)?)
    }

    /// Like [`TimeUnits::at_integer`] for a fractional number of units, rounded to the nearest count.
    pub(crate) fn at_float(self, value: f64) -> Option<i64> {
        // Whole units are exact; only the fraction is rounded, so a large offset loses nothing.
        let (whole, fraction) = (value.trunc(), value.fract());
        if !value.is_finite() || whole.abs() > 1e18 {
            return None;
        }
        let fraction = (fraction * self.unit as f64).round() as i128;
        self.timestamp(whole as i128 * i128::from(self.unit) + self.epoch + fraction)
    }

    /// Returns the whole units and the rest, a fraction of a unit, at which a timestamp of [`Self::data_type`] lies after the reference. The
    /// inverse of [`TimeUnits::at_integer`]; `None` for a date that the calendar lacks.
    pub(crate) fn units_at(self, timestamp: i64) -> Option<(i128, f64)> {
        let nanoseconds = i128::from(timestamp) * i128::from(self.tick());
        let own = match self.other_dates(nanoseconds) {
            // The reform left out the days from 1582-10-05 to 1582-10-14.
            Some(calendar) => same_date(nanoseconds, Calendar::Proleptic, calendar)
                .filter(|own| calendar != Calendar::Julian || *own < REFORM)?,
            None => nanoseconds,
        };
        let (offset, unit) = (own - self.epoch, i128::from(self.unit));
        Some((offset.div_euclid(unit), offset.rem_euclid(unit) as f64 / self.unit as f64))
    }

    /// Returns the timestamp of nanoseconds since 1970 of the calendar; `None` for a date that SQL lacks, such as the Julian 1500-02-29.
    fn timestamp(self, nanoseconds: i128) -> Option<i64> {
        let shared = match self.other_dates(nanoseconds) {
            Some(calendar) => same_date(nanoseconds, calendar, Calendar::Proleptic)?,
            None => nanoseconds,
        };
        let tick = i128::from(self.tick());
        shared.checked_add(tick / 2)?.div_euclid(tick).try_into().ok()
    }

    /// Returns the calendar of a time whose date is another one in SQL's calendar at the same distance from 1970.
    fn other_dates(self, nanoseconds: i128) -> Option<Calendar> {
        match self.calendar {
            Some(Calendar::NoLeap) => Some(Calendar::NoLeap),
            Some(Calendar::Mixed) if nanoseconds < REFORM => Some(Calendar::Julian),
            _ => None,
        }
    }
}

/// Returns the nanoseconds since 1970 of a calendar at which it has the date of another; `None` if it lacks that date.
fn same_date(nanoseconds: i128, from: Calendar, to: Calendar) -> Option<i128> {
    let day = i64::try_from(nanoseconds.div_euclid(DAY.into())).ok()?;
    let same = to.day(from.date(day)?)?;
    Some(i128::from(same) * i128::from(DAY) + nanoseconds.rem_euclid(DAY.into()))
}

impl fmt::Display for TimeUnits {
    /// Shows the unit in seconds, the reference, and a calendar that is not SQL's: `3600 s since 1990-01-01T06:00:00 (noleap)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.unit as f64 / 1e9)?;
        let Some(calendar) = self.calendar else { return Ok(()) };
        let seconds = self.epoch.div_euclid(1_000_000_000);
        let (day, of_day) = (seconds.div_euclid(86_400) as i64, seconds.rem_euclid(86_400));
        // The days of `standard` are those of SQL, whose dates are shown.
        let of = if calendar == Calendar::NoLeap { calendar } else { Calendar::Proleptic };
        if let Some(date) = of.date(day) {
            let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
            write!(f, " since {date}T{hour:02}:{minute:02}:{second:02}")?;
            let fraction = self.epoch.rem_euclid(1_000_000_000);
            if fraction > 0 {
                write!(f, ".{}", format!("{fraction:09}").trim_end_matches('0'))?;
            }
        }
        if of == Calendar::NoLeap { write!(f, " ({})", of.name()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the timestamp as a date and time.
    fn shown(micros: i64) -> String {
        chrono::DateTime::from_timestamp_micros(micros).unwrap().naive_utc().to_string()
    }

    fn units(units: &str, calendar: Option<&str>) -> Option<TimeUnits> {
        let mut attributes = BTreeMap::from([("units".to_owned(), units.to_owned())]);
        attributes.extend(calendar.map(|it| ("calendar".to_owned(), it.to_owned())));
        TimeUnits::from_attributes(&attributes).ok().flatten()
    }

    fn epoch(text: &str, calendar: Option<&str>) -> String {
        let units = units(text, calendar).unwrap_or_else(|| panic!("{text}"));
        shown(units.at_integer(0).unwrap())
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
            ("days since 20000101", "2000-01-01 00:00:00"),
            ("days since 20000101T12", "2000-01-01 12:00:00"),
            ("days since 2000/01/31 6:00", "2000-01-31 06:00:00"),
            ("days since 2000-02", "2000-02-01 00:00:00"),
            ("days since 2000", "2000-01-01 00:00:00"),
            ("days since 2000-01-01 (UTC)", "2000-01-01 00:00:00"),
            ("days since 2000-01-01 06:00 UTC+0", "2000-01-01 06:00:00"),
            ("hours since 2000-01-01 06:00Z (UTC)", "2000-01-01 06:00:00"),
            ("hours since 2000-01-01 06:00:00 GMT-01:30", "2000-01-01 07:30:00"),
            ("days since 0000-01-01", "0000-01-01 00:00:00"),
        ] {
            assert_eq!(epoch(text, None), expected, "{text}");
        }
    }

    /// Checks dates against published tables of conversions between the two calendars.
    #[test]
    fn the_standard_calendar_is_julian_before_1582() {
        let standard = Some("standard");
        let instant = |text: &str| {
            let units = units(text, standard).unwrap().of_instants();
            shown(units.at_integer(0).unwrap())
        };
        for (date, of_sql) in [
            ("0001-01-01", "0000-12-30"),
            ("1582-10-04", "1582-10-14"),
            ("1582-10-15", "1582-10-15"),
        ] {
            let text = format!("days since {date}");
            assert_eq!(epoch(&text, standard), format!("{date} 00:00:00"));
            assert_eq!(instant(&text), format!("{of_sql} 00:00:00"));
        }
        assert_eq!(instant("days since 1500-02-29"), "1500-03-10 00:00:00");
        let days = units("days since 1500-02-28", standard).unwrap();
        let at = |days_later: i128| days.at_integer(days_later).map(shown);
        assert_eq!(at(1), None, "SQL has no 1500-02-29");
        assert_eq!(at(2), Some("1500-03-01 00:00:00".to_owned()));
        assert_eq!(days.at_float(2.5).map(shown), Some("1500-03-01 12:00:00".to_owned()));
        assert_eq!(
            epoch("days since 0001-01-01", Some("proleptic_gregorian")),
            "0001-01-01 00:00:00"
        );
    }

    /// The dates of cftime, which `tests/data/calendars/dates.py` writes.
    #[test]
    fn times_of_the_standard_calendar_have_the_dates_of_cftime() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/calendars/dates.csv");
        let dates = std::fs::read_to_string(path).unwrap();
        let mut compared = 0;
        for line in dates.lines() {
            let [of, "standard", number, date] = line.split('|').collect::<Vec<_>>()[..] else {
                continue;
            };
            let found = units(of, Some("standard")).unwrap().at_float(number.parse().unwrap());
            assert_eq!(found.map(shown), Some(date.replace('T', " ")), "{line}");
            compared += 1;
        }
        assert!(compared > 60, "{compared}");
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
            assert_eq!(refused(text, "360_day"), None, "{text}");
        }
        assert_eq!(refused("months since 2000-13-01", "standard"), None);
    }

    #[test]
    fn times_before_the_reform_have_other_dates() {
        let renamed = |first: i64, calendar: &str| {
            let units = units("days since 1970-01-01", Some(calendar)).unwrap();
            assert!(!units.precedes_reform(None));
            units.precedes_reform(Some(first))
        };
        let reform = units("days since 1582-10-15", None).unwrap().at_integer(0).unwrap();
        assert!(renamed(reform - 1, "standard") && !renamed(reform, "standard"));
        assert!(!renamed(reform - 1, "proleptic_gregorian") && !renamed(reform - 1, "noleap"));
    }

    #[test]
    fn offsets_are_exact_and_bounded() {
        let hours = units("hours since 2000-01-01", None).unwrap();
        assert_eq!(shown(hours.at_float(1.5).unwrap()), "2000-01-01 01:30:00");
        assert_eq!(shown(hours.at_float(-0.25).unwrap()), "1999-12-31 23:45:00");
        assert_eq!(hours.at_integer(i128::from(i64::MAX)), None);
        assert_eq!(hours.at_float(f64::INFINITY), None);
        assert_eq!(hours.at_float(1e300), None);
        let days = units("days since 1-1-1", None).unwrap();
        let far = days.at_float(738_000.25).unwrap() - days.at_integer(738_000).unwrap();
        assert_eq!(far, 6 * 3_600_000_000);
    }

    #[test]
    fn every_date_without_leap_days_is_one_of_sql() {
        let days = units("days since 1850-01-01", Some("NOLEAP")).unwrap();
        for (number, expected) in [
            (15.5, "1850-01-16 12:00:00"),
            (58.75, "1850-02-28 18:00:00"),
            (59.0, "1850-03-01 00:00:00"),
            (54_750.0 + 58.5, "2000-02-28 12:00:00"),
            (54_750.0 + 59.0, "2000-03-01 00:00:00"),
            (-0.5, "1849-12-31 12:00:00"),
        ] {
            assert_eq!(shown(days.at_float(number).unwrap()), expected, "{number}");
        }
        assert_eq!(days.at_integer(59), days.at_float(59.0));
        assert_eq!((days.at_integer(i128::MAX), days.at_float(1e18)), (None, None));
        assert_eq!(days.to_string(), "86400 s since 1850-01-01T00:00:00 (noleap)");
        let years = units("common_years since 0000-01-01", Some("365_day")).unwrap();
        assert_eq!(shown(years.at_integer(1904).unwrap()), "1904-01-01 00:00:00");
    }

    #[test]
    fn whole_nanoseconds_are_kept() {
        let units = units("nanoseconds since 2000-01-01 00:00:00.5", Some("noleap")).unwrap();
        assert_eq!(units.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, None));
        assert_eq!(units.at_integer(1), Some(946_684_800_500_000_001));
        assert_eq!(units.at_integer(i64::MAX.into()), None);
        assert_eq!(units.to_string(), "0.000000001 s since 2000-01-01T00:00:00.5 (noleap)");
    }

    #[test]
    fn what_a_timestamp_cannot_hold_stays_a_number() {
        for (text, calendar) in [
            ("months since 2000-01-01", None),
            ("days since 2000-01-01", Some("360_day")),
            ("days since 2000-01-01", Some("julian")),
            ("common_years since 2000-01-01", None),
            ("days since 200001", None),
            ("days since 2000-01-01 é", None),
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
