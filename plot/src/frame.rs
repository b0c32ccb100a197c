//! The frame of a plot: its axes with ticks, labels and titles.

use crate::column::Values;
use crate::scene::{AXIS, Anchor, Clip, Font, GRID, Scene};
use crate::ticks::{Tick, ticks};

/// The range of values of an axis, with its label.
#[derive(Debug)]
pub(crate) struct Span<'a> {
    pub(crate) label: String,
    pub(crate) values: &'a Values,
    /// The value at the left or lower end. It may be larger than `high`.
    pub(crate) low: f64,
    /// The value at the right or upper end.
    pub(crate) high: f64,
}

/// An axis in pixels.
#[derive(Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    pub(crate) ticks: Vec<Tick>,
    label: String,
}

impl Axis {
    /// Makes an axis from one pixel to another, with as many ticks as `fits` accepts. `fits` takes
    /// the pixels between two neighbouring ticks, and the labels of both.
    pub(crate) fn new(
        span: Span<'_>,
        from: f64,
        to: f64,
        fits: impl Fn(f64, &str, &str) -> bool,
    ) -> Self {
        let Span { label, values, low, high } = span;
        let mut axis = Self { low, high, from, to, ticks: vec![], label };
        let all_fit = |ticks: &[Tick]| {
            ticks.windows(2).all(|pair| {
                let apart = (axis.at(pair[0].at) - axis.at(pair[1].at)).abs();
                fits(apart, &pair[0].label, &pair[1].label)
            })
        };
        axis.ticks = ticks(values, low.min(high), low.max(high), all_fit);
        axis
    }

    /// Returns how far along the axis a value is: 0 at the low end, 1 at the high end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        // Halves, because the difference of two huge numbers would be infinite.
        (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    /// Returns the pixel of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        self.from + self.share(value) * (self.to - self.from)
    }
}

/// Widens a range at both ends by the share `by` of its length. A single value becomes a range too.
pub(crate) fn widened((low, high): (f64, f64), by: f64) -> (f64, f64) {
    let pad = (high / 2.0 - low / 2.0) * 2.0 * by;
    let pad = if high > low { pad } else { (high.abs() * 0.05).max(0.5) };
    let (low, high) = (low - pad, high + pad);
    (low.max(f64::MIN), high.min(f64::MAX))
}

/// Returns a test whether two ticks of an upright axis are far enough apart.
pub(crate) fn fits_above(scale: f64, values: &Values) -> impl Fn(f64, &str, &str) -> bool + use<> {
    let least = if matches!(values, Values::Names(_)) { 16.0 } else { 34.0 };
    move |apart, _: &str, _: &str| apart >= least * scale
}

/// The two axes of a plot.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    scale: f64,
}

// Sizes in pixels at scale 1.
const MARGIN: f64 = 16.0;
const TICK: f64 = 5.0;
const LABEL: f64 = 13.0;
const TITLE: f64 = 14.0;
const GAP: f64 = 7.0;

impl Frame {
    /// Makes a frame that leaves room above and to the right, in pixels.
    pub(crate) fn new(
        scene: &Scene,
        x: Span<'_>,
        y: Span<'_>,
        room_above: f64,
        room_right: f64,
    ) -> Self {
        let scale = scene.scale();
        let (width, height) = (f64::from(scene.width), f64::from(scene.height));
        let font = label_font(scale);
        let top = MARGIN * scale + room_above;
        let bottom = height - (MARGIN + TITLE + LABEL + 2.0 * GAP + TICK) * scale;
        let fits = fits_above(scale, y.values);
        let y = Axis::new(y, bottom, top, fits);
        let labels = y.ticks.iter().map(|tick| font.width(&tick.label)).fold(0.0, f64::max);
        let left = (MARGIN + TITLE + 2.0 * GAP + TICK) * scale + labels;
        let right = width - (MARGIN * scale + room_right).max(2.0 * MARGIN * scale);
        let x = Axis::new(x, left, right.max(left + 1.0), |apart, one: &str, other: &str| {
            apart >= (font.width(one) + font.width(other)) / 2.0 + 18.0 * scale
        });
        Self { x, y, scale }
    }

