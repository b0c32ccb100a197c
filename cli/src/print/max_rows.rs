//! The maximum number of rows that a table shows.

use std::str::FromStr;

/// The maximum number of rows that a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxRows {
    /// All rows.
    Unlimited,
    /// The first rows, up to this number.
    Limited(usize),
}

impl MaxRows {
    /// Returns the number of rows; `usize::MAX` for all rows.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Limited(most) => most,
            Self::Unlimited => usize::MAX,
        }
    }
}

impl FromStr for MaxRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ["inf", "infinite", "none"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Ok(Self::Unlimited);
        }
        let most = text.parse().map_err(|_| format!("expected a number or 'inf', not '{text}'"))?;
        Ok(Self::Limited(most))
    }
}
