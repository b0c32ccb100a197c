//! The dimensions of an array, with their names and labels.

use std::collections::BTreeMap;

use arrow::datatypes::Field;

use super::calendar::Calendar;
use super::column::with_attributes;
use super::counted_times::{CountedTimes, marked_times};
use super::labels::Labels;
use super::single_labels::marked;

/// A dimension: one axis of an array, with its name and labels.
#[derive(Debug, Clone)]
pub struct Dimension {
    pub(super) name: String,
    /// The labels of the column, as many as `index` has; the indices if `is_labelled` is false.
    pub(super) labels: Labels,
    /// Whether the array has labels of its own for this axis, rather than only the index.
    pub(super) is_labelled: bool,
    /// Whether it counts samples of a ragged array, such as all observations of several stations.
    pub(super) counts_samples: bool,
    /// The 0-based indices. They set the length of the axis, and are the index column.
    pub(super) index: Labels,
    /// The metadata of the column's field.
    pub(super) attributes: BTreeMap<String, String>,
}

impl Dimension {
    /// Returns a dimension whose column shows these labels, one per position.
    pub fn labelled(name: impl Into<String>, labels: Labels) -> Self {
        let len = labels.len();
        Self::new(name.into(), Some(labels), len, BTreeMap::new())
    }

    /// Returns a dimension without labels: its column shows the 0-based index.
    pub fn indexed(name: impl Into<String>, len: u64) -> Self {
        Self::new(name.into(), None, len, BTreeMap::new())
    }

    /// Sets the attributes. They become the metadata of the column's field.
    #[must_use]
    pub fn with_attributes(self, attributes: BTreeMap<String, String>) -> Self {
        Self { attributes, ..self }
    }

    /// Returns a dimension of `len` positions. Without `labels`, its column shows the index.
    pub fn new(
        name: String,
        labels: Option<Labels>,
        len: u64,
        attributes: BTreeMap<String, String>,
    ) -> Self {
        let (is_labelled, index) = (labels.is_some(), Labels::indices(len));
        Self {
            name,
            labels: labels.unwrap_or_else(|| index.clone()),
            is_labelled,
            counts_samples: false,
            index,
            attributes,
        }
    }

    /// Returns the same dimension with other labels. Their number sets the length.
    pub(crate) fn with_labels(&self, labels: Labels) -> Self {
        Self { index: Labels::indices(labels.len()), labels, ..self.clone() }
    }

    /// Whether the array has labels of its own for this axis, rather than only the index.
    pub fn is_labelled(&self) -> bool {
        self.is_labelled
    }

    /// Whether it counts samples of a ragged array. Files follow one another along it, whatever their lengths.
    pub(crate) fn counts_samples(&self) -> bool {
        self.counts_samples && !self.is_labelled
    }

    /// Returns the attributes of the labels, such as `units`.
    pub(crate) fn attributes(&self) -> &BTreeMap<String, String> {
        &self.attributes
    }

    /// Returns the time unit or TileDB datatype of numeric labels. Labels of different units cannot be
    /// concatenated, unless they are times: those are made to count alike.
    pub(crate) fn unit(&self) -> Option<&str> {
        if self.labels.data_type().is_temporal() || self.times().is_some() {
            return None;
        }
        let units = self.attributes.get("units").filter(|units| units.contains(" since "));
        units.or_else(|| self.attributes.get("tiledb_datatype")).map(String::as_str)
    }

    /// Returns the calendar of labels that count time in the file. Labels of different calendars cannot be concatenated: a day is
    /// another one, or dates are left out.
    pub(crate) fn calendar(&self) -> Option<String> {
        let units = self.attributes.get("units")?.to_ascii_lowercase();
        let counts = units.split_whitespace().any(|it| it == "since");
        counts.then(|| calendar_name(self.attributes.get("calendar").map_or("", String::as_str)))
    }

    /// Returns the field of the column.
    pub(super) fn field(&self) -> Field {
        let field = Field::new(&self.name, self.labels.data_type(), self.labels.has_nulls());
        marked_times(marked(with_attributes(field, &self.attributes)), self.is_labelled)
    }

    /// Returns what labels mean that are numbers and shown as dates.
    pub(crate) fn times(&self) -> Option<CountedTimes> {
        CountedTimes::from_field(&self.field())
    }

    /// Returns the length of the axis.
    pub fn len(&self) -> u64 {
        self.index.len()
    }

    /// Whether the axis has length 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the dimension and of its column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the labels, one per position.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }
}

/// Returns one name for all names of a calendar.
fn calendar_name(attribute: &str) -> String {
    match Calendar::from_name(attribute) {
        // They agree on all dates since 1582.
        Some(Calendar::Mixed | Calendar::Proleptic) => Calendar::Mixed.name().to_owned(),
        Some(calendar) => calendar.name().to_owned(),
        None => attribute.trim().to_ascii_lowercase(),
    }
}
