//! The footer's JSON: history, per-dataset metadata, and references to spills.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
    /// What is said of the file itself, such as the tool that wrote it.
    #[serde(deserialize_with = "texts")]
    pub(super) file: BTreeMap<String, String>,
}

/// The members of an object as text. No answer depends on them, so nothing here is malformed.
fn texts<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, String>, D::Error> {
    let Value::Object(members) = Value::deserialize(json)? else { return Ok(BTreeMap::new()) };
    Ok(members.into_iter().map(|(key, value)| (key, text(value))).collect())
}

/// A JSON value as text, without quotes if that is what it is.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Metadata {
    /// The metadata of the dataset with this name, empty where there is none.
    pub(super) fn of(&self, dataset: Option<&str>) -> &DatasetMetadata {
        static NONE: DatasetMetadata =
            DatasetMetadata { attrs: BTreeMap::new(), dim_names: None, coords: BTreeMap::new() };
        dataset.and_then(|name| self.datasets.get(name)).unwrap_or(&NONE)
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

/// Something that was done to the data of a file, as its writer notes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "EventJson")]
pub struct HistoryEvent {
    /// What was done, such as `convert`; may be empty.
    pub op: String,
    /// What it was done to: for a conversion the format, such as `nc`.
    pub source: String,
    /// When: seconds since 1970 in decimal, or whatever else the writer put there.
    pub at: String,
}

/// A history event: an object with a `source`, or the triple `[op, source, at]`.
#[derive(Deserialize)]
#[serde(untagged)]
enum EventJson {
    Object {
        #[serde(default)]
        op: Value,
        source: String,
        #[serde(default)]
        at: Value,
    },
    Triple(Value, String, Value),
}

impl From<EventJson> for HistoryEvent {
    fn from(event: EventJson) -> Self {
        let (EventJson::Object { op, source, at } | EventJson::Triple(op, source, at)) = event;
        Self { op: text(op), source, at: text(at) }
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
