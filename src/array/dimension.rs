//! The axes of an array, with their names and labels.

use std::collections::BTreeMap;

use super::labels::Labels;

/// One axis of an array, with its name and labels.
#[derive(Debug, Clone)]
pub struct Dimension {
    pub(super) name: String,
    pub(super) labels: Labels,
    /// Whether the array has labels, other than the index.
    pub(super) is_labelled: bool,
    pub(super) index: Labels,
    pub(super) attributes: BTreeMap<String, String>,
}

impl Dimension {
    /// An axis whose column shows these labels, one per element.
    pub fn labelled(name: impl Into<String>, labels: Labels) -> Self {
        let len = labels.len();
        Self::new(name.into(), Some(labels), len, BTreeMap::new())
    }

    /// An axis without labels: its column shows the 0-based index.
    pub fn indexed(name: impl Into<String>, len: u64) -> Self {
        Self::new(name.into(), None, len, BTreeMap::new())
    }

    /// The same with attributes, which the column's field has as its metadata.
    #[must_use]
    pub fn with_attributes(self, attributes: BTreeMap<String, String>) -> Self {
        Self { attributes, ..self }
    }

    pub(crate) fn new(
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
            index,
            attributes,
        }
    }

    /// The same dimension with other labels, of any number.
    pub(crate) fn with_labels(&self, labels: Labels) -> Self {
        Self { index: Labels::indices(labels.len()), labels, ..self.clone() }
    }

    /// Whether the array has labels, other than the index.
    pub(crate) fn is_labelled(&self) -> bool {
        self.is_labelled
    }

    /// Attributes of its labels, such as `units`.
    pub(crate) fn attributes(&self) -> &BTreeMap<String, String> {
        &self.attributes
    }

    /// The unit of numeric labels that are times; labels of different units cannot be concatenated.
    pub(crate) fn unit(&self) -> Option<&str> {
        if self.labels.data_type().is_temporal() {
            return None;
        }
        let units = self.attributes.get("units").filter(|units| units.contains(" since "));
        units.or_else(|| self.attributes.get("tiledb_datatype")).map(String::as_str)
    }

    /// The number of its elements.
    pub fn len(&self) -> u64 {
        self.index.len()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dimension's name, which is its column's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One label per element.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }
}
