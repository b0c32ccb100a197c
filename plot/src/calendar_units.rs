//! Numbers that count time in a calendar that timestamps do not have.

use crate::calendar::{Calendar, DAY};

/// The meaning of numbers such as `days since 1850-01-01` in a calendar without leap days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalendarUnits {
    pub(crate) calendar: Calendar,
    /// Microseconds per unit.
    unit: f64,
    /// Microseconds since 1970-01-01 of the calendar.
    epoch: f64,
}

impl CalendarUnits {
    /// Parses the attributes `units` and `calendar` of CF. `None` if the calendar is the one of timestamps, or one of both is
    /// unknown.
    pub fn parse(units: &str, calendar: &str) -> Option<Self> {
        let calendar = Calendar::named(calendar)?;
        let (unit, reference) = units.trim().split_once(" since ")?;
        let unit = match unit.trim().to_ascii_lowercase().trim_end_matches('s') {
            "d" | "day" => DAY as f64,
            "h" | "hr" | "hour" => 3.6e9,
            "min" | "minute" => 6e7,
            "sec" | "second" | "" => 1e6,
            _ => return None,
        };
        Some(Self { calendar, unit, epoch: calendar.instant(reference)? })
    }

    /// Returns microseconds since 1970; NaN for times that no axis can show.
    pub(crate) fn micros(self, number: f64) -> f64 {
        let micros = self.epoch + number * self.unit;
        if micros.abs() < 9e18 { micros } else { f64::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_become_dates() {
        let date = |units: &str, calendar: &str, number: f64| {
            let units = CalendarUnits::parse(units, calendar)?;
            Some(units.calendar.date((units.micros(number) / DAY as f64).floor() as i64))
        };
        assert_eq!(date("days since 1850-01-01", "noleap", 59.0), Some((1850, 3, 1)));
        assert_eq!(
            date("days since 1850-01-01", "noleap", 65.0 * 365.0 - 0.5),
            Some((1914, 12, 31))
        );
        assert_eq!(date("hours since 2000-02-30 12:00", "360_day", 13.0), Some((2000, 3, 1)));
        for (units, calendar) in [
            ("days since 1850-01-01", "standard"),
            ("months since 1850-01-01", "noleap"),
            ("days since yesterday", "noleap"),
            ("days", "noleap"),
        ] {
            assert_eq!(date(units, calendar, 1.0), None, "{units}");
        }
        let units = CalendarUnits::parse("days since 1-1-1", "julian").unwrap();
        assert!(units.micros(f64::MAX).is_nan() && units.micros(f64::NAN).is_nan());
    }
}
