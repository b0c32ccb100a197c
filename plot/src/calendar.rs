//! Calendars for the ticks of time axes: the proleptic Gregorian one, and those of climate models.

/// The length of a day in microseconds.
pub(crate) const DAY: i64 = 86_400_000_000;

/// The last day of each month of a common year, counted from the day before January.
const MONTHS: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/// A calendar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// The one of SQL.
    #[default]
    Gregorian,
    /// Years of 365 days.
    NoLeap,
    /// Years of 366 days.
    AllLeap,
    /// Months of 30 days.
    Days360,
    /// A leap year every four years.
    Julian,
}

impl Calendar {
    /// Returns the calendar with this name in CF; `None` if timestamps have the calendar, or if it is unknown.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "noleap" | "365_day" => Some(Self::NoLeap),
            "all_leap" | "366_day" => Some(Self::AllLeap),
            "360_day" => Some(Self::Days360),
            "julian" => Some(Self::Julian),
            _ => None,
        }
    }

    /// Returns year, month and day of a day that is counted from 1970-01-01 of the calendar.
    pub(crate) fn date(self, day: i64) -> (i64, i64, i64) {
        if self == Self::Gregorian {
            return date(day);
        }
        let length = match self {
            Self::Days360 => 360.0,
            Self::AllLeap => 366.0,
            Self::Julian => 365.25,
            Self::NoLeap | Self::Gregorian => 365.0,
        };
        // The guess is wrong by a year at most.
        let mut year = 1970 + (day as f64 / length).floor() as i64;
        while self.first_day(12 * year) > day {
            year -= 1;
        }
        while self.first_day(12 * (year + 1)) <= day {
            year += 1;
        }
        let months = (1..12).take_while(|month| self.first_day(12 * year + month) <= day);
        let month = months.count() as i64;
        (year, month + 1, day - self.first_day(12 * year + month) + 1)
    }

    /// Returns the first day of a month, counted from 1970-01-01. Month 0 is January of year 0.
    pub(crate) fn first_day(self, month: i64) -> i64 {
        let since_0 = |month: i64| {
            let (year, of_year) = (month.div_euclid(12), month.rem_euclid(12));
            let of_common = MONTHS[of_year as usize];
            match self {
                Self::Gregorian => first_day(month),
                Self::NoLeap => 365 * year + of_common,
                Self::AllLeap => 366 * year + of_common + i64::from(of_year > 1),
                Self::Days360 => 30 * month,
                Self::Julian => {
                    let is_leap = year.rem_euclid(4) == 0;
                    let leaps = (year + 3).div_euclid(4);
                    365 * year + leaps + of_common + i64::from(is_leap && of_year > 1)
                }
            }
        };
        since_0(month) - since_0(12 * 1970)
    }

    /// Returns the date of an instant in microseconds since 1970, with the time if it is not midnight.
    pub(crate) fn text(self, micros: f64) -> String {
        let micros = micros.floor() as i64;
        let (year, month, day) = self.date(micros.div_euclid(DAY));
        let seconds = micros.rem_euclid(DAY) / 1_000_000;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match (seconds, second) {
            (0, _) => format!("{year}-{month:02}-{day:02}"),
            (_, 0) => format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}"),
            _ => format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
        }
    }

    /// Parses a date such as `1850`, `1850-01`, `1850-1-1` or `1850-01-01 06:00:00` to microseconds since 1970.
    pub(crate) fn instant(self, text: &str) -> Option<f64> {
        let text = text.trim().trim_end_matches("UTC").trim_end_matches('Z').trim_end();
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
        let (is_before, date) = date.strip_prefix('-').map_or((false, date), |rest| (true, rest));
        let whole = |text: &str| text.parse::<u32>().ok().map(i64::from);
        let numbers: Vec<i64> = date.split('-').map(whole).collect::<Option<_>>()?;
        let (year, month, day) = match numbers[..] {
            [year] => (year, 1, 1),
            [year, month] => (year, month, 1),
            [year, month, day] => (year, month, day),
            _ => return None,
        };
        let year = if is_before { -year } else { year };
        if year.abs() > 250_000 || !(1..=12).contains(&month) {
            return None;
        }
        let first = self.first_day(12 * year + month - 1);
        if !(1..=self.first_day(12 * year + month) - first).contains(&day) {
            return None;
        }
        let mut seconds = 0.0;
        for (part, (unit, limit)) in
            time.trim().split(':').zip([(3600.0, 24.0), (60.0, 60.0), (1.0, 61.0)])
        {
            let part = if part.is_empty() { 0.0 } else { part.parse::<f64>().ok()? };
            seconds += unit * Some(part).filter(|part| (0.0..limit).contains(part))?;
        }
        Some((first + day - 1) as f64 * DAY as f64 + seconds * 1e6)
    }
}

