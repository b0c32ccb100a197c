//! The frame of a plot: its axes with ticks and labels.

use crate::axis::{Axis, Span, fits_above};
use crate::scene::{AXIS, Anchor, Clip, Font, GRID, Scene};

/// The two axes of a plot, or of one of several panels.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    scale: f64,
    /// Whether the labels of the upright axis are beside it. Panels in a row share them.
    pub(crate) has_left_labels: bool,
    /// Whether the labels of the other axis are below it.
    pub(crate) has_lower_labels: bool,
    /// How far a label below the axis may go beyond it; `None` if the picture is the limit.
    pub(crate) overhang: Option<f64>,
}

// Sizes in pixels at scale 1.
pub(crate) const MARGIN: f64 = 16.0;
pub(crate) const TICK: f64 = 5.0;
pub(crate) const LABEL: f64 = 13.0;
pub(crate) const TITLE: f64 = 14.0;
pub(crate) const GAP: f64 = 7.0;

impl Frame {
    /// Makes a frame around an area in pixels.
    pub(crate) fn new(area: Clip, x: &Span, y: &Span, scale: f64) -> Self {
        let font = label_font(scale);
        let upwards = Axis::new(y, area.bottom, area.top, fits_above(scale, &y.values));
        let right = area.right.max(area.left + 1.0);
        let across = Axis::new(x, area.left, right, |apart, one: &str, other: &str| {
            apart >= (font.width(one) + font.width(other)) / 2.0 + 18.0 * scale
        });
        Self {
            x: across,
            y: upwards,
            scale,
            has_left_labels: true,
            has_lower_labels: true,
            overhang: None,
        }
    }

    /// Returns the pixel of a point.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Whether a point is in the frame.
    pub(crate) fn holds(&self, x: f64, y: f64) -> bool {
        self.x.holds(x) && self.y.holds(y)
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

    /// Draws the axes with ticks and labels; `is_closed` draws all four sides.
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
            let over = (left - (x - half)).max(x + half - right);
            if self.has_lower_labels && self.overhang.is_none_or(|most| over <= most) {
                let x = x.max(half).min(f64::from(scene.width) - half);
                scene.text(&tick.label, (x, below), font, Anchor::Top);
            }
        }
        for tick in &self.y.ticks {
            let y = self.y.at(tick.at).round();
            scene.rect((left - tick_size, left), (y, y + 1.0), AXIS);
            let beside = left - tick_size - gap / 2.0;
            if self.has_left_labels {
                scene.text(&tick.label, (beside, y), font, Anchor::Right);
            }
        }
    }
}

/// Returns the font of labels.
pub(crate) fn label_font(scale: f64) -> Font {
    Font::with_size(LABEL * scale)
}

/// Draws the title of an upright axis.
pub(crate) fn draw_upright(scene: &mut Scene, text: &str, middle: (f64, f64)) {
    let font = Font { is_upright: true, ..Font::with_size(TITLE * scene.scale) };
    scene.text(text, middle, font, Anchor::Middle);
}
