//! A drawing before it is painted: marks with positions in pixels. Later marks cover earlier ones.

use dejavu::sans;
use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

pub(crate) use plotters::style::RGBColor as Color;

use crate::error::{Error, Result};
use crate::title::printable;

pub(crate) const WHITE: Color = Color(255, 255, 255);
/// The colour of titles and labels.
pub(crate) const INK: Color = Color(45, 45, 50);
/// The colour of axes and ticks.
pub(crate) const AXIS: Color = Color(120, 120, 128);
/// The colour of grid lines.
pub(crate) const GRID: Color = Color(230, 230, 234);
/// The colour of a heat map where it has no value.
pub(crate) const NOTHING: Color = Color(225, 225, 228);

/// Something to draw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mark {
    /// A filled rectangle: the pixels from the first number of a pair up to, but without, the second.
    Rect { x: (i32, i32), y: (i32, i32), color: Color },
    /// A line through points, of which only the part in the clip shows.
    Path { points: Vec<(f64, f64)>, width: f64, color: Color, clip: Clip },
    /// A filled polygon.
    Polygon { points: Vec<(f64, f64)>, color: Color },
    /// A filled circle.
    Dot { at: (f64, f64), radius: f64, color: Color },
    /// A line of text.
    Text { text: String, at: (f64, f64), font: Font, anchor: Anchor, color: Color },
}

/// An area in pixels, such as one that lines must not leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clip {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Clip {
    /// Returns the area in a picture that is enlarged by a factor.
    pub(crate) fn enlarged(self, factor: f64) -> Self {
        let Self { left, right, top, bottom } = self;
        let [left, right, top, bottom] = [left, right, top, bottom].map(|at| at * factor);
        Self { left, right, top, bottom }
    }

    /// Whether a point is in the area.
    pub(crate) fn holds(self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    /// Returns the nearest area whose edges are between pixels.
    pub(crate) fn rounded(self) -> Self {
        let Self { left, right, top, bottom } = self;
        let [left, right, top, bottom] = [left, right, top, bottom].map(f64::round);
        Self { left, right, top, bottom }
    }
}

/// The point of a text that is at the position of its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Middle,
    /// The middle of the left edge.
    Left,
    Right,
    Top,
}

/// The size and style of text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Font {
    /// Pixels per em.
    pub(crate) size: f64,
    pub(crate) is_bold: bool,
    /// Whether the text is turned to run from bottom to top.
    pub(crate) is_upright: bool,
}

impl Font {
    pub(crate) fn with_size(size: f64) -> Self {
        Self { size, is_bold: false, is_upright: false }
    }

    /// Converts it to a font of plotters that is `factor` times as large.
    pub(crate) fn desc(&self, factor: f64) -> FontDesc<'static> {
        // plotters takes the height of a line as the size of a font; this is the height in ems.
        const LINE: f64 = 1.24;
        let style = if self.is_bold { FontStyle::Bold } else { FontStyle::Normal };
        FontDesc::new(FontFamily::SansSerif, self.size * LINE * factor, style)
    }

    /// Returns the width of a line of text in pixels.
    pub(crate) fn width(&self, text: &str) -> f64 {
        match self.desc(1.0).box_size(text) {
            Ok((width, _)) => f64::from(width),
            Err(_) => self.size * 0.6 * text.chars().count() as f64,
        }
    }
}

/// Registers the fonts for measuring and painting text. They are part of the crate, because the
/// machine may have none.
pub(crate) fn load_fonts() -> Result<()> {
    let load = |style, bytes| {
        let loaded = register_font("sans-serif", style, bytes);
        loaded.map_err(|_| Error::paint("the fonts cannot be read"))
    };
    load(FontStyle::Normal, sans::regular())?;
    load(FontStyle::Bold, sans::bold())
}

/// A drawing: its size in pixels and its marks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The factor for sizes of text and lines.
    pub(crate) scale: f64,
    pub(crate) marks: Vec<Mark>,
}

/// Returns the factor for sizes of text and lines, relative to a picture of 1000 by 620 pixels.
pub(crate) fn scale_of(width: u32, height: u32) -> f64 {
    (f64::from(width) / 1000.0).min(f64::from(height) / 620.0).clamp(0.6, 3.0)
}

impl Scene {
    pub(crate) fn new(width: u32, height: u32, scale: f64) -> Self {
        Self { width, height, scale, marks: vec![] }
    }

    pub(crate) fn rect(&mut self, x: (f64, f64), y: (f64, f64), color: Color) {
        let whole = |(a, b): (f64, f64)| (a.min(b).round() as i32, a.max(b).round() as i32);
        self.marks.push(Mark::Rect { x: whole(x), y: whole(y), color });
    }

    pub(crate) fn path(&mut self, points: Vec<(f64, f64)>, width: f64, color: Color, clip: Clip) {
        self.marks.push(Mark::Path { points, width, color, clip });
    }

    pub(crate) fn polygon(&mut self, points: Vec<(f64, f64)>, color: Color) {
        self.marks.push(Mark::Polygon { points, color });
    }

    pub(crate) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color) {
        self.marks.push(Mark::Dot { at, radius, color });
    }

    pub(crate) fn text(&mut self, text: &str, at: (f64, f64), font: Font, anchor: Anchor) {
        self.text_in(INK, text, at, font, anchor);
    }

    /// Draws text in another colour than titles and labels have.
    pub(crate) fn text_in(
        &mut self,
        color: Color,
        text: &str,
        at: (f64, f64),
        font: Font,
        anchor: Anchor,
    ) {
        // Columns escape their names; the title comes as it is.
        let text = printable(text);
        self.marks.push(Mark::Text { text, at, font, anchor, color });
    }
}
