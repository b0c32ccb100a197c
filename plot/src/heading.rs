//! The heading of a picture: its title, and the names of the lines.

use crate::frame::{MARGIN, label_font};
use crate::scene::{Anchor, Color, Font, Scene};

/// The names of lines with their colours.
type Names = [(String, Color)];

/// The title and the names of lines, in rows of this width.
#[derive(Debug)]
pub(crate) struct Heading<'a> {
    title: Option<&'a str>,
    names: &'a Names,
    width: f64,
    scale: f64,
}

impl<'a> Heading<'a> {
    pub(crate) fn new(title: Option<&'a str>, names: &'a Names, width: u32, scale: f64) -> Self {
        Self { title, names, width: f64::from(width), scale }
    }

    /// Returns the height in pixels.
    pub(crate) fn height(&self) -> f64 {
        let rows = self.places().last().map_or(0.0, |(_, row)| row + 1.0);
        self.title_height() + rows * self.row_height()
    }

    /// Returns the width of the title with its margins.
    pub(crate) fn least_width(&self) -> f64 {
        let title = self.title.map_or(0.0, |title| self.font().width(title));
        if self.names.is_empty() { title + 2.0 * MARGIN * self.scale } else { self.width }
    }

    fn font(&self) -> Font {
        Font { is_bold: true, ..Font::with_size(18.0 * self.scale) }
    }

    fn title_height(&self) -> f64 {
        self.title.map_or(0.0, |_| 32.0 * self.scale)
    }

    fn row_height(&self) -> f64 {
        22.0 * self.scale
    }

    /// Returns the left edge and the row of each name.
    fn places(&self) -> Vec<(f64, f64)> {
        let scale = self.scale;
        let (left, right) = (40.0 * scale, self.width - 24.0 * scale);
        let (mut x, mut row) = (left, 0.0);
        let mut places = vec![];
        for (name, _) in self.names {
            let width = (20.0 + 4.0 * 7.0) * scale + label_font(scale).width(name);
            if x > left && x + width > right {
                (x, row) = (left, row + 1.0);
            }
            places.push((x, row));
            x += width;
        }
        places
    }

    pub(crate) fn draw(&self, scene: &mut Scene) {
        let scale = self.scale;
        if let Some(title) = self.title {
            let at = (f64::from(scene.width) / 2.0, (MARGIN + 9.0) * scale);
            scene.text(title, at, self.font(), Anchor::Middle);
        }
        for ((name, color), (x, row)) in self.names.iter().zip(self.places()) {
            let y = self.title_height() + 14.0 * scale + row * self.row_height();
            let swatch = x + 20.0 * scale;
            scene.rect((x, swatch), (y - 2.0 * scale, y + 2.0 * scale), *color);
            scene.text(name, (swatch + 7.0 * scale, y), label_font(scale), Anchor::Left);
        }
    }
}
