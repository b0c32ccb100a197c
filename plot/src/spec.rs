//! The settings of a picture.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Result, refuse};
use crate::settings::{AxisSettings, ColorSettings, Contours};

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotKind {
    /// Lines through the values, by x.
    Line,
    /// A point for each value; with a third column, coloured by it.
    Scatter,
    /// A bar for each value.
    Bars,
    /// A coloured cell for each x and y: of a grid, or between neighbouring points of a curvilinear grid.
    Heatmap,
}

/// The file format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An image of pixels.
    Png,
    /// A vector image: text with an element per mark.
    Svg,
}

impl Format {
    /// Returns the format for the extension of a path; `None` if it is neither `png` nor `svg`.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_ascii_lowercase();
        match extension.to_str()? {
            "png" => Some(Self::Png),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }

    /// The most rows that a picture of this format may have.
    pub fn row_limit(self) -> usize {
        match self {
            Self::Png => 1_000_000,
            // Each row is a line of text, and every viewer draws it again.
            Self::Svg => 100_000,
        }
    }

    /// Fails if a picture of this format cannot have so many rows. A caller that knows the number can
    /// check it before it reads the rows.
    ///
    /// # Errors
    /// `Usage` if `rows` is larger than [`Format::row_limit`].
    pub fn check_rows(self, rows: usize) -> Result<()> {
        if rows > self.row_limit() { self.too_many(&rows.to_string()) } else { Ok(()) }
    }

    pub(crate) fn too_many<T>(self, rows: &str) -> Result<T> {
        let most = self.row_limit();
        refuse(format!(
            "the query has {rows} rows, and at most {most} are plotted; reduce the \
             rows with GROUP BY (such as date_trunc('day', time)), WHERE or LIMIT"
        ))
    }
}

/// The settings of a picture.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Spec {
    /// The kind of picture; `None` chooses a kind that suits the columns.
    pub kind: Option<PlotKind>,
    /// A line of text above the plot.
    pub title: Option<String>,
    /// Width in pixels, one of [`Spec::SIDES`].
    pub width: u32,
    /// Height in pixels, one of [`Spec::SIDES`].
    pub height: u32,
    /// Whether a map may be smaller than width and height, so that it has no empty margins.
    pub fits_map: bool,
    /// The axis from left to right.
    pub x: AxisSettings,
    /// The upright axis.
    pub y: AxisSettings,
    /// The colours of values.
    pub color: ColorSettings,
    /// The contour lines over the cells of a heat map; `None` draws none.
    pub contours: Option<Contours>,
    /// Whether coastlines are drawn; `None` draws them if x and y are longitude and latitude.
    pub coastlines: Option<bool>,
    /// The number of the column whose values get a panel each.
    pub facet: Option<usize>,
}

impl Spec {
    /// The valid widths and heights in pixels.
    pub const SIDES: RangeInclusive<u32> = 200..=4096;

    /// A picture of this size in pixels, without a title and of a kind that suits the columns.
    pub fn new(width: u32, height: u32) -> Self {
        Self {
            kind: None,
            title: None,
            width,
            height,
            fits_map: false,
            x: AxisSettings::default(),
            y: AxisSettings::default(),
            color: ColorSettings::default(),
            contours: None,
            coastlines: None,
            facet: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_formats() {
        assert_eq!(Format::from_path(Path::new("a.png")), Some(Format::Png));
        assert_eq!(Format::from_path(Path::new("b/c.d.SVG")), Some(Format::Svg));
        for path in ["a.jpg", "png", ".png", "", "a."] {
            assert_eq!(Format::from_path(Path::new(path)), None, "{path}");
        }
        assert_eq!(Format::from_path(Path::new("a.png/")), Some(Format::Png));
    }

    #[test]
    fn rows_are_limited() {
        assert!(Format::Png.check_rows(1_000_000).is_ok());
        let error = Format::Svg.check_rows(100_001).unwrap_err().to_string();
        assert!(error.starts_with("the query has 100001 rows, and at most 100000 are"), "{error}");
    }
}
