//! Facts about dimensions and attributes, in the same form for every format.
//!
//! Each type has a form for the JSON document (`fields`, `list`) and one for a page (`table`). So
//! descriptions of all formats have the same fields and columns.

use super::conventions::units_text;
use super::description::{Fact, PageTable, Side};
use crate::array::Dimension;
use crate::error::Result;

/// The facts about a dimension that descriptions show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDimension {
    /// The name of the dimension.
    pub name: String,
    /// The number of positions; `None` if the array cannot be shown as a table.
    pub length: Option<u64>,
    /// The Arrow type of its labels; for TileDB, the stored type.
    pub data_type: Option<String>,
    /// The first label as text; `None` if it is NULL or unknown, or if there are no labels.
    pub first: Option<String>,
    /// The last label as text, as `first`.
    pub last: Option<String>,
    /// The attribute `units` of its labels.
    pub units: Option<String>,
    /// The attribute `calendar` of its labels.
    pub calendar: Option<String>,
}

impl KnownDimension {
    /// Takes the facts of a dimension.
    ///
    /// # Errors
    /// If its first or last label cannot be read.
    pub fn try_new(dimension: &Dimension) -> Result<Self> {
        let [first, last] = ends(dimension)?;
        Ok(Self {
            name: dimension.name().to_owned(),
            length: Some(dimension.len()),
            data_type: Some(dimension.labels().data_type().to_string()),
            first,
            last,
            units: dimension.attributes().get("units").cloned(),
            calendar: dimension.attributes().get("calendar").cloned(),
        })
    }

    /// Returns the fields of its record in the document.
    pub fn fields(&self) -> Vec<(&'static str, Fact)> {
        let mut fields = vec![
            ("name", self.name.as_str().into()),
            ("length", self.length.into()),
            ("type", self.data_type.as_deref().into()),
            ("first", self.first.as_deref().into()),
            ("last", self.last.as_deref().into()),
            ("units", self.units.as_deref().into()),
        ];
        fields.extend(self.calendar.as_deref().map(|it| ("calendar", it.into())));
        fields
    }

    /// Makes the table of dimensions for a page, with a row per dimension.
    pub fn table<'a>(all: impl IntoIterator<Item = &'a Self>) -> PageTable {
        let columns = [
            ("DIMENSION", Side::Left),
            ("LENGTH", Side::Right),
            ("TYPE", Side::Left),
            ("FIRST", Side::Left),
            ("LAST", Side::Left),
            ("UNITS", Side::Left),
        ];
        let rows = all.into_iter().map(|it| {
            [
                Some(it.name.clone()),
                it.length.map(|length| length.to_string()),
                it.data_type.clone(),
                it.first.clone(),
                it.last.clone(),
                units_text(it.units.as_deref(), it.calendar.as_deref()),
            ]
        });
        PageTable::new(columns, rows)
    }
}

/// Returns the first and the last label as text, numbers that count time as dates; `None` for NULL, or if there are no labels.
pub fn ends(dimension: &Dimension) -> Result<[Option<String>; 2]> {
    let labels = dimension.labels();
    let [first, last] = match dimension.len().checked_sub(1) {
        Some(last) => [labels.text(0)?, labels.text(last)?],
        None => [None, None],
    };
    let Some(times) = dimension.times() else { return Ok([first, last]) };
    let date = |number: String| {
        let time = number.parse().ok().and_then(|it| times.time(it));
        time.map_or(number, |it| it.to_string())
    };
    Ok([first.map(date), last.map(date)])
}

/// An attribute, or a key of TileDB metadata, with its value as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAttribute {
    /// The dataset, column or group that has the attribute; `None` for the file or the array itself.
    pub of: Option<String>,
    /// Whether `of` is a group.
    pub is_of_group: bool,
    /// The variable of the dataset `of` that has the attribute; `None` if the dataset as a whole has it.
    pub variable: Option<String>,
    /// The name of the attribute.
    pub key: String,
    /// The kind of its value: `text`, `integers`, `floats`, `booleans` or `bytes`.
    pub kind: &'static str,
    /// Its value as text.
    pub value: String,
}

impl KnownAttribute {
    /// Returns an attribute that is a text; of the file itself without a dataset.
    pub fn text(of: Option<&str>, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (of, key, value) = (of.map(str::to_owned), key.into(), value.into());
        Self { of, is_of_group: false, variable: None, key, kind: "text", value }
    }

    /// Sets the variable that has the attribute.
    #[must_use]
    pub fn of_variable(self, name: &str) -> Self {
        Self { variable: Some(name.to_owned()), ..self }
    }

    /// Returns the records for the document. The field `dataset` is null for attributes of the file.
    pub fn list(all: &[Self]) -> Fact {
        let record = |it: &Self| {
            Fact::Record(vec![
                ("dataset", it.of.as_deref().into()),
                ("key", it.key.as_str().into()),
                ("value", it.value.as_str().into()),
            ])
        };
        Fact::List(all.iter().map(record).collect())
    }

    /// Returns the table of the page `info`, a row per attribute.
    pub fn table(all: &[Self]) -> PageTable {
        let columns = [("ATTRIBUTE", Side::Left), ("OF", Side::Left), ("VALUE", Side::Left)];
        let row = |it: &Self| [Some(it.key.clone()), it.of.clone(), Some(it.value.clone())];
        PageTable::new(columns, all.iter().map(row))
    }
}
