//! How many rows of a table are shown.

use std::str::FromStr;

/// How many rows of a table are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxRows {
    /// All of them.
    Unlimited,
    /// The first ones.
    Limited(usize),
}

impl MaxRows {
    /// The number of rows; the greatest there is for all.
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
