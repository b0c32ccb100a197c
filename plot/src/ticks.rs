//! The positions and labels of the ticks of an axis.

use crate::calendar::{DAY, date, first_day};
use crate::column::Values;

/// The most ticks that are tried.
const MOST: f64 = 200.0;

/// A position on an axis with its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Returns as many ticks at round values from `low` to `high` as `fits` accepts.
pub(crate) fn ticks(
    values: &Values,
    low: f64,
    high: f64,
    fits: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    match values {
        Values::Numbers => first(number_steps(high - low), |step| numbers(low, high, step), fits),
        Values::Times => first(time_steps(high - low), |step| times(low, high, step), fits),
        Values::Names(names) => {
            let steps = std::iter::successors(Some(1_usize), |step| Some(step + 1));
            first(steps.take(names.len()), |step| every(names, step), fits)
        }
    }
}

/// Returns the ticks of the first step that `fits` accepts.
fn first<S>(
    steps: impl Iterator<Item = S>,
    ticks: impl Fn(S) -> Vec<Tick>,
    fits: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    steps.map(ticks).find(|ticks| fits(ticks)).unwrap_or_default()
}

fn every(names: &[String], step: usize) -> Vec<Tick> {
    let names = names.iter().enumerate().step_by(step);
    names.map(|(at, name)| Tick { at: at as f64, label: name.clone() }).collect()
}

/// The step `digit` times ten to the power of `exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digit: f64,
    exponent: i32,
}

impl Decimal {
    fn value(self) -> f64 {
        self.digit * 10_f64.powi(self.exponent)
    }
}

/// Returns steps of 1, 2 and 5 times powers of ten in ascending order, up to at least the length of the
/// axis.
fn number_steps(length: f64) -> impl Iterator<Item = Decimal> {
    let from = (length / MOST).log10().floor().clamp(-300.0, 300.0) as i32;
    let steps = (from..=from + 4)
        .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| Decimal { digit, exponent }));
    steps.skip_while(move |step| length / step.value() > MOST)
}

fn numbers(low: f64, high: f64, step: Decimal) -> Vec<Tick> {
    let width = step.value();
    let (from, to) = ((low / width).ceil(), (high / width).floor());
    let count = (to - from).clamp(-1.0, MOST) as i64 + 1;
    let largest = low.abs().max(high.abs());
    let tick = |index: i64| {
        let at = (from + index as f64) * width;
        Tick { at: at.clamp(low, high), label: number(at, step.exponent, largest) }
    };
    (0..count).map(tick).collect()
}

/// Formats a number with the digits down to ten to the power of `exponent`. `largest`, the greatest
/// absolute value of the axis, decides with `exponent` on scientific notation.
fn number(value: f64, exponent: i32, largest: f64) -> String {
    let value = if value == 0.0 { 0.0 } else { value }; // no "-0"
    if (1e-4..1e7).contains(&largest) && exponent > -8 {
        return format!("{value:.*}", exponent.min(0).unsigned_abs() as usize);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let of_value = value.abs().log10().floor() as i32;
    format!("{value:.*e}", (of_value - exponent).clamp(0, 15) as usize)
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
    fn number(self, at: i64) -> i64 {
        match self {
            Self::Micros(step) => at.saturating_sub(self.origin()).div_euclid(step),
            Self::Months(step) => {
                let (year, month, _) = date(at.div_euclid(DAY));
                (year * 12 + month - 1).div_euclid(step)
            }
        }
    }

    /// Returns the instant of the multiple with this number.
    fn instant(self, number: i64) -> i64 {
        match self {
            Self::Micros(step) => number.saturating_mul(step).saturating_add(self.origin()),
            Self::Months(step) => first_day(number * step).saturating_mul(DAY),
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

fn times(low: f64, high: f64, step: Step) -> Vec<Tick> {
    let (low, high) = (low.ceil() as i64, high.floor() as i64);
    let from = step.number(low);
    let instants = (from..=from + MOST as i64 + 1).map(|number| step.instant(number));
    let mut instants: Vec<i64> = instants.filter(|at| (low..=high).contains(at)).collect();
    instants.dedup(); // equal where multiples saturate at the ends of `i64`
    let has_midnight = instants.iter().any(|at| at.rem_euclid(DAY) == 0);
    let tick = |(index, at): (usize, &i64)| Tick {
        at: *at as f64,
        label: label(*at, step, index == 0 && !has_midnight),
    };
    instants.iter().enumerate().map(tick).collect()
}

/// Formats an instant as the label of a tick: a date at midnight, otherwise a time. `with_date` puts
/// the date before the time.
fn label(at: i64, step: Step, with_date: bool) -> String {
    let (year, month, day) = date(at.div_euclid(DAY));
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

    fn labels(values: &Values, low: f64, high: f64, most: usize) -> Vec<String> {
        let ticks = ticks(values, low, high, |ticks| ticks.len() <= most);
        assert!(ticks.iter().all(|tick| (low..=high).contains(&tick.at)), "{ticks:?}");
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    fn of_numbers(low: f64, high: f64, most: usize) -> Vec<String> {
        labels(&Values::Numbers, low, high, most)
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(of_numbers(0.0, 10.0, 6), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(of_numbers(-0.31, 0.29, 7), ["-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2"]);
        assert_eq!(of_numbers(273.1, 274.0, 3), ["273.5", "274.0"]);
        assert_eq!(of_numbers(0.0, 3e9, 4), ["0", "1e9", "2e9", "3e9"]);
        assert_eq!(of_numbers(1e-9, 3e-9, 4), ["1e-9", "2e-9", "3e-9"]);
        assert_eq!(of_numbers(-90.0, 90.0, 5), ["-50", "0", "50"]);
        assert_eq!(of_numbers(1.0, 2.0, 0), Vec::<String>::new());
    }

    #[test]
    fn extreme_axes_end() {
        for (low, high) in [(-1e308, 1e308), (1e-320, 2e-320), (1e15, 1e15 + 1.0), (0.0, 1e-300)] {
            assert!(of_numbers(low, high, 9).len() <= 9);
            assert!(labels(&Values::Times, low.max(-9e18), high.min(9e18), 9).len() <= 9);
        }
    }

    fn of_times(from: &str, to: &str, most: usize) -> Vec<String> {
        use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
        let micros = |text| (string_to_timestamp_nanos(text).unwrap() / 1000) as f64;
        labels(&Values::Times, micros(from), micros(to), most)
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
    fn names_are_thinned_out() {
        let names = Values::Names((0..5).map(|at| format!("n{at}")).collect());
        assert_eq!(labels(&names, -0.5, 4.5, 9), ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(labels(&names, -0.5, 4.5, 3), ["n0", "n2", "n4"]);
    }
}
