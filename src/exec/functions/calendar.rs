//! The proleptic Gregorian calendar in whole numbers, for all times that 64 bits of any unit have.
//!
//! A year begins in March here, so that its last day may be the 29th of February. 400 years have 146097 days, see Howard
//! Hinnant, <https://howardhinnant.github.io/date_algorithms.html>.

use arrow::datatypes::TimeUnit;

/// Nanoseconds per day.
pub(super) const DAY: i128 = 86_400 * SECOND;
/// Nanoseconds per second.
pub(super) const SECOND: i128 = 1_000_000_000;
/// Days of 400 years.
const DAYS_OF_400_YEARS: i128 = 146_097;
/// Days from the 1st of March of the year 0 to the 1st of January of 1970.
const DAYS_BEFORE_1970: i128 = 719_468;

/// A month of the calendar, counted from January of the year 0, and a day of it, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MonthDay {
    pub(super) month: i128,
    pub(super) day: i128,
}

/// Returns nanoseconds per unit.
pub(super) fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the month and day of a number of days after 1970-01-01.
pub(super) fn month_of(days: i128) -> MonthDay {
    let days = days + DAYS_BEFORE_1970;
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    // Every 4 years but 100 have a leap day, every 400 again.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // From March on, months have 31, 30, 31, 30 and 31 days, and again.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5;
    MonthDay { month: (era * 400 + year) * 12 + month + 2, day }
}

/// Returns the number of days after 1970-01-01 of the first day of a month.
pub(super) fn first_day_of(month: i128) -> i128 {
    let (year, month) = ((month - 2).div_euclid(12), (month - 2).rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5;
    era * DAYS_OF_400_YEARS + year * 365 + year / 4 - year / 100 + of_year - DAYS_BEFORE_1970
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate};

    use super::*;

    #[test]
    fn months_agree_with_those_of_chrono() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for days in (-1_000_000..1_000_000).step_by(7) {
            let date = epoch + chrono::TimeDelta::days(days);
            let MonthDay { month, day } = month_of(days.into());
            assert_eq!(month.div_euclid(12), date.year().into(), "{date}");
            assert_eq!(month.rem_euclid(12), date.month0().into(), "{date}");
            assert_eq!(day, date.day0().into(), "{date}");
            assert_eq!(first_day_of(month) + day, days.into(), "{date}");
        }
    }
}
