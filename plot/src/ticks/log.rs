//! Ticks of a logarithmic axis.

use super::numbers::{self, number};
use super::{Tick, first};

/// The ticks within a decade, and the step in decades.
const STEPS: [(&[f64], i32); 9] = [
    (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], 1),
    (&[1.0, 2.0, 5.0], 1),
    (&[1.0, 3.0], 1),
    (&[1.0], 1),
    (&[1.0], 2),
    (&[1.0], 5),
    (&[1.0], 20),
    (&[1.0], 50),
    (&[1.0], 200),
];

/// Returns ticks at powers of ten, and between them if there is room. A range within a decade may have linear ticks.
pub(super) fn ticks(low: f64, high: f64, fits: impl Fn(&[Tick]) -> bool) -> Vec<Tick> {
    let found = first(STEPS.into_iter(), |step| decades(low, high, step), &fits);
    if found.len() > 1 { found } else { numbers::ticks(low, high, false, fits) }
}

fn decades(low: f64, high: f64, (digits, step): (&[f64], i32)) -> Vec<Tick> {
    let (from, to) = (low.log10().floor() as i32, high.log10().floor() as i32);
    let exponents = (from..=to).filter(|exponent| exponent.rem_euclid(step) == 0);
    let values = exponents.flat_map(|exponent| {
        digits.iter().map(move |digit| (digit * 10_f64.powi(exponent), exponent))
    });
    let inside = values.filter(|(at, _)| (low..=high).contains(at));
    inside.map(|(at, exponent)| Tick { at, label: number(at, exponent, at) }).collect()
}

#[cfg(test)]
mod tests {
    use crate::column::Values;
    use crate::ticks::Ruler;
    use crate::ticks::tests::labels;

    #[test]
    fn decades_have_ticks() {
        let log = |low, high, most| labels(&Values::Numbers, Ruler::Log, (low, high), most);
        assert_eq!(log(0.5, 2000.0, 5), ["1", "10", "100", "1000"]);
        assert_eq!(log(0.009, 1.2, 7), ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]);
        assert_eq!(log(1e-12, 1e9, 5), ["1e-10", "1e-5", "1", "100000"]);
        assert_eq!(log(21.0, 28.0, 5), ["22", "24", "26", "28"]);
        for (low, high) in [(5e-324, 1.7e308), (1.0, 1.0 + 1e-12), (1e-300, 2e-300)] {
            assert!(log(low, high, 9).len() <= 9);
        }
    }
}
