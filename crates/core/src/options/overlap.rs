//! [`Overlap`]: which of several files wins where they have the same label.

use std::fmt;

use super::value::OptionValue;

/// Which file a label is from that several files have along the dimension of concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overlap {
    /// From none: such files cannot be one table, because queries would count cells twice.
    #[default]
    Refused,
    /// From the first of these files, in the order of a list. A pattern lists files by name.
    First,
    /// From the last of these files.
    Last,
}

impl Overlap {
    /// The names of all choices.
    pub(crate) const NAMES: &[&str] = &["refused", "first", "last"];

    /// Returns the choice of a name in [`Self::NAMES`].
    pub(crate) fn from_name(name: &str) -> Self {
        let all = [Self::Refused, Self::First, Self::Last];
        all.into_iter().find(|it| it.to_string() == name).unwrap_or_default()
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::First => "first",
            Self::Last => "last",
        })
    }
}

impl From<Overlap> for OptionValue {
    fn from(overlap: Overlap) -> Self {
        Self::Text(overlap.to_string())
    }
}
