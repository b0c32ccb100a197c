//! [`CalendarTime`]: a date and a time of day in a calendar, its parts, and its beginning of the month.

use std::fmt;

use super::calendar::{Calendar, CalendarDate};
use super::time_reference::{DAY, HOUR, MINUTE, SECOND};

/// A date and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarTime {
    calendar: Calendar,
    date: CalendarDate,
    /// Nanoseconds since midnight.
    of_day: i64,
}

/// A part of a time, as `date_part` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimePart {
    /// The year. In calendars that were in use, the year before 1 is -1.
    Year,
    /// The quarter, from 1.
    Quarter,
    /// The month, from 1.
    Month,
    /// The day of the month, from 1.
    Day,
    /// The hour.
    Hour,
    /// The minute.
    Minute,
    /// The second.
    Second,
    /// Milliseconds of the minute.
    Millisecond,
    /// Microseconds of the minute.
    Microsecond,
    /// Nanoseconds of the minute.
    Nanosecond,
    /// The day of the week; Sunday is 0.
    DayOfWeek,
    /// The day of the week; Monday is 1, and Sunday 7.
    IsoDayOfWeek,
    /// The day of the year, from 1.
    DayOfYear,
}

impl TimePart {
    /// Returns the part with this name in SQL, in any case, singular or plural. `None` for other names, and for weeks:
    /// calendars of models do not have them.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim_matches(['\'', '"']).to_ascii_lowercase();
        Some(match name.as_str() {
            "year" | "years" | "y" | "yr" | "yrs" => Self::Year,
            "quarter" | "qtr" => Self::Quarter,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "day" | "days" | "d" => Self::Day,
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Hour,
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Minute,
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Second,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Self::Microsecond,
            "nanosecond" | "nanoseconds" | "ns" | "nsec" | "nsecs" => Self::Nanosecond,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            _ => return None,
        })
    }
}

impl CalendarTime {
    /// Returns the time of nanoseconds since 1970 of the calendar; `None` if it is farther away than any time.
    pub(super) fn from_instant(instant: i128, calendar: Calendar) -> Option<Self> {
        let day = i64::try_from(instant.div_euclid(DAY.into())).ok()?;
        let of_day = i64::try_from(instant.rem_euclid(DAY.into())).ok()?;
        // A year of SQL has 32 bits.
        let date = calendar.date(day).filter(|it| i32::try_from(it.year - 1).is_ok())?;
        Some(Self { calendar, date, of_day })
    }

    /// Returns nanoseconds since 1970 of the calendar; `None` if the calendar lacks the date.
    pub(super) fn instant(self) -> Option<i128> {
        let day = self.calendar.day(self.date)?;
        Some(i128::from(day) * i128::from(DAY) + i128::from(self.of_day))
    }

    pub(super) fn calendar(self) -> Calendar {
        self.calendar
    }

    /// Returns the date. Calendars that were in use have no year 0, and 1 follows -1 in them.
    pub fn date(self) -> CalendarDate {
        let is_historical = matches!(self.calendar, Calendar::Mixed | Calendar::Julian);
        let shift = i64::from(is_historical && self.date.year <= 0);
        CalendarDate { year: self.date.year - shift, ..self.date }
    }

    /// Returns the nanoseconds since midnight.
    pub fn nanoseconds(self) -> i64 {
        self.of_day
    }

    /// Returns a part of the time.
    pub fn part(self, part: TimePart) -> i64 {
        let of_minute = self.of_day % MINUTE;
        match part {
            TimePart::Year => self.date().year,
            TimePart::Quarter => (self.date.month - 1) / 3 + 1,
            TimePart::Month => self.date.month,
            TimePart::Day => self.date.day,
            TimePart::Hour => self.of_day / HOUR,
            TimePart::Minute => self.of_day % HOUR / MINUTE,
            TimePart::Second => of_minute / SECOND,
            TimePart::Millisecond => of_minute / 1_000_000,
            TimePart::Microsecond => of_minute / 1_000,
            TimePart::Nanosecond => of_minute,
            TimePart::DayOfWeek => self.since_sunday(),
            TimePart::IsoDayOfWeek => (self.since_sunday() - 1).rem_euclid(7) + 1,
            // Also after the days that the standard calendar left out in 1582, as in cftime.
            TimePart::DayOfYear => {
                self.calendar.before_month(self.date.year, self.date.month) + self.date.day
            }
        }
    }

