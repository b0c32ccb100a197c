//! The calendars of the CF conventions, in whole numbers for all years.
//!
//! Days are counted from 1970-01-01. `julian` and the `standard` calendar name the same days as the Gregorian one, with other
//! dates: their day 0 is that of SQL. The calendars of models have days of their own, and day 0 is their 1970-01-01.
//!
//! Years are counted with a year 0. The Gregorian arithmetic is that of Howard Hinnant,
//! <https://howardhinnant.github.io/date_algorithms.html>: a year begins in March, so that a leap day is its last one.

use std::fmt;

/// A calendar of the CF conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Calendar {
    /// `standard`, `gregorian`: Julian before 1582-10-15, and Gregorian since.
    Mixed,
    /// `proleptic_gregorian`: Gregorian for all dates, as in SQL.
    Proleptic,
    /// `julian`: a leap year every four years.
    Julian,
    /// `noleap`, `365_day`: no year has a 29th of February.
    NoLeap,
    /// `all_leap`, `366_day`: every year has a 29th of February.
    AllLeap,
    /// `360_day`: every month has 30 days.
    Days360,
}

/// A date of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarDate {
    /// The year; the year before 1 is 0.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
}

impl fmt::Display for CalendarDate {
    /// Shows the date as SQL does: `0850-01-31`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{:02}-{:02}", self.year.unsigned_abs(), self.month, self.day)
    }
}

/// The first day of the Gregorian calendar.
const REFORM: CalendarDate = CalendarDate { year: 1582, month: 10, day: 15 };
/// The day before [`REFORM`].
const LAST_JULIAN: CalendarDate = CalendarDate { year: 1582, month: 10, day: 4 };
/// [`REFORM`], in days since 1970.
pub(super) const REFORM_DAY: i64 = -141_427;

/// The greatest year, before and after 0. Days of all its dates fit in 64 bits with room to add some.
const MOST_YEARS: i64 = 1 << 50;

/// The days before each month of a common year.
const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Calendar {
    /// Returns the calendar with this name in CF, in any case; `None` for other names. Without a name, times are `standard`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "" | "standard" | "gregorian" => Self::Mixed,
            "proleptic_gregorian" => Self::Proleptic,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Days360,
            _ => return None,
        })
    }

    /// Returns the name in CF.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "standard",
            Self::Proleptic => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Days360 => "360_day",
        }
    }

    /// Whether the times of the calendar can be timestamps: every date of it is one of SQL, or every day of it is.
    pub fn has_timestamps(self) -> bool {
        matches!(self, Self::Mixed | Self::Proleptic | Self::NoLeap)
    }

    /// Returns the number of a day since 1970-01-01; `None` if the calendar has no such date.
    pub fn day(self, date: CalendarDate) -> Option<i64> {
        let CalendarDate { year, month, day } = date;
        if self == Self::Mixed {
            let of = if date < REFORM { Self::Julian } else { Self::Proleptic };
            return of.day(date).filter(|_| date <= LAST_JULIAN || date >= REFORM);
        }
        let is_known = (1..=12).contains(&month) && (-MOST_YEARS..=MOST_YEARS).contains(&year);
        if !is_known || !(1..=self.days_in_month(year, month)).contains(&day) {
            return None;
        }
        Some(self.first_day(year, month) + day - 1)
    }

    /// Returns the date of a day since 1970-01-01; `None` if it is farther away than any time.
    pub fn date(self, day: i64) -> Option<CalendarDate> {
        if !(-300 * MOST_YEARS..=300 * MOST_YEARS).contains(&day) {
            return None;
        }
        let (year, of_year) = match self {
            Self::Mixed if day < REFORM_DAY => return Self::Julian.date(day),
            Self::Mixed | Self::Proleptic => return Some(gregorian(day)),
            Self::Julian => return Some(julian(day)),
            Self::NoLeap => (day.div_euclid(365), day.rem_euclid(365)),
            Self::AllLeap => (day.div_euclid(366), day.rem_euclid(366)),
            Self::Days360 => (day.div_euclid(360), day.rem_euclid(360)),
        };
        let year = year + 1970;
        let is_before = |month: &i64| self.before_month(year, *month) <= of_year;
        let month = (2..=12).take_while(is_before).count() as i64 + 1;
        Some(CalendarDate { year, month, day: of_year - self.before_month(year, month) + 1 })
    }

    /// Returns the last day of a month, from 1 to 12.
    fn days_in_month(self, year: i64, month: i64) -> i64 {
        match (self, month) {
            (Self::Days360, _) => 30,
            (_, 2) => 28 + i64::from(self.is_leap(year)),
            (_, 4 | 6 | 9 | 11) => 30,
            _ => 31,
        }
    }

    fn is_leap(self, year: i64) -> bool {
        let is_julian = match self {
            Self::NoLeap | Self::Days360 => return false,
            Self::AllLeap => return true,
            Self::Julian => true,
            Self::Mixed => year < REFORM.year,
            Self::Proleptic => false,
        };
        year.rem_euclid(4) == 0
            && (is_julian || year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
    }

    /// Returns the day of the first day of a month.
    fn first_day(self, year: i64, month: i64) -> i64 {
        let since = |days: i64| (year - 1970) * days + self.before_month(year, month);
        match self {
            Self::Mixed | Self::Proleptic => first_of_gregorian(year, month),
            Self::Julian => first_of_julian(year, month),
            Self::NoLeap => since(365),
            Self::AllLeap => since(366),
            Self::Days360 => since(360),
        }
    }

    /// Returns the days of a year before a month.
    pub(super) fn before_month(self, year: i64, month: i64) -> i64 {
        match self {
            Self::Days360 => 30 * (month - 1),
            _ => {
                BEFORE[(month - 1).rem_euclid(12) as usize]
                    + i64::from(month > 2 && self.is_leap(year))
            }
        }
    }
}

