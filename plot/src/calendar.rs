//! The proleptic Gregorian calendar for the ticks of time axes.

/// The length of a day in microseconds.
pub(crate) const DAY: i64 = 86_400_000_000;

/// Returns year, month and day of a day that is counted from 1970-01-01.
///
/// Years begin in March here, so that a leap day is the last day of its year. Any 400 years in a row
/// have the same number of days.
pub(crate) fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468; // since 0000-03-01
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_month)
}

/// Returns the first day of a month, counted from 1970-01-01. Month 0 is January of year 0.
pub(crate) fn first_day(month: i64) -> i64 {
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
        for day in (-719_000..800_000).step_by(17).chain(-800..800) {
            let (year, month, of_month) = date(day);
            let expected = date32_to_datetime(day as i32).unwrap().format("%Y-%-m-%-d");
            assert_eq!(
                format!("{year:04}-{month}-{of_month}"),
                expected.to_string().replace('+', "")
            );
            assert_eq!(first_day(year * 12 + month - 1) + of_month - 1, day);
        }
    }
}