/// Returns year, month and day of the Gregorian calendar.
///
/// Years begin in March here, so that a leap day is the last day of its year. Any 400 years in a row
/// have the same number of days.
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468; // since 0000-03-01
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_month)
}

/// Returns the first day of a month of the Gregorian calendar.
fn first_day(month: i64) -> i64 {
    let march_based = month - 2;
    let (year, month) = (march_based.div_euclid(12), march_based.rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5;
    era * 146_097 + day - 719_468
}

#[cfg(test)]
mod tests {
    use arrow::temporal_conversions::date32_to_datetime;

    use super::*;

    #[test]
    fn days_are_those_of_arrow() {
        let calendar = Calendar::Gregorian;
        for day in (-719_000..800_000).step_by(17).chain(-800..800) {
            let (year, month, of_month) = calendar.date(day);
            let expected = date32_to_datetime(day as i32).unwrap().format("%Y-%-m-%-d");
            assert_eq!(
                format!("{year:04}-{month}-{of_month}"),
                expected.to_string().replace('+', "")
            );
            assert_eq!(calendar.first_day(year * 12 + month - 1) + of_month - 1, day);
        }
    }

    /// Counts the days of each calendar one by one.
    #[test]
    fn calendars_of_models_count_their_own_days() {
        let length = |calendar: Calendar, year: i64, month: i64| match (calendar, month) {
            (Calendar::Days360, _) => 30,
            (Calendar::AllLeap, 2) => 29,
            (Calendar::Julian, 2) if year.rem_euclid(4) == 0 => 29,
            (_, 2) => 28,
            (_, 4 | 6 | 9 | 11) => 30,
            _ => 31,
        };
        for name in ["noleap", "366_day", "360_day", "julian"] {
            let calendar = Calendar::named(name).unwrap();
            let mut day = calendar.first_day(12 * -9);
            for (year, month) in (-9..2030).flat_map(|year| (1..=12).map(move |it| (year, it))) {
                for of_month in 1..=length(calendar, year, month) {
                    assert_eq!(calendar.date(day), (year, month, of_month), "{name}");
                    day += 1;
                }
            }
            assert_eq!(calendar.date(0), (1970, 1, 1));
        }
        assert_eq!(Calendar::named("standard"), None);
    }

    #[test]
    fn dates_are_parsed() {
        let days =
            |calendar: Calendar, text: &str| calendar.instant(text).map(|at| at / DAY as f64);
        assert_eq!(days(Calendar::Gregorian, "1970-01-02 06:00:00"), Some(1.25));
        assert_eq!(days(Calendar::Gregorian, "1970-01-02T06:00Z"), Some(1.25));
        assert_eq!(days(Calendar::Gregorian, "1971"), Some(365.0));
        assert_eq!(days(Calendar::Days360, "1970-02-30"), Some(59.0));
        for text in ["", "x", "1970-13", "1970-02-30", "1970-1-1 25:00", "99999999999", "1-2-3-4"] {
            assert_eq!(days(Calendar::Gregorian, text), None, "{text}");
        }
    }
}
