//! [`CountedTimes`]: numbers that count time in a calendar whose dates SQL lacks.

use super::calendar::Calendar;
use super::time_reference::{nanoseconds_in, parse_reference, split_units};

/// The meaning of numbers such as `days since 1850-01-01` in the calendar `360_day`.
///
/// ```
/// use gridfusion_core::array::CountedTimes;
///
/// let days = CountedTimes::from_attributes("days since 1850-01-01", "360_day").unwrap();
/// assert_eq!(days.number("1850-02-30 12:00"), Ok(59.5));
/// assert!(days.number("1850-01-31").is_err());
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
    /// Parses the attributes `units` and `calendar`. `None` if timestamps have the calendar, if one of both is unknown, or if the
    /// calendar lacks the reference.
    pub fn from_attributes(units: &str, calendar: &str) -> Option<Self> {
        let calendar = Calendar::from_name(calendar).filter(|it| !it.has_timestamps())?;
        let (unit, reference) = split_units(units)?;
        let unit = nanoseconds_in(unit, calendar)?;
        let (epoch, calendar) = parse_reference(reference, calendar).ok()?;
        Some(Self { unit, epoch, calendar })
    }

    /// Returns the number that stands for a date, with or without a time: `2001-02-30`, `2001-02-30 12:00`, `2001-02`.
    ///
    /// # Errors
    /// The reason, as a sentence, if the text is no date of the calendar.
    pub fn number(self, text: &str) -> Result<f64, String> {
        let (instant, _) = parse_reference(text.trim(), self.calendar)?;
        let offset = instant - self.epoch;
        let (whole, rest) =
            (offset.div_euclid(self.unit.into()), offset.rem_euclid(self.unit.into()));
        Ok(whole as f64 + rest as f64 / self.unit as f64)
    }
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
            ("days since 2000-01-01", "noleap"),
            ("days since 2000-01-01", "none"),
            ("days since 2000-01-31", "360_day"),
            ("months since 2000-01-01", "julian"),
            ("days", "360_day"),
        ] {
            assert_eq!(CountedTimes::from_attributes(units, calendar), None, "{units} {calendar}");
        }
    }
}
