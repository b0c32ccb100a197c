//! Descriptions of arrays: a page for people, a JSON document for programs.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Detail {
    /// How many chunks or fragments are listed; `None` for no list.
    pub listed: Option<usize>,
    /// Whether attributes and metadata are listed.
    pub metadata: bool,
}

impl Detail {
    /// The same with a list of chunks or fragments, as many as this.
    #[must_use]
    pub fn with_listed(self, most: Option<usize>) -> Self {
        Self { listed: most, ..self }
    }

    /// The same with attributes and metadata, or without.
    #[must_use]
    pub fn with_metadata(self, yes: bool) -> Self {
        Self { metadata: yes, ..self }
    }
}

/// A description of the arrays at a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// For programs; its fields are stable, and `docs/info.md` lists them.
    pub document: Fact,
    /// For people.
    pub pages: Vec<Page>,
}

/// A value of a document; fields keep their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Not known.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Number(u64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Several.
    List(Vec<Fact>),
    /// Named values.
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
            Self::Float(value) => serializer.serialize_f64(*value),
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

/// One array or file for people: a title, lines of facts, tables, warnings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The path, or what an array is called.
    pub title: String,
    /// Its facts, a line each: format, size, version.
    pub lines: Vec<String>,
    /// Its tables; those without rows are not printed.
    pub tables: Vec<PageTable>,
    /// Its oddities, a sentence each.
    pub warnings: Vec<String>,
}

/// A table of a page. Columns in which nothing stands are not printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageTable {
    /// Headings, and where the values of the column stand.
    pub columns: Vec<(&'static str, Side)>,
    /// A cell per column.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows there are beside these.
    pub more: u64,
}

impl PageTable {
    /// A table with these columns and rows.
    pub fn new<const N: usize>(
        columns: [(&'static str, Side); N],
        rows: impl IntoIterator<Item = [Option<String>; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { columns: columns.to_vec(), rows, more: 0 }
    }

    /// The same table, which shows some of so many rows.
    pub(crate) fn of_all(self, rows: u64) -> Self {
        Self { more: rows.saturating_sub(self.rows.len() as u64), ..self }
    }
}

/// Where the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}
