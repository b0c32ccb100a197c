//! An axis: its range of values, and where they are in pixels.

use crate::column::Values;
use crate::error::Result;
use crate::settings::{AxisSettings, Scale};
use crate::ticks::{Ruler, Tick, ticks};

/// The range of values of an axis, with its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) label: String,
    pub(crate) values: Values,
    /// The value at the left or lower end. It may be larger than `high`.
    pub(crate) low: f64,
    /// The value at the right or upper end.
    pub(crate) high: f64,
    pub(crate) scale: Scale,
    /// Whether the values are parts of a circle.
    pub(crate) is_degrees: bool,
}

impl Span {
    /// Returns the axis of a range of data, with the ends and the direction that were asked for. `is_turned` tells
    /// whether such an axis usually runs from high to low.
    ///
    /// # Errors
    /// `Usage` if the limits do not suit the values.
    pub(crate) fn new(
        label: String,
        values: &Values,
        range: (f64, f64),
        settings: &AxisSettings,
        is_turned: bool,
    ) -> Result<Self> {
        let (low, high) = settings.limits.applied(range, values, settings.scale)?;
        let (low, high) = if is_turned == settings.is_inverted { (low, high) } else { (high, low) };
        let values = values.clone();
        Ok(Self { label, values, low, high, scale: settings.scale, is_degrees: false })
    }

    fn ruler(&self) -> Ruler {
        match self.scale {
            Scale::Log => Ruler::Log,
            Scale::Linear if self.is_degrees => Ruler::Degrees,
            Scale::Linear => Ruler::Linear,
        }
    }

    /// Returns the least and the greatest value.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.low.min(self.high), self.low.max(self.high))
    }
}

/// An axis in pixels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) ticks: Vec<Tick>,
}

impl Axis {
    /// Makes an axis from one pixel to another, with as many ticks as `fits` accepts. `fits` takes
    /// the pixels between two neighbouring ticks, and the labels of both.
    pub(crate) fn new(
        span: &Span,
        from: f64,
        to: f64,
        fits: impl Fn(f64, &str, &str) -> bool,
    ) -> Self {
        let Span { low, high, scale, .. } = *span;
        let mut axis = Self { low, high, scale, from, to, ticks: vec![] };
        let all_fit = |ticks: &[Tick]| {
            ticks.windows(2).all(|pair| {
                let apart = (axis.at(pair[0].at) - axis.at(pair[1].at)).abs();
                fits(apart, &pair[0].label, &pair[1].label)
            })
        };
        let (least, greatest) = span.range();
        axis.ticks = ticks(&span.values, span.ruler(), least, greatest, all_fit);
        axis
    }

    /// Returns the place of a value on the scale of the axis; NaN if it has none.
    pub(crate) fn place(&self, value: f64) -> f64 {
        self.scale.place(value)
    }

    /// Returns how far along the axis a value is: 0 at the low end, 1 at the high end. NaN if the value has no place.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let [value, low, high] = [value, self.low, self.high].map(|it| self.scale.place(it));
        // Halves, because the difference of two huge numbers would be infinite.
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    }

    /// Returns the pixel of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        // Pixels far outside the picture are equal for a painter, and stay small enough for it.
        let share = self.share(value).clamp(-1e4, 1e4);
        self.from + share * (self.to - self.from)
    }

    /// Whether a value is between the ends.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (0.0..=1.0).contains(&self.share(value))
    }
}

/// Widens a range at both ends by the share `by` of its length. A single value becomes a range too.
pub(crate) fn widened((low, high): (f64, f64), by: f64, scale: Scale) -> (f64, f64) {
    let (low, high) = (scale.place(low), scale.place(high));
    let pad = (high / 2.0 - low / 2.0) * 2.0 * by;
    let pad = if high > low { pad } else { (high.abs() * 0.05).max(0.5) };
    let (low, high) = (low - pad, high + pad);
    (scale.value(low.max(f64::MIN)), scale.value(high.min(f64::MAX)))
}

/// Returns a test whether two ticks of an upright axis are far enough apart.
pub(crate) fn fits_above(scale: f64, values: &Values) -> impl Fn(f64, &str, &str) -> bool + use<> {
    let least = if matches!(values, Values::Names(_)) { 16.0 } else { 34.0 };
    move |apart, _: &str, _: &str| apart >= least * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;

    fn axis(range: (f64, f64), settings: &AxisSettings, is_turned: bool) -> Axis {
        let span = Span::new(String::new(), &Values::Numbers, range, settings, is_turned);
        Axis::new(&span.unwrap(), 100.0, 300.0, |apart, _, _| apart > 20.0)
    }

    #[test]
    fn values_have_places() {
        let plain = axis((0.0, 10.0), &AxisSettings::default(), false);
        assert_eq!([0.0, 2.5, 10.0].map(|it| plain.at(it)), [100.0, 150.0, 300.0]);
        assert!(plain.holds(10.0) && !plain.holds(10.1) && !plain.holds(f64::NAN));
        let log = AxisSettings { scale: Scale::Log, ..AxisSettings::default() };
        let log = axis((0.01, 100.0), &log, false);
        assert!((log.at(1.0) - 200.0).abs() < 1e-9 && (log.at(10.0) - 250.0).abs() < 1e-9);
        assert!(log.at(0.0).is_nan() && log.at(-1.0).is_nan() && !log.holds(0.0));
    }

    #[test]
    fn axes_are_turned_once_or_twice() {
        let inverted = AxisSettings { is_inverted: true, ..AxisSettings::default() };
        for (settings, is_turned, pixel) in [
            (&AxisSettings::default(), false, 100.0),
            (&AxisSettings::default(), true, 300.0),
            (&inverted, false, 300.0),
            (&inverted, true, 100.0),
        ] {
            assert_eq!(axis((0.0, 10.0), settings, is_turned).at(0.0), pixel);
        }
    }

    #[test]
    fn limits_decide_the_ends() {
        let settings =
            AxisSettings { limits: Limits::parse("5..").unwrap(), ..AxisSettings::default() };
        let axis = axis((0.0, 10.0), &settings, false);
        assert_eq!((axis.at(5.0), axis.at(10.0), axis.at(0.0)), (100.0, 300.0, -100.0));
        assert!(axis.at(f64::MAX).abs() < 1e7);
    }

    #[test]
    fn ranges_are_widened_on_their_scale() {
        assert_eq!(widened((0.0, 10.0), 0.1, Scale::Linear), (-1.0, 11.0));
        let (low, high) = widened((1.0, 100.0), 0.5, Scale::Log);
        assert!((low - 0.1).abs() < 1e-9 && (high - 1000.0).abs() < 1e-6);
        for (low, high) in [(f64::MIN, f64::MAX), (5.0, 5.0), (0.0, 0.0)] {
            let (low, high) = widened((low, high), 0.05, Scale::Linear);
            assert!(low < high && low.is_finite() && high.is_finite());
        }
        let (low, high) = widened((f64::MIN_POSITIVE, f64::MAX), 0.05, Scale::Log);
        assert!(0.0 < low && low < high && high.is_finite());
    }
}
