//! [`GroupPattern`]: groups of one file that are one table, along a new dimension.
//!
//! ```text
//!   swath_{swath}
//!   swath_1/sst (y, x)                               sst (swath, y, x)
//!   swath_2/sst (y, x)    ── labels of swath ──▶    1   cells of the first group
//!                                                    2   cells of the second
//! ```
//!
//! Each group has one label, as each file has with the option `stack`.

use glob::Pattern;

use super::file_arrays::FileArrays;
use super::file_label::{FileLabel, OPTIONS};
use super::options::MosaicOptions;
use super::stack::Stack;
use crate::array::{ColumnSource, Dimension, GridArray, Labels};
use crate::error::{Error, Result};

/// The new dimension if the pattern names none.
const DIMENSION: &str = "group";

/// A pattern in place of the name of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPattern {
    text: String,
    dimension: String,
    labels: GroupLabels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GroupLabels {
    /// The paths of groups that match.
    Paths(Pattern),
    /// A part of the path.
    Part(FileLabel),
}

impl GroupPattern {
    /// Parses a pattern; `None` for text without wildcards and braces. `*`, `?` and `[…]` stand for the same as in paths of files.
    ///
    /// | text | groups | new dimension | labels |
    /// |---|---|---|---|
    /// | `*` | all in the root | `group` | their names |
    /// | `swaths/*` | all in `swaths` | `group` | their paths |
    /// | `swaths/{swath}` | all in `swaths` | `swath` | their names |
    /// | `day_{time:%Y%m%d}` | those with a date | `time` | the dates |
    ///
    /// ```
    /// use gridfusion_core::source::GroupPattern;
    ///
    /// let pattern = GroupPattern::parse("swaths/{swath}")?.expect("a pattern");
    /// assert_eq!(pattern.label("swaths/left").as_deref(), Some("left"));
    /// assert_eq!(pattern.label("swaths/left/quality"), None);
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` for text that is no pattern, such as an opening brace without a closing one.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        if text.contains('{') {
            let (dimension, label) = FileLabel::parse("group", text)?;
            return Ok(Some(Self {
                text: text.to_owned(),
                dimension,
                labels: GroupLabels::Part(label),
            }));
        }
        if !text.contains(['*', '?', '[']) {
            return Ok(None);
        }
        let paths = Pattern::new(text).map_err(|error| {
            Error::usage(format!("option 'group' is '{text}', which is no pattern: {error}"))
        })?;
        let (text, dimension) = (text.to_owned(), DIMENSION.to_owned());
        Ok(Some(Self { text, dimension, labels: GroupLabels::Paths(paths) }))
    }

    /// Returns the label of the group with this path; `None` if it does not match.
    #[must_use]
    pub fn label(&self, path: &str) -> Option<String> {
        match &self.labels {
            GroupLabels::Paths(pattern) => {
                pattern.matches_with(path, OPTIONS).then(|| path.to_owned())
            }
            GroupLabels::Part(label) => label.of_whole(path),
        }
    }

    /// Makes one array of the columns of groups, each with its label. The name of the array is the pattern, as in other files.
    pub(crate) fn stacked(
        &self,
        file: &str,
        labels: &[String],
        groups: Vec<FileArrays>,
        union_by_name: bool,
    ) -> Result<FileArrays> {
        let along = Dimension::labelled(&self.dimension, Labels::from_text(labels)?);
        let mut columns = groups.iter().flat_map(|it| &it.arrays).flat_map(GridArray::columns);
        let index_columns = columns.any(|it| matches!(it, ColumnSource::Index(_)));
        let stacked = groups.into_iter().enumerate();
        let stacked = stacked.map(|(at, group)| Stack::stacked(group, &along, at));
        let stacked = stacked.collect::<Result<_>>()?;
        let options = MosaicOptions { union_by_name, index_columns, ..MosaicOptions::default() };
        let array = GridArray::combine(self.text.clone(), stacked, &options)?;
        Ok(FileArrays::new(file.to_owned(), vec![array]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_match_with_their_whole_paths() {
        for (pattern, path, expected) in [
            ("*", "left", Some("left")),
            ("*", "left/quality", None),
            ("**", "left/quality", Some("left/quality")),
            ("swath_?", "swath_1", Some("swath_1")),
            ("swath_?", "swath_10", None),
            ("swath_[12]", "swath_2", Some("swath_2")),
            ("{level}", "0", Some("0")),
            ("{level}", "a/0", None),
            ("a/{level}", "a/0", Some("0")),
            ("*/{level}", "b/7", Some("7")),
            ("{run}/data", "r1/data", Some("r1")),
            ("{run}/data", "r1/more", None),
            ("d{time:%Y%m%d}", "d20240229", Some("2024-02-29T00:00:00")),
            ("d{time:%Y%m%d}", "d20230229", None),
        ] {
            let found = GroupPattern::parse(pattern).unwrap().unwrap().label(path);
            assert_eq!(found.as_deref(), expected, "{pattern} and {path}");
        }
        assert_eq!(GroupPattern::parse("forecast/surface").unwrap(), None);
        for (pattern, reason) in [("[a", "no pattern"), ("{a", "option 'group' is '{a'")] {
            let error = GroupPattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }
}
