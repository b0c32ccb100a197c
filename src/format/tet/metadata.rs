//! The footer's JSON: history, per-dataset metadata, and references to spills.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Axis metadata and attributes of one dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DatasetMetadata {
    /// Attributes such as `units`; values are always strings.
    pub attrs: BTreeMap<String, String>,
    /// One name per axis; may be absent, or of the wrong length.
    pub dim_names: Option<Vec<String>>,
    /// Labels by dimension name or axis number.
    coords: BTreeMap<String, Coordinate>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Coordinate {
    labels: Vec<String>,
}

impl DatasetMetadata {
    /// The labels kept under `key`, a dimension's name or an axis number.
    pub fn labels(&self, key: &str) -> Option<&[String]> {
        self.coords.get(key).map(|coordinate| coordinate.labels.as_slice())
    }
}

/// Metadata of all datasets, by name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    datasets: BTreeMap<String, DatasetMetadata>,
}

impl Metadata {
    pub(super) fn of(&self, dataset: &str) -> &DatasetMetadata {
        static NONE: DatasetMetadata =
            DatasetMetadata { attrs: BTreeMap::new(), dim_names: None, coords: BTreeMap::new() };
        self.datasets.get(dataset).unwrap_or(&NONE)
    }
}

/// The top level of the footer's JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FooterJson {
    pub(super) history: Vec<HistoryEvent>,
    pub(super) metadata: Option<Metadata>,
    pub(super) metadata_ref: Option<SpillRef>,
    pub(super) zone_maps_ref: Option<SpillRef>,
    pub(super) secondary_index_ref: Option<SpillRef>,
}

/// A history event: an object with a `source`, or the triple `[op, source, at]`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum HistoryEvent {
    Object { source: String },
    Triple(IgnoredAny, String, IgnoredAny),
}

impl HistoryEvent {
    pub(super) fn into_source(self) -> String {
        match self {
            Self::Object { source } | Self::Triple(_, source, _) => source,
        }
    }
}

/// Where a spill lies in the file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpillRef {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl SpillRef {
    /// The spill's bytes, if they end at or before `end`.
    pub(super) fn range(self, end: u64) -> Option<Range<u64>> {
        let spill_end = self.offset.checked_add(self.len)?;
        (spill_end <= end).then_some(self.offset..spill_end)
    }
}
