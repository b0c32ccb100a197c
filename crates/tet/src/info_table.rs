//! The rows of `tet_info`: the facts about each dataset. They are those of the field `datasets` in the document
//! of `gridfusion info --json`, in the same order, and the warnings.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, ListBuilder, PrimitiveBuilder, RecordBatch, StringArray,
    StringBuilder, UInt64Array,
};
use arrow::datatypes::UInt64Type;

use super::info::DatasetInfo;
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;

/// Returns a list array with one list of numbers, or NULL, per row.
pub(super) fn number_lists<'a>(lists: impl Iterator<Item = Option<&'a [u64]>>) -> ArrayRef {
    let mut builder = ListBuilder::new(PrimitiveBuilder::<UInt64Type>::new());
    for list in lists {
        builder.append_option(list.map(|list| list.iter().copied().map(Some)));
    }
    Arc::new(builder.finish())
}

/// Returns a list array with one list of texts per row.
fn text_lists<'a>(lists: impl Iterator<Item = &'a [String]>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for list in lists {
        builder.append_value(list.iter().map(Some));
    }
    Arc::new(builder.finish())
}

/// Returns the rows of `tet_info`, one per dataset.
pub(super) fn info_table(known: &[DatasetInfo]) -> Result<RecordBatch> {
    // Makers of columns, each from a function that returns one fact of a dataset.
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
    RecordBatch::try_from_iter_with_nullable(columns).map_err(failed_to("make rows of facts"))
}
