//! [`Description`] of arrays: pages for people, and a JSON document for programs.
//!
//! Formats make descriptions: they choose the facts and their order. `gridfusion info` prints them: it chooses
//! widths, and how JSON is written.
//!
//! The values of a document are [`Fact`]s instead of `serde_json::Value`s, because these sort the fields of
//! a record.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The amount of detail in a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Detail {
    /// The most chunks or fragments to list; `None` for no list.
    pub listed: Option<usize>,
    /// Whether to list attributes and metadata.
    pub metadata: bool,
}

impl Detail {
    /// Sets how many chunks or fragments to list; `None` for no list.
    #[must_use]
    pub fn with_listed(self, most: Option<usize>) -> Self {
        Self { listed: most, ..self }
    }

    /// Sets whether to list attributes and metadata.
    #[must_use]
    pub fn with_metadata(self, yes: bool) -> Self {
        Self { metadata: yes, ..self }
    }
}

/// A description of the arrays at one path or URL.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// The JSON document for programs. Its fields are stable; `docs/info.md` lists them.
    pub document: Fact,
    /// The pages for people.
    pub pages: Vec<Page>,
}

impl Description {
    /// Returns a description of a document and its pages.
    pub fn new(document: Fact, pages: Vec<Page>) -> Self {
        Self { document, pages }
    }
}

/// A value of a JSON document. The fields of a record keep their order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// JSON `null`: a value that is not known.
    Null,
    /// A Boolean.
    Bool(bool),
    /// A whole number, not negative.
    Number(u64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(String),
    /// A JSON array.
    List(Vec<Fact>),
    /// A JSON object, as field names and values.
    Record(Vec<(&'static str, Fact)>),
}

macro_rules! fact_from {
    ($($from:ty => |$it:ident| $fact:expr),+ $(,)?) => {$(
        impl From<$from> for Fact {
            fn from($it: $from) -> Self {
                $fact
            }
        }
    )+};
}

fact_from! {
    bool => |it| Self::Bool(it),
    u64 => |it| Self::Number(it),
    u32 => |it| Self::Number(it.into()),
    f64 => |it| Self::Float(it),
    &str => |it| Self::Text(it.to_owned()),
    String => |it| Self::Text(it),
}

impl<T: Into<Self>> From<Option<T>> for Fact {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Fact {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_u64(*value),
            Self::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Float(value) => serializer.serialize_str(beyond_numbers(*value)),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| list.serialize_element(value))?;
                list.end()
            }
            Self::Record(fields) => {
                let mut record = serializer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(name, value)| record.serialize_entry(name, value))?;
                record.end()
            }
        }
    }
}

/// Returns the text of infinity or NaN, for which JSON has no number. `null` would be another value.
fn beyond_numbers(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

/// A printed description of one array, group or file.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Page {
    /// The path, or the name of an array.
    pub title: String,
    /// Facts, one per line: format, size, version.
    pub lines: Vec<String>,
    /// Tables. A table without rows is not printed.
    pub tables: Vec<PageTable>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

impl Page {
    /// Returns a page of lines.
    pub fn new(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { title: title.into(), lines, ..Self::default() }
    }

    /// Sets the tables.
    #[must_use]
    pub fn with_tables(self, tables: Vec<PageTable>) -> Self {
        Self { tables, ..self }
    }

    /// Sets the warnings.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

/// A table of a page. A column without any value is not printed.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PageTable {
    /// The heading and the alignment of each column.
    pub columns: Vec<(&'static str, Side)>,
    /// Rows with one text per column; `None` is an empty cell.
    pub rows: Vec<Vec<Option<String>>>,
    /// The number of further rows, which are not listed.
    pub more: u64,
}

impl PageTable {
    /// Makes a table that lists all its rows.
    pub fn new<const N: usize>(
        columns: [(&'static str, Side); N],
        rows: impl IntoIterator<Item = [Option<String>; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { columns: columns.to_vec(), rows, more: 0 }
    }

    /// Sets the total number of rows, of which the table lists only some.
    pub fn of_all(self, rows: u64) -> Self {
        Self { more: rows.saturating_sub(self.rows.len() as u64), ..self }
    }
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left-aligned, for text.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_numbers_that_it_does_not_have() {
        let facts = Fact::from(vec![1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"[1.5,"Infinity","-Infinity","NaN"]"#);
    }
}
