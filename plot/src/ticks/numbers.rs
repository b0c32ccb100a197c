//! Ticks at round numbers.

use super::{MOST, Tick, first};

/// Returns ticks at multiples of 1, 2 and 5 times powers of ten, or at degrees that divide a circle.
pub(super) fn ticks(
    low: f64,
    high: f64,
    is_degrees: bool,
    fits: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    let all = number_steps(high - low);
    // Steps of 10 degrees and more divide a right angle.
    let round = all.filter(|step| !is_degrees || step.value() < 9.0);
    let large = [1.0, 1.5, 3.0, 4.5, 9.0].map(|digit| Decimal { digit, exponent: 1 });
    let large = large.into_iter().filter(|step| is_degrees && (high - low) / step.value() <= MOST);
    first(round.chain(large), |step| numbers(low, high, step), fits)
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
pub(super) fn number(value: f64, exponent: i32, largest: f64) -> String {
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

#[cfg(test)]
mod tests {
    use crate::calendar::Calendar;
    use crate::column::Values;
    use crate::ticks::Ruler;
    use crate::ticks::tests::labels;

    fn of_numbers(low: f64, high: f64, most: usize) -> Vec<String> {
        labels(&Values::Numbers, Ruler::Linear, (low, high), most)
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
        let times = Values::Times(Calendar::Gregorian);
        for (low, high) in [(-1e308, 1e308), (1e-320, 2e-320), (1e15, 1e15 + 1.0), (0.0, 1e-300)] {
            assert!(of_numbers(low, high, 9).len() <= 9);
            assert!(labels(&times, Ruler::Linear, (low.max(-9e18), high.min(9e18)), 9).len() <= 9);
        }
    }

    #[test]
    fn degrees_divide_a_circle() {
        let degrees = |low, high, most| labels(&Values::Numbers, Ruler::Degrees, (low, high), most);
        assert_eq!(degrees(-180.0, 180.0, 5), ["-180", "-90", "0", "90", "180"]);
        assert_eq!(degrees(-90.0, 90.0, 8), ["-90", "-60", "-30", "0", "30", "60", "90"]);
        assert_eq!(degrees(0.0, 32.0, 3), ["0", "15", "30"]);
        assert_eq!(degrees(5.0, 12.0, 4), ["6", "8", "10", "12"]);
        assert_eq!(degrees(5.0, 5.5, 4), ["5.0", "5.2", "5.4"]);
    }
}
