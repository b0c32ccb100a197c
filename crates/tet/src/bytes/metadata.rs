//! The footer's JSON: history, per-dataset metadata, and references to spills.
//!
//! See crates/tet/FORMAT.md, section 9. All keys are optional, and unknown ones are ignored:
//!
//! ```text
//!   { "history": [ … ],
//!     "metadata": { "file": { … },
//!                   "datasets": { "wind": { "dim_names": ["y", "x"], "attrs": { … },
//!                                           "coords": { "x": { "labels": ["a", "b"] } } } } },
//!     "zone_maps_ref": { "offset": 360, "len": 342 } }
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Axis metadata and attributes of one dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DatasetMetadata {
    /// The attributes, such as `units`; values are always strings.
    pub attrs: BTreeMap<String, String>,
    /// One name per axis; the list may be absent, or have a wrong length.
    pub dim_names: Option<Vec<String>>,
    /// The labels by dimension name or axis number.
    coords: BTreeMap<String, Coordinate>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Coordinate {
    labels: Vec<String>,
}

impl DatasetMetadata {
    /// Returns the labels stored under `key`, a dimension's name or an axis number.
    pub fn labels(&self, key: &str) -> Option<&[String]> {
        self.coords.get(key).map(|coordinate| coordinate.labels.as_slice())
    }
}

/// Metadata of all datasets, by name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    datasets: BTreeMap<String, DatasetMetadata>,
    /// The attributes of the file itself, such as the tool that wrote it.
    #[serde(deserialize_with = "texts")]
    pub(super) file: BTreeMap<String, String>,
}

/// Reads the members of an object as text. Accepts any JSON, because no query result depends on them.
fn texts<'de, D: Deserializer<'de>>(json: D) -> Result<BTreeMap<String, String>, D::Error> {
    let Value::Object(members) = Value::deserialize(json)? else { return Ok(BTreeMap::new()) };
    Ok(members.into_iter().map(|(key, value)| (key, text(value))).collect())
}

/// Returns a JSON value as text; a string has no quotes, and null is empty.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Metadata {
    /// Returns the metadata of the dataset with this name; empty if there is none.
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
    /// Replaces `metadata` if that would make the JSON too long.
    pub(super) metadata_ref: Option<SpillRef>,
    pub(super) zone_maps_ref: Option<SpillRef>,
    pub(super) secondary_index_ref: Option<SpillRef>,
}

/// An operation in the history of a file's data, as its writer stored it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "EventJson")]
#[non_exhaustive]
pub struct HistoryEvent {
    /// The operation, such as `convert`; may be empty.
    pub op: String,
    /// The source of the operation: for a conversion the original format, such as `nc`.
    pub source: String,
    /// The time in decimal seconds since 1970; a writer may store other text.
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

/// The position of a spill: a part of the footer that is stored outside its JSON.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpillRef {
    /// The absolute offset in the file.
    pub(super) offset: u64,
    /// The length in bytes.
    pub(super) len: u64,
}

impl SpillRef {
    /// Returns the spill's bytes in the file, if they end at or before `end`.
    pub(super) fn range(self, end: u64) -> Option<Range<u64>> {
        let spill_end = self.offset.checked_add(self.len)?;
        (spill_end <= end).then_some(self.offset..spill_end)
    }
}
