//! The settings of a picture.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Result, refuse};

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines through the values, by x.
    Line,
    /// A point for each value.
    Scatter,
    /// A bar for each value.
    Bars,
    /// A coloured cell for each x and y.
    Heatmap,
}

/// How a picture is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    Png,
    /// Marks, as text.
    Svg,
}

impl Format {
    /// The format that the name of a file stands for, by its ending.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_ascii_lowercase();
        match extension.to_str()? {
            "png" => Some(Self::Png),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }

    /// The most rows that are drawn.
    pub fn row_limit(self) -> usize {
        match self {
            Self::Png => 1_000_000,
            // Each is a line of text, and every viewer draws it anew.
            Self::Svg => 100_000,
        }
    }

    /// Fails if that many rows are too many. So who knows their number need not read them.
    ///
    /// # Errors
    /// If there are more than the limit.
    pub fn check_rows(self, rows: usize) -> Result<()> {
        if rows > self.row_limit() { self.too_many(&rows.to_string()) } else { Ok(()) }
    }

    pub(crate) fn too_many<T>(self, rows: &str) -> Result<T> {
        let most = self.row_limit();
        refuse(format!(
            "the query has {rows} rows, and at most {most} are plotted; make them fewer, \
             by GROUP BY (of date_trunc('day', time), say), WHERE or LIMIT"
        ))
    }
}

/// The settings of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spec {
    /// The kind of picture; `None` draws the one that the columns suggest.
    pub kind: Option<Kind>,
    /// A line of text above the plot.
    pub title: Option<String>,
    /// Width in pixels, one of [`Spec::SIDES`].
    pub width: u32,
    /// Height in pixels, one of [`Spec::SIDES`].
    pub height: u32,
}

impl Spec {
    /// How many pixels a side may have.
    pub const SIDES: RangeInclusive<u32> = 200..=4096;

    /// A picture of a size, of what its columns suggest and without a title.
    pub fn new(width: u32, height: u32) -> Self {
        Self { kind: None, title: None, width, height }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_formats() {
        assert_eq!(Format::of_path(Path::new("a.png")), Some(Format::Png));
        assert_eq!(Format::of_path(Path::new("b/c.d.SVG")), Some(Format::Svg));
        for path in ["a.jpg", "png", ".png", "", "a."] {
            assert_eq!(Format::of_path(Path::new(path)), None, "{path}");
        }
        assert_eq!(Format::of_path(Path::new("a.png/")), Some(Format::Png));
    }

    #[test]
    fn rows_are_limited() {
        assert!(Format::Png.check_rows(1_000_000).is_ok());
        let error = Format::Svg.check_rows(100_001).unwrap_err().to_string();
        assert!(error.starts_with("the query has 100001 rows, and at most 100000 are"), "{error}");
    }
}
