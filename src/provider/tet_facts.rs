//! What is known of a `.tet` file, as rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, ListBuilder, PrimitiveBuilder, RecordBatch, StringArray,
    StringBuilder, UInt64Array,
};
use arrow::datatypes::UInt64Type;
use datafusion::error::Result;

use crate::source::{DatasetInfo, TetReader};

/// A list of numbers per row.
pub(super) fn number_lists<'a>(lists: impl Iterator<Item = Option<&'a [u64]>>) -> ArrayRef {
    let mut builder = ListBuilder::new(PrimitiveBuilder::<UInt64Type>::new());
    for list in lists {
        builder.append_option(list.map(|list| list.iter().copied().map(Some)));
    }
    Arc::new(builder.finish())
}

fn text_lists<'a>(lists: impl Iterator<Item = &'a [String]>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for list in lists {
        builder.append_value(list.iter().map(Some));
    }
    Arc::new(builder.finish())
}

/// A row per dataset.
pub(super) fn info(known: &[DatasetInfo]) -> Result<RecordBatch> {
    let number = |of: fn(&DatasetInfo) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(known.iter().map(of)))
    };
    let text = |of: &dyn Fn(&DatasetInfo) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(known.iter().map(of)))
    };
    let truth = |of: fn(&DatasetInfo) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(known.iter().map(|it| Some(of(it)))))
    };
    let attribute = |key: &str| text(&|it| it.attributes.get(key).cloned());
    let chunk_shapes: Vec<Option<Vec<u64>>> =
        known.iter().map(|it| Some(it.grid.as_ref()?.chunk_shape().collect())).collect();
    let chunks = known.iter().map(|it| Some(it.grid.as_ref()?.chunks()));
    let columns: [(&str, ArrayRef, bool); 16] = [
        ("dataset", text(&|it| Some(it.name.clone())), false),
        ("element_type", text(&|it| it.element.map(|element| element.to_string())), true),
        ("shape", number_lists(known.iter().map(|it| Some(&*it.shape))), false),
        ("chunk_shape", number_lists(chunk_shapes.iter().map(Option::as_deref)), true),
        ("dimensions", text_lists(known.iter().map(|it| &*it.dimensions)), false),
        ("chunks", Arc::new(UInt64Array::from_iter(chunks)), true),
        ("stored_chunks", number(|it| it.stored.chunks), false),
        ("stored_bytes", number(|it| it.stored.bytes), false),
        ("raw_bytes", number(|it| it.stored.raw_bytes), false),
        (
            "ratio",
            Arc::new(Float64Array::from_iter(known.iter().map(|it| it.stored.ratio()))),
            true,
        ),
        ("codec", text(&|it| it.stored.codec.map(|codec| codec.name().to_owned())), true),
        ("units", attribute("units"), true),
        ("long_name", attribute("long_name"), true),
        ("is_coordinate", truth(|it| it.is_coordinate), false),
        ("has_zone_maps", truth(|it| it.has_zone_maps), false),
        ("warnings", text_lists(known.iter().map(|it| &*it.warnings)), false),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// A row per attribute of a dataset; of all datasets, and of the file itself, if none is chosen.
pub(super) fn attributes(file: &TetReader, only: Option<usize>) -> Result<RecordBatch> {
    let tet = file.tet();
    let mut rows: Vec<(Option<&str>, String, &str)> = Vec::new();
    for (id, dataset) in tet.datasets().iter().enumerate() {
        let name = dataset.name();
        // Of datasets with one name, the attributes are those of the first.
        if only.is_none_or(|only| only == id) && tet.dataset_id(name) == Some(id) {
            let attributes = &tet.metadata_of(id).attrs;
            rows.extend(attributes.iter().map(|(key, value)| (Some(name), key.clone(), &**value)));
        }
    }
    if only.is_none() {
        let own = tet.file_attributes().iter();
        rows.extend(own.map(|(key, value)| (None, key.clone(), &**value)));
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
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
