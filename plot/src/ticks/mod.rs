//! The positions and labels of the ticks of an axis.

mod log;
mod numbers;
mod times;

use crate::column::Values;

/// The most ticks that are tried.
const MOST: f64 = 200.0;

/// A position on an axis with its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// How ticks are spread over an axis of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ruler {
    /// By multiples of 1, 2 and 5.
    #[default]
    Linear,
    /// By powers of ten.
    Log,
    /// By parts of a circle.
    Degrees,
}

/// Returns as many ticks at round values from `low` to `high` as `fits` accepts.
pub(crate) fn ticks(
    values: &Values,
    ruler: Ruler,
    low: f64,
    high: f64,
    fits: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    match (values, ruler) {
        (Values::Numbers, Ruler::Log) => log::ticks(low, high, fits),
        (Values::Numbers, _) => numbers::ticks(low, high, ruler == Ruler::Degrees, fits),
        (Values::Times(calendar), _) => times::ticks(*calendar, low, high, fits),
        (Values::Names(names), _) => {
            let steps = std::iter::successors(Some(1_usize), |step| Some(step + 1));
            first(steps.take(names.len()), |step| every(names, step), fits)
        }
    }
}

/// Returns a number as short as it can be.
pub(crate) fn short(value: f64) -> String {
    let is_usual = value == 0.0 || (1e-4..1e7).contains(&value.abs());
    let value = if value == 0.0 { 0.0 } else { value }; // no "-0"
    if is_usual { value.to_string() } else { format!("{value:e}") }
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the labels of at most `most` ticks.
    pub(crate) fn labels(
        values: &Values,
        ruler: Ruler,
        (low, high): (f64, f64),
        most: usize,
    ) -> Vec<String> {
        let ticks = ticks(values, ruler, low, high, |ticks| ticks.len() <= most);
        assert!(ticks.iter().all(|tick| (low..=high).contains(&tick.at)), "{ticks:?}");
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn names_are_thinned_out() {
        let names = Values::Names((0..5).map(|at| format!("n{at}")).collect());
        assert_eq!(labels(&names, Ruler::Linear, (-0.5, 4.5), 9), ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(labels(&names, Ruler::Linear, (-0.5, 4.5), 3), ["n0", "n2", "n4"]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.5, -0.0, 100.0, 1e15, -2.5e-7].map(short);
        assert_eq!(shown, ["0.5", "0", "100", "1e15", "-2.5e-7"]);
    }
}
