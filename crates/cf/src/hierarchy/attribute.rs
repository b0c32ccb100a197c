//! Attributes of variables and groups, with the types that the file gives them.

use std::collections::BTreeMap;
use std::fmt;

/// The attributes of a variable or a group, by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// The value of an attribute. A list of one number is the same as the number.
///
/// `Display` writes text as it is, and several values with commas between them: `0, 32767`.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// One text.
    Text(String),
    /// Any number of texts.
    Texts(Vec<String>),
    /// Integers of any type.
    Integers(Vec<i128>),
    /// Single-precision numbers.
    Singles(Vec<f32>),
    /// Double-precision numbers.
    Doubles(Vec<f64>),
}

impl Attribute {
    /// Returns the text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Texts(texts) => match texts.as_slice() {
                [text] => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns what kind of value it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Texts(_) => "text",
            Self::Integers(_) => "integers",
            Self::Singles(_) | Self::Doubles(_) => "floats",
        }
    }

    /// Returns each value as text that parses to the same value of its type; no text of a number is longer than needed.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Texts(texts) => texts.clone(),
            Self::Integers(all) => all.iter().map(ToString::to_string).collect(),
            Self::Singles(all) => all.iter().map(ToString::to_string).collect(),
            Self::Doubles(all) => all.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns each value as text that parses to the same double, or to the same value of a type that holds it: the single
    /// 0.1 is `0.10000000149011612`.
    pub fn exact_texts(&self) -> Vec<String> {
        match self {
            Self::Singles(all) => all.iter().map(|it| f64::from(*it).to_string()).collect(),
            _ => self.texts(),
        }
    }
}

/// Returns the text of an attribute without NUL bytes at its end. Formats leave the character set open, and no other
/// attribute names it: text that is not UTF-8 is taken for Latin-1, in which all bytes are characters.
pub(crate) fn attribute_text(stored: &[u8]) -> String {
    let len = stored.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (text, _) = stored.split_at(len);
    String::from_utf8(text.to_vec())
        .unwrap_or_else(|_| text.iter().copied().map(char::from).collect())
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().join(", "))
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_values() {
        for (value, text) in [
            (Attribute::from("degC"), "degC"),
            (Attribute::Integers(vec![0, i128::from(u64::MAX)]), "0, 18446744073709551615"),
            (Attribute::Singles(vec![0.01]), "0.01"),
            (Attribute::Doubles(vec![0.01, f64::NAN]), "0.01, NaN"),
            (Attribute::Texts(vec![]), ""),
        ] {
            assert_eq!(value.to_string(), text);
        }
        assert_eq!(Attribute::Texts(vec!["K".to_owned()]).text(), Some("K"));
        assert_eq!(Attribute::Singles(vec![0.1]).exact_texts(), ["0.10000000149011612"]);
        assert_eq!(Attribute::Doubles(vec![0.1]).exact_texts(), ["0.1"]);
        assert_eq!(Attribute::Texts(vec!["K".to_owned(), "C".to_owned()]).text(), None);
    }
}
