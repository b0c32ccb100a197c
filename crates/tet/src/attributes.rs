//! The rows of `tet_attributes`: the attributes of the datasets and of the file.
//!
//! | dataset | key | value |
//! |---|---|---|
//! | temperature | units | degC |
//! | NULL | tool | tet convert |
//! | NULL | history.1.op | convert |

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};

use super::reader::TetReader;
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;

/// Returns a row per attribute of the dataset `only`. With `None`, returns the attributes of all
/// datasets and of the file, and the history of the file.
pub(super) fn attributes(file: &TetReader, only: Option<usize>) -> Result<RecordBatch> {
    let tet = file.tet();
    // Dataset, key and value of each row.
    let mut rows: Vec<(Option<&str>, String, &str)> = Vec::new();
    for (id, dataset) in tet.datasets().iter().enumerate() {
        let name = dataset.name();
        // Attributes are stored by name and belong to the first dataset with that name.
        if only.is_none_or(|only| only == id) && tet.dataset_id(name) == Some(id) {
            let attributes = &tet.metadata_of(id).attrs;
            rows.extend(attributes.iter().map(|(key, value)| (Some(name), key.clone(), &**value)));
        }
    }
    if only.is_none() {
        let own = tet.file_attributes().iter();
        rows.extend(own.map(|(key, value)| (None, key.clone(), &**value)));
        // Each non-empty part of an event is a row, with the number of the event in its key.
        for (number, event) in (1..).zip(tet.history()) {
            let parts = [("op", &event.op), ("source", &event.source), ("at", &event.at)];
            let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
            rows.extend(
                parts.map(|(part, value)| {
                    (None, format!("history.{number}.{part}"), value.as_str())
                }),
            );
        }
    }
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("dataset", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0))), true),
        ("key", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1))), false),
        ("value", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.2))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(failed_to("make rows of facts"))
}
