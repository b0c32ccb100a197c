//! The rows of `icechunk_history` and `icechunk_refs`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::reader::IcechunkReader;
use crate::bytes::icechunk::{ObjectId, SnapshotFacts};
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;

fn texts(all: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(all.collect::<StringArray>())
}

fn times(all: impl Iterator<Item = u64>) -> ArrayRef {
    // Times beyond Arrow's range become NULL.
    let times = all.map(|time| i64::try_from(time).ok());
    Arc::new(times.collect::<TimestampMicrosecondArray>())
}

/// Returns a row per snapshot, newest first.
pub(super) fn history(all: &[SnapshotFacts]) -> Result<RecordBatch> {
    let metadata = |it: &SnapshotFacts| Some(it.metadata.clone()).filter(|it| !it.is_empty());
    let columns: [(&str, ArrayRef, bool); 5] = [
        ("snapshot", texts(all.iter().map(|it| Some(it.id.to_string()))), false),
        ("parent", texts(all.iter().map(|it| it.parent.map(|id| id.to_string()))), true),
        ("time", times(all.iter().map(|it| it.time)), true),
        ("message", texts(all.iter().map(|it| Some(it.message.clone()))), false),
        ("metadata", texts(all.iter().map(metadata)), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(failed_to("make rows of facts"))
}

/// Returns a row per branch and tag.
pub(super) async fn references(reader: &IcechunkReader) -> Result<RecordBatch> {
    let all = reader.references().await?.named;
    let mut known: HashMap<ObjectId, u64> = HashMap::new();
    for it in &all {
        if let Entry::Vacant(unknown) = known.entry(it.id) {
            unknown.insert(reader.facts_of(it.id).await?.time);
        }
    }
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("kind", texts(all.iter().map(|it| Some(it.kind.to_owned()))), false),
        ("name", texts(all.iter().map(|it| Some(it.name.clone()))), false),
        ("snapshot", texts(all.iter().map(|it| Some(it.id.to_string()))), false),
        ("time", times(all.iter().filter_map(|it| known.get(&it.id).copied())), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(failed_to("make rows of facts"))
}