/// The days from the 1st of March of the year 0 to 1970-01-01.
const GREGORIAN_BEFORE_1970: i64 = 719_468;
/// As [`GREGORIAN_BEFORE_1970`], from the Julian 1st of March.
const JULIAN_BEFORE_1970: i64 = 719_470;

/// Returns a year that begins in March, and the days of it before the first day of a month.
fn from_march(year: i64, month: i64) -> (i64, i64) {
    let of_year = (month - 3).rem_euclid(12);
    (year - i64::from(month < 3), (153 * of_year + 2) / 5)
}

/// Returns the date of a day of a year that begins in March.
fn date_from_march(year: i64, of_year: i64) -> CalendarDate {
    // From March on, months have 31, 30, 31, 30 and 31 days, and again.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    CalendarDate { year: year + i64::from(month < 3), month, day }
}

fn first_of_gregorian(year: i64, month: i64) -> i64 {
    let (year, days) = from_march(year, month);
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + days
        - GREGORIAN_BEFORE_1970
}

fn first_of_julian(year: i64, month: i64) -> i64 {
    let (year, days) = from_march(year, month);
    365 * year + year.div_euclid(4) + days - JULIAN_BEFORE_1970
}

fn gregorian(day: i64) -> CalendarDate {
    let day = day + GREGORIAN_BEFORE_1970;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    date_from_march(era * 400 + year, day - (365 * year + year / 4 - year / 100))
}

fn julian(day: i64) -> CalendarDate {
    let day = day + JULIAN_BEFORE_1970;
    let (era, day) = (day.div_euclid(1_461), day.rem_euclid(1_461));
    let year = (day - day / 1_460) / 365;
    date_from_march(era * 4 + year, day - 365 * year)
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::*;

    const ALL: [Calendar; 6] = [
        Calendar::Mixed,
        Calendar::Proleptic,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ];

    fn date(year: i64, month: i64, day: i64) -> CalendarDate {
        CalendarDate { year, month, day }
    }

    /// Counts the days of each calendar one by one.
    #[test]
    fn every_day_has_the_date_after_the_one_before() {
        for calendar in ALL {
            let mut day = calendar.day(date(-4_800, 1, 1)).unwrap();
            for (year, month) in (-4_800..2_420).flat_map(|year| (1..=12).map(move |it| (year, it)))
            {
                for of_month in 1..=32 {
                    let date = date(year, month, of_month);
                    let Some(found) = calendar.day(date) else { continue };
                    assert_eq!((found, calendar.date(day)), (day, Some(date)), "{calendar:?}");
                    day += 1;
                }
            }
        }
    }

    #[test]
    fn dates_of_sql_are_those_of_chrono() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for day in (-1_000_000..1_000_000).step_by(7) {
            let of_chrono = epoch + chrono::TimeDelta::days(day);
            let (month, of_month) = (of_chrono.month().into(), of_chrono.day().into());
            let found = Calendar::Proleptic.date(day);
            assert_eq!(found, Some(date(of_chrono.year().into(), month, of_month)));
        }
        assert_eq!(Calendar::Proleptic.day(REFORM), Some(REFORM_DAY));
        assert_eq!(Calendar::Mixed.day(LAST_JULIAN), Some(REFORM_DAY - 1));
    }

    #[test]
    fn dates_that_a_calendar_lacks_have_no_day() {
        for (calendar, lacks) in [
            (Calendar::Mixed, date(1582, 10, 10)),
            (Calendar::Mixed, date(1700, 2, 29)),
            (Calendar::Proleptic, date(1500, 2, 29)),
            (Calendar::NoLeap, date(2000, 2, 29)),
            (Calendar::AllLeap, date(2000, 2, 30)),
            (Calendar::Days360, date(2000, 1, 31)),
            (Calendar::Julian, date(2001, 2, 29)),
            (Calendar::Julian, date(i64::MAX, 2, 1)),
            (Calendar::NoLeap, date(2000, 0, 1)),
            (Calendar::NoLeap, date(2000, i64::MIN, 1)),
        ] {
            assert_eq!(calendar.day(lacks), None, "{calendar:?} {lacks:?}");
        }
        for calendar in ALL {
            assert_eq!((calendar.date(i64::MAX), calendar.date(i64::MIN)), (None, None));
            assert_eq!(Calendar::from_name(calendar.name()), Some(calendar));
        }
        assert_eq!(Calendar::from_name("none"), None);
    }
}