    /// Returns the days since the last Sunday. Calendars of models have the weeks of cftime.
    fn since_sunday(self) -> i64 {
        let of_1970 = match self.calendar {
            Calendar::AllLeap => 0,
            Calendar::Days360 => 3,
            Calendar::Mixed | Calendar::Proleptic | Calendar::Julian | Calendar::NoLeap => 4,
        };
        (self.calendar.day(self.date).unwrap_or_default() + of_1970).rem_euclid(7)
    }

    /// Returns the beginning of the part in which the time is, as `date_trunc` does; `None` for the days of weeks and years.
    pub fn truncated(self, part: TimePart) -> Option<Self> {
        let CalendarDate { year, month, .. } = self.date;
        let midnight =
            |year, month, day| Self { date: CalendarDate { year, month, day }, of_day: 0, ..self };
        let fine = |unit: i64| Self { of_day: self.of_day - self.of_day % unit, ..self };
        Some(match part {
            TimePart::Year => midnight(year, 1, 1),
            TimePart::Quarter => midnight(year, (month - 1) / 3 * 3 + 1, 1),
            TimePart::Month => midnight(year, month, 1),
            TimePart::Day => midnight(year, month, self.date.day),
            TimePart::Hour => fine(HOUR),
            TimePart::Minute => fine(MINUTE),
            TimePart::Second => fine(SECOND),
            TimePart::Millisecond => fine(1_000_000),
            TimePart::Microsecond => fine(1_000),
            TimePart::Nanosecond => self,
            TimePart::DayOfWeek | TimePart::IsoDayOfWeek | TimePart::DayOfYear => return None,
        })
    }

    /// Writes the time in a format of `to_char`, such as `%Y-%m-%d`.
    ///
    /// # Errors
    /// The reason, as a sentence, if the format has other parts than numbers, names of months and `%%`.
    pub fn formatted(self, format: &str) -> Result<String, String> {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let CalendarDate { year, month, day } = self.date();
        let of = |part| self.part(part);
        let (hour, minute, second) =
            (of(TimePart::Hour), of(TimePart::Minute), of(TimePart::Second));
        let name = MONTHS[(month - 1).rem_euclid(12) as usize];
        let sign = if year < 0 { "-" } else { "" };
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let kind = rest.next();
            text += &match kind {
                Some('Y') => format!("{sign}{:04}", year.unsigned_abs()),
                Some('y') => format!("{:02}", year.rem_euclid(100)),
                Some('m') => format!("{month:02}"),
                Some('d') => format!("{day:02}"),
                Some('e') => format!("{day:2}"),
                Some('H') => format!("{hour:02}"),
                Some('M') => format!("{minute:02}"),
                Some('S') => format!("{second:02}"),
                Some('f') => format!("{:09}", self.of_day % SECOND),
                Some('j') => format!("{:03}", of(TimePart::DayOfYear)),
                Some('F') => self.date().to_string(),
                Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
                Some('B') => name.to_owned(),
                Some('b') => name[..3].to_owned(),
                Some('%') => "%".to_owned(),
                kind => {
                    let kind = kind.map(String::from).unwrap_or_default();
                    return Err(format!("\"%{kind}\" is no part of a date of this calendar"));
                }
            };
        }
        Ok(text)
    }
}