    /// Returns the pixel of a point.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Returns the pixels at the left and right end.
    pub(crate) fn width(&self) -> (f64, f64) {
        (self.x.from, self.x.to)
    }

    /// Returns the pixels at the upper and lower end.
    pub(crate) fn height(&self) -> (f64, f64) {
        (self.y.to, self.y.from)
    }

    /// Returns the area between the axes.
    pub(crate) fn clip(&self) -> Clip {
        let ((left, right), (top, bottom)) = (self.width(), self.height());
        Clip { left, right, top, bottom }
    }

    /// Draws lines across the plot at the ticks; upright ones only if `with_vertical_lines`.
    pub(crate) fn draw_grid(&self, scene: &mut Scene, with_vertical_lines: bool) {
        let ((left, right), (top, bottom)) = (self.width(), self.height());
        for tick in &self.y.ticks {
            let y = self.y.at(tick.at).round();
            scene.rect((left, right), (y, y + 1.0), GRID);
        }
        for tick in self.x.ticks.iter().filter(|_| with_vertical_lines) {
            let x = self.x.at(tick.at).round();
            scene.rect((x, x + 1.0), (top, bottom), GRID);
        }
    }

    /// Draws the axes with ticks, labels and titles; `is_closed` draws all four sides.
    pub(crate) fn draw_axes(&self, scene: &mut Scene, is_closed: bool) {
        let ((left, right), (top, bottom)) = (self.width(), self.height());
        scene.rect((left - 1.0, left), (top, bottom + 1.0), AXIS);
        scene.rect((left - 1.0, right), (bottom, bottom + 1.0), AXIS);
        if is_closed {
            scene.rect((right, right + 1.0), (top - 1.0, bottom + 1.0), AXIS);
            scene.rect((left - 1.0, right), (top - 1.0, top), AXIS);
        }
        let font = label_font(self.scale);
        let (tick_size, gap) = (TICK * self.scale, GAP * self.scale);
        for tick in &self.x.ticks {
            let x = self.x.at(tick.at).round();
            scene.rect((x, x + 1.0), (bottom, bottom + tick_size), AXIS);
            let below = bottom + tick_size + gap / 2.0;
            // Moves a label at an end of the axis into the picture.
            let half = font.width(&tick.label) / 2.0;
            let x = x.max(half).min(f64::from(scene.width) - half);
            scene.text(&tick.label, (x, below), font, Anchor::Top);
        }
        for tick in &self.y.ticks {
            let y = self.y.at(tick.at).round();
            scene.rect((left - tick_size, left), (y, y + 1.0), AXIS);
            let beside = left - tick_size - gap / 2.0;
            scene.text(&tick.label, (beside, y), font, Anchor::Right);
        }
        let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
        let edge = (MARGIN + TITLE / 2.0) * self.scale;
        let font = Font::with_size(TITLE * self.scale);
        let below = f64::from(scene.height) - edge;
        scene.text(&self.x.label, (middle.0, below), font, Anchor::Middle);
        draw_upright(scene, &self.y.label, (edge, middle.1));
    }
}

/// Returns the font of labels.
pub(crate) fn label_font(scale: f64) -> Font {
    Font::with_size(LABEL * scale)
}

/// Draws the title of an upright axis.
pub(crate) fn draw_upright(scene: &mut Scene, text: &str, middle: (f64, f64)) {
    let font = Font { is_upright: true, ..Font::with_size(TITLE * scene.scale()) };
    scene.text(text, middle, font, Anchor::Middle);
}

/// Draws the title of a plot, if it has one, and returns the height of the title in pixels.
pub(crate) fn draw_title(scene: &mut Scene, title: Option<&str>) -> f64 {
    let Some(title) = title else { return 0.0 };
    let scale = scene.scale();
    let font = Font { is_bold: true, ..Font::with_size(18.0 * scale) };
    let at = (f64::from(scene.width) / 2.0, MARGIN * scale + 9.0 * scale);
    scene.text(title, at, font, Anchor::Middle);
    32.0 * scale
}
