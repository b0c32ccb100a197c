//! A drawing before it is painted: marks at places in pixels, first what lies below.

use dejavu::sans;
use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

pub(crate) use plotters::style::RGBColor as Color;

use crate::error::{Error, Result};

pub(crate) const WHITE: Color = Color(255, 255, 255);
/// Titles and labels.
pub(crate) const INK: Color = Color(45, 45, 50);
/// Axes and ticks.
pub(crate) const AXIS: Color = Color(120, 120, 128);
/// Lines that help the eye.
pub(crate) const GRID: Color = Color(230, 230, 234);
/// Where a heat map has no value.
pub(crate) const NOTHING: Color = Color(225, 225, 228);

/// Something to draw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mark {
    /// A filled rectangle: its pixels from the first of a pair up to but without the second.
    Rect { x: (i32, i32), y: (i32, i32), color: Color },
    /// A line through points.
    Path { points: Vec<(f64, f64)>, width: f64, color: Color },
    /// A filled circle.
    Dot { at: (f64, f64), radius: f64, color: Color },
    /// A line of text.
    Text { text: String, at: (f64, f64), font: Font, anchor: Anchor, color: Color },
}

/// Which point of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Middle,
    /// The middle of an edge.
    Left,
    Right,
    Top,
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Font {
    /// Pixels of an em.
    pub(crate) size: f64,
    pub(crate) is_bold: bool,
    /// Whether it is read from below.
    pub(crate) is_upright: bool,
}

impl Font {
    pub(crate) fn of_size(size: f64) -> Self {
        Self { size, is_bold: false, is_upright: false }
    }

    /// The same for plotters, `factor` times as large.
    pub(crate) fn desc(&self, factor: f64) -> FontDesc<'static> {
        // What plotters calls the size of a font is the height of its lines.
        const LINE: f64 = 1.24;
        let style = if self.is_bold { FontStyle::Bold } else { FontStyle::Normal };
        FontDesc::new(FontFamily::SansSerif, self.size * LINE * factor, style)
    }

    /// How long a line of text gets.
    pub(crate) fn width(&self, text: &str) -> f64 {
        match self.desc(1.0).box_size(text) {
            Ok((width, _)) => f64::from(width),
            Err(_) => self.size * 0.6 * text.chars().count() as f64,
        }
    }
}

/// Makes the fonts known that texts are measured and painted with. There may be none on this
/// machine, so they are part of the crate.
pub(crate) fn load_fonts() -> Result<()> {
    let load = |style, bytes| {
        let loaded = register_font("sans-serif", style, bytes);
        loaded.map_err(|_| Error::paint("the fonts cannot be read"))
    };
    load(FontStyle::Normal, sans::regular())?;
    load(FontStyle::Bold, sans::bold())
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) marks: Vec<Mark>,
}

impl Scene {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self { width, height, marks: vec![] }
    }

    /// How much larger things are than in a picture of the usual size.
    pub(crate) fn scale(&self) -> f64 {
        (f64::from(self.width) / 1000.0).min(f64::from(self.height) / 620.0).clamp(0.6, 3.0)
    }

    pub(crate) fn rect(&mut self, x: (f64, f64), y: (f64, f64), color: Color) {
        let whole = |(a, b): (f64, f64)| (a.min(b).round() as i32, a.max(b).round() as i32);
        self.marks.push(Mark::Rect { x: whole(x), y: whole(y), color });
    }

    pub(crate) fn path(&mut self, points: Vec<(f64, f64)>, width: f64, color: Color) {
        self.marks.push(Mark::Path { points, width, color });
    }

    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color) {
        self.marks.push(Mark::Dot { at, radius, color });
    }

    pub(crate) fn text(&mut self, text: &str, at: (f64, f64), font: Font, anchor: Anchor) {
        let text = text.to_owned();
        self.marks.push(Mark::Text { text, at, font, anchor, color: INK });
    }
}