impl fmt::Display for CalendarTime {
    /// Shows the date, and the time of day unless it is midnight: `2001-02-30`, `2001-02-30T12:00:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.date())?;
        if self.of_day == 0 {
            return Ok(());
        }
        let seconds = self.of_day / SECOND;
        write!(f, "T{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
        match self.of_day % SECOND {
            0 => Ok(()),
            rest if rest % 1_000_000 == 0 => write!(f, ".{:03}", rest / 1_000_000),
            rest if rest % 1_000 == 0 => write!(f, ".{:06}", rest / 1_000),
            rest => write!(f, ".{rest:09}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::counted_times::CountedTimes;
    use super::*;

    /// The dates of `parts.csv` are those of cftime.
    #[test]
    fn parts_are_those_of_cftime() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/calendars/parts.csv");
        let rows = std::fs::read_to_string(path).unwrap();
        for row in rows.lines() {
            let [units, calendar, number, date, dow, doy, month] =
                row.split('|').collect::<Vec<_>>()[..]
            else {
                panic!("{row}")
            };
            let number: f64 = number.parse().unwrap();
            let times = CountedTimes::from_attributes(units, calendar).unwrap();
            let time = times.time(number).unwrap();
            assert_eq!(time.to_string(), date, "{row}");
            assert_eq!(time.part(TimePart::DayOfWeek).to_string(), dow, "{row}");
            assert_eq!(time.part(TimePart::IsoDayOfWeek) % 7, time.part(TimePart::DayOfWeek));
            assert_eq!(time.part(TimePart::DayOfYear).to_string(), doy, "{row}");
            // The parts of the text, without those of a year before 1.
            let (sign, text) = date.strip_prefix('-').map_or((1, date), |text| (-1, text));
            let parts = [TimePart::Year, TimePart::Month, TimePart::Day, TimePart::Hour];
            let mut of_text = text.split(['-', 'T', ':']).map(|it| it.parse::<i64>().unwrap());
            for (at, part) in parts.into_iter().enumerate() {
                let expected = of_text.next().unwrap_or(0) * if at == 0 { sign } else { 1 };
                assert_eq!(time.part(part), expected, "{row} {part:?}");
            }
            let begin = time.truncated(TimePart::Month).unwrap();
            assert_eq!(times.number_of(begin), month.parse().ok(), "{row}");
            // The number, the time and its text are one and the same.
            assert_eq!(times.number_of(time), Some(number), "{row}");
            assert_eq!(times.number(date), Ok(number), "{row}");
        }
        assert!(rows.lines().count() > 1_000);
    }

    #[test]
    fn times_are_truncated_and_formatted() {
        let days = CountedTimes::from_attributes("days since 2000-01-01", "360_day").unwrap();
        let time = days.time(days.number("2001-11-30 13:45:06.789").unwrap()).unwrap();
        for (part, expected) in [
            ("YEAR", "2001-01-01"),
            ("quarter", "2001-10-01"),
            ("month", "2001-11-01"),
            ("day", "2001-11-30"),
            ("hours", "2001-11-30T13:00:00"),
            ("minute", "2001-11-30T13:45:00"),
            ("second", "2001-11-30T13:45:06"),
            ("'ms'", "2001-11-30T13:45:06.789"),
        ] {
            let part = TimePart::from_name(part).unwrap();
            assert_eq!(time.truncated(part).unwrap().to_string(), expected, "{part:?}");
        }
        for (part, expected) in [
            ("quarter", 4),
            ("minute", 45),
            ("second", 6),
            ("millisecond", 6_789),
            ("microsecond", 6_789_000),
            ("nanosecond", 6_789_000_000),
            ("doy", 330),
        ] {
            assert_eq!(time.part(TimePart::from_name(part).unwrap()), expected, "{part}");
        }
        assert_eq!(time.truncated(TimePart::DayOfWeek), None);
        assert_eq!((TimePart::from_name("week"), TimePart::from_name("epoch")), (None, None));
        let shown = time.formatted("%d %B (%b) %Y, %y-%m %F %T %H.%M.%S %j 100%%");
        let expected = "30 November (Nov) 2001, 01-11 2001-11-30 13:45:06 13.45.06 330 100%";
        assert_eq!(shown.as_deref(), Ok(expected));
        assert!(time.formatted("%Q").is_err() && time.formatted("%").is_err());
    }
}
