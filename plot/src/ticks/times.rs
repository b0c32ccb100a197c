//! Ticks at round dates and times.

use super::{MOST, Tick, first};
use crate::calendar::{Calendar, DAY};

/// Returns ticks at round dates and times of a calendar, in microseconds since 1970.
pub(super) fn ticks(
    calendar: Calendar,
    low: f64,
    high: f64,
    fits: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    first(time_steps(high - low), |step| times(calendar, low, high, step), fits)
}

/// A step of a time axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Micros(i64),
    Months(i64),
}

impl Step {
    fn micros(self) -> f64 {
        match self {
            Self::Micros(micros) => micros as f64,
            Self::Months(months) => months as f64 * 30.44 * DAY as f64,
        }
    }

    /// The instant from which multiples of the step are counted; a Monday for steps of weeks.
    fn origin(self) -> i64 {
        match self {
            Self::Micros(step) if step % (7 * DAY) == 0 => 4 * DAY,
            _ => 0,
        }
    }

    /// Returns the number of the last multiple up to `at`.
    fn number(self, calendar: Calendar, at: i64) -> i64 {
        match self {
            Self::Micros(step) => at.saturating_sub(self.origin()).div_euclid(step),
            Self::Months(step) => {
                let (year, month, _) = calendar.date(at.div_euclid(DAY));
                (year * 12 + month - 1).div_euclid(step)
            }
        }
    }

    /// Returns the instant of the multiple with this number.
    fn instant(self, calendar: Calendar, number: i64) -> i64 {
        match self {
            Self::Micros(step) => number.saturating_mul(step).saturating_add(self.origin()),
            Self::Months(step) => calendar.first_day(number * step).saturating_mul(DAY),
        }
    }
}

/// Returns steps that divide minutes, hours, days, weeks and years, in ascending order.
fn time_steps(length: f64) -> impl Iterator<Item = Step> {
    let second = 1_000_000;
    let parts = (0..6).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)));
    let of_minute = [1, 2, 5, 10, 15, 30].into_iter();
    let seconds = of_minute.clone().map(move |count| count * second);
    let minutes = of_minute.map(move |count| count * 60 * second);
    let hours = [1, 2, 3, 6, 12].map(|count| count * 3600 * second);
    let days = [1, 2, 7, 14].map(|count| count * DAY);
    let months = [1, 2, 3, 6].into_iter();
    let years = (0..5).flat_map(|power| [12, 24, 60].map(|count| count * 10_i64.pow(power)));
    let micros = parts.chain(seconds).chain(minutes).chain(hours).chain(days).map(Step::Micros);
    let steps = micros.chain(months.chain(years).map(Step::Months));
    steps.skip_while(move |step| length / step.micros() > MOST)
}

fn times(calendar: Calendar, low: f64, high: f64, step: Step) -> Vec<Tick> {
    let (low, high) = (low.ceil() as i64, high.floor() as i64);
    let from = step.number(calendar, low);
    let instants = (from..=from + MOST as i64 + 1).map(|number| step.instant(calendar, number));
    let mut instants: Vec<i64> = instants.filter(|at| (low..=high).contains(at)).collect();
    instants.dedup(); // equal where multiples saturate at the ends of `i64`
    let has_midnight = instants.iter().any(|at| at.rem_euclid(DAY) == 0);
    let tick = |(index, at): (usize, &i64)| Tick {
        at: *at as f64,
        label: label(calendar, *at, step, index == 0 && !has_midnight),
    };
    instants.iter().enumerate().map(tick).collect()
}

/// Formats an instant as the label of a tick: a date at midnight, otherwise a time. `with_date` puts
/// the date before the time.
fn label(calendar: Calendar, at: i64, step: Step, with_date: bool) -> String {
    let (year, month, day) = calendar.date(at.div_euclid(DAY));
    let micros = at.rem_euclid(DAY);
    let (hour, minute) = (micros / 3_600_000_000, micros / 60_000_000 % 60);
    let (second, part) = (micros / 1_000_000 % 60, micros % 1_000_000);
    let time = match step {
        Step::Months(months) if months % 12 == 0 => return format!("{year}"),
        Step::Months(_) => return format!("{year}-{month:02}"),
        Step::Micros(step) if step % 60_000_000 == 0 => format!("{hour:02}:{minute:02}"),
        Step::Micros(step) if step % 1_000_000 == 0 => {
            format!("{hour:02}:{minute:02}:{second:02}")
        }
        Step::Micros(_) => format!("{hour:02}:{minute:02}:{second:02}.{part:06}"),
    };
    match micros {
        0 => format!("{year}-{month:02}-{day:02}"),
        _ if with_date => format!("{year}-{month:02}-{day:02} {time}"),
        _ => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Values;
    use crate::ticks::Ruler;
    use crate::ticks::tests::labels;

    fn of_times(from: &str, to: &str, most: usize) -> Vec<String> {
        use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
        let micros = |text| (string_to_timestamp_nanos(text).unwrap() / 1000) as f64;
        labels(&Values::Times(Calendar::Gregorian), Ruler::Linear, (micros(from), micros(to)), most)
    }

    #[test]
    fn times_are_round() {
        assert_eq!(of_times("2023-11-05", "2026-02-01", 4), ["2024", "2025", "2026"]);
        assert_eq!(
            of_times("2024-01-01", "2024-06-15", 6),
            ["2024-01", "2024-02", "2024-03", "2024-04", "2024-05", "2024-06"]
        );
        assert_eq!(
            of_times("2024-01-01", "2024-02-29", 10),
            ["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"]
                .into_iter()
                .chain(["2024-02-05", "2024-02-12", "2024-02-19", "2024-02-26"])
                .collect::<Vec<_>>()
        );
        assert_eq!(
            of_times("2024-02-28T09:00:00", "2024-02-29T13:00:00", 4),
            ["12:00", "2024-02-29", "12:00"]
        );
        assert_eq!(
            of_times("1969-12-31T10:00:00", "1969-12-31T12:00:00", 3),
            ["1969-12-31 10:00", "11:00", "12:00"]
        );
        assert_eq!(
            of_times("2024-01-01T10:00:00", "2024-01-01T10:00:20", 3),
            ["2024-01-01 10:00:00", "10:00:10", "10:00:20"]
        );
        assert_eq!(
            of_times("2024-01-01T10:00:00.1", "2024-01-01T10:00:00.3", 3),
            ["2024-01-01 10:00:00.100000", "10:00:00.200000", "10:00:00.300000"]
        );
    }

    #[test]
    fn other_calendars_have_years_too() {
        for (name, from, to) in
            [("noleap", "1850-06", "1853-02-28"), ("360_day", "1850-02-30", "1853-01-30")]
        {
            let calendar = Calendar::named(name).unwrap();
            let range = (calendar.instant(from).unwrap(), calendar.instant(to).unwrap());
            let years = labels(&Values::Times(calendar), Ruler::Linear, range, 4);
            assert_eq!(years, ["1851", "1852", "1853"], "{name}");
        }
        let calendar = Calendar::named("360_day").unwrap();
        let range = ("1850-02-29", "1850-03-02");
        let range = (calendar.instant(range.0).unwrap(), calendar.instant(range.1).unwrap());
        let days = labels(&Values::Times(calendar), Ruler::Linear, range, 4);
        assert_eq!(days, ["1850-02-29", "1850-02-30", "1850-03-01", "1850-03-02"]);
    }
}
