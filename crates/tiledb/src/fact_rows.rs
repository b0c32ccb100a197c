//! The rows of `tiledb_info` and `tiledb_fragments`.
//!
//! `tiledb_info` is in long form, because arrays, dimensions and attributes have different properties:
//!
//! | item | name | property | value |
//! |---|---|---|---|
//! | array | | tile order | row-major |
//! | dimension | r | domain | 0 to 6 |
//! | attribute | a | filters | none |

use std::fmt::Display;
use std::sync::Arc;

use super::labels::index_name;
use super::reader::TileDbReader;
use crate::bytes::{ArrayKind, Attribute, CoordinateRange, DimensionSchema, Fragment};
use arrow::array::{
    ArrayRef, RecordBatch, StringArray, TimestampMillisecondArray, UInt32Array, UInt64Array,
};
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;
use gridfusion_core::source::{Column, FactRows};

/// A property: the kind of its item, the item's name, its own name, and its value.
type Property = [String; 4];

static PROPERTIES: &[Column<Property>] = &[
    Column::<Property>::text("item", |it| Some(it[0].clone())).required(),
    Column::<Property>::text("name", |it| Some(it[1].clone())).required(),
    Column::<Property>::text("property", |it| Some(it[2].clone())).required(),
    Column::<Property>::text("value", |it| Some(it[3].clone())).required(),
];

/// Facts in long form.
#[derive(Default)]
struct Properties {
    rows: Vec<Property>,
}

impl Properties {
    fn add(&mut self, item: &str, name: &str, property: &str, value: &dyn Display) {
        self.rows.push([item.into(), name.into(), property.into(), value.to_string()]);
    }
}

/// Returns the facts about the array, its dimensions, attributes and dimension labels.
pub(super) fn info(opened: &TileDbReader) -> FactRows<Property> {
    let array = opened.tiledb();
    let schema = array.schema();
    let mut facts = Properties::default();
    of_schema(opened, &mut facts);
    facts.add("array", "", "fragments", &array.fragments().len());
    for dimension in &schema.dimensions {
        of_dimension(dimension, opened, &mut facts);
    }
    for (number, attribute) in schema.attributes.iter().enumerate() {
        of_attribute(attribute, &mut facts);
        let name = &attribute.name;
        match array.enumeration(number) {
            Ok(Some(enumeration)) => {
                facts.add("attribute", name, "enumeration", &enumeration.name);
                facts.add("attribute", name, "enumeration values", &enumeration.len());
                facts.add("attribute", name, "enumeration ordered", &enumeration.ordered);
            }
            Ok(None) => {}
            Err(error) => facts.add("attribute", name, "enumeration error", &error),
        }
    }
    for label in &schema.labels {
        let of = schema.dimensions.get(label.dimension).map_or("", |it| it.name.as_str());
        facts.add("label", &label.name, "dimension", &of);
        facts.add("label", &label.name, "datatype", &label.datatype);
        facts.add("label", &label.name, "order", &format!("{:?}", label.order).to_lowercase());
        facts.add("label", &label.name, "array", &label.uri);
        let used = match of == index_name(&label.name) {
            true => "yes: a column holds them",
            false => "no: columns hold the dimension's coordinates",
        };
        facts.add("label", &label.name, "used", &used);
    }
    FactRows::in_memory(PROPERTIES.to_vec(), facts.rows)
}

/// Adds the facts about the array as a whole.
fn of_schema(opened: &TileDbReader, facts: &mut Properties) {
    let schema = opened.tiledb().schema();
    facts.add("array", "", "kind", &schema.kind);
    facts.add("array", "", "format version", &schema.version);
    facts.add("array", "", "tile order", &schema.tile_order);
    facts.add("array", "", "cell order", &schema.cell_order);
    if schema.kind == ArrayKind::Sparse {
        facts.add("array", "", "capacity", &schema.capacity);
        facts.add("array", "", "allows duplicates", &schema.allows_duplicates);
        facts.add("array", "", "delete conditions", &opened.tiledb().deletions().len());
    }
    if let Some(ranges) = &schema.current_domain {
        facts.add("array", "", "current domain", &ranges_text(ranges, opened));
    }
}

fn of_dimension(dimension: &DimensionSchema, opened: &TileDbReader, facts: &mut Properties) {
    let schema = opened.tiledb().schema();
    let name = &dimension.name;
    facts.add("dimension", name, "datatype", &dimension.datatype);
    let domain = match opened.domain_text(dimension) {
        Some([low, high]) => format!("{low} to {high}"),
        None => "any text".to_owned(),
    };
    facts.add("dimension", name, "domain", &domain);
    if let Some(extent) = dimension.extent_text() {
        facts.add("dimension", name, "tile extent", &extent);
    }
    // Coordinates of dense arrays are not stored.
    if schema.kind == ArrayKind::Sparse {
        // A dimension without filters of its own has those of all coordinates.
        let own = !dimension.pipeline.is_empty();
        let filters = if own { &dimension.pipeline } else { &schema.coords_pipeline };
        facts.add("dimension", name, "filters", &filters);
    }
}

fn of_attribute(attribute: &Attribute, facts: &mut Properties) {
    let name = &attribute.name;
    facts.add("attribute", name, "datatype", &attribute.datatype);
    facts.add("attribute", name, "values per cell", &attribute.values_per_cell);
    facts.add("attribute", name, "nullable", &attribute.nullable);
    facts.add("attribute", name, "filters", &attribute.pipeline);
}

/// Returns a row per visible fragment, oldest first. `levels` are those of their R-trees.
pub(super) fn fragments(opened: &TileDbReader, levels: Vec<Option<u32>>) -> Result<RecordBatch> {
    let all = opened.tiledb().fragments();
    let text = |of: fn(&Fragment) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(all.iter().map(of)))
    };
    let time = |of: fn(&Fragment) -> u64| -> ArrayRef {
        // Only forged names have times beyond Arrow's range, and these become NULL.
        let times = all.iter().map(|it| i64::try_from(of(it)).ok());
        Arc::new(times.collect::<TimestampMillisecondArray>())
    };
    let domain = all.iter().map(|it| Some(ranges_text(&it.domain, opened)));
    let columns: [(&str, ArrayRef, bool); 9] = [
        ("fragment", text(|it| it.name.clone()), false),
        ("written_from", time(|it| it.t1), true),
        ("written_to", time(|it| it.t2), true),
        (
            "format_version",
            Arc::new(UInt32Array::from_iter_values(all.iter().map(|it| it.version))),
            false,
        ),
        ("non_empty_domain", Arc::new(domain.collect::<StringArray>()), true),
        ("tiles", Arc::new(UInt64Array::from_iter_values(all.iter().map(|it| it.tiles))), false),
        ("cells", Arc::new(all.iter().map(|it| it.cells).collect::<UInt64Array>()), true),
        ("rtree_levels", Arc::new(UInt32Array::from(levels)), true),
        ("bytes", Arc::new(UInt64Array::from_iter_values(all.iter().map(Fragment::bytes))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(failed_to("make rows of facts"))
}

/// Formats ranges of coordinates: `[1, 3] × [1970-01-01, 1970-02-01]`.
fn ranges_text(ranges: &[CoordinateRange], opened: &TileDbReader) -> String {
    let dimensions = &opened.tiledb().schema().dimensions;
    let shown = |(dimension, range): (&DimensionSchema, &CoordinateRange)| {
        format!("[{}]", opened.range_text(dimension, range).join(", "))
    };
    dimensions.iter().zip(ranges).map(shown).collect::<Vec<_>>().join(" × ")
}
