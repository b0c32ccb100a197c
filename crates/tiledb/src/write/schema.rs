//! The bytes of a schema of a dense array (section 6 of the format).

use gridfusion_core::{Error, Result};

use super::stored::Fields;
use crate::bytes::{
    ArrayKind, ArraySchema, Attribute, CellOrder, CoordinateRange, DimensionDomain, DimensionLabel,
    DimensionLabelOrder, DimensionSchema, Pipeline, VARIABLE, ValuesPerCell, encode_generic_tile,
};

/// The format version that is written: that of libtiledb 2.25 to 2.30.
pub(super) const VERSION: u32 = 22;
/// Cells per tile of a sparse array, which dense ones declare as well.
const CAPACITY: u64 = 10_000;

/// Returns the schema of a dense array in row-major order, without filters of coordinates.
pub(super) fn dense_schema(
    dimensions: Vec<DimensionSchema>,
    attributes: Vec<Attribute>,
    labels: Vec<DimensionLabel>,
    current_domain: Option<Vec<CoordinateRange>>,
    of_bytes: &Pipeline,
) -> ArraySchema {
    ArraySchema {
        version: VERSION,
        kind: ArrayKind::Dense,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: CAPACITY,
        allows_duplicates: false,
        dimensions,
        attributes,
        labels,
        current_domain,
        coords_pipeline: Pipeline { filters: vec![] },
        offsets_pipeline: of_bytes.clone(),
        validity_pipeline: Some(of_bytes.clone()),
        enumeration_files: vec![],
    }
}

/// Returns the file of a schema of [`dense_schema`]. `order` is that of an attribute with labels.
///
/// # Errors
/// `Internal` for a schema that is none of a dense array.
pub(super) fn schema_file(
    schema: &ArraySchema,
    order: Option<DimensionLabelOrder>,
) -> Result<Vec<u8>> {
    let mut fields = Fields::default();
    fields.u32(schema.version);
    // No duplicates, dense, row-major tiles and cells.
    fields.bytes(&[0; 4]);
    fields.u64(schema.capacity);
    fields.bytes(&schema.coords_pipeline.bytes());
    fields.bytes(&schema.offsets_pipeline.bytes());
    fields.bytes(&schema.validity_pipeline.iter().flat_map(Pipeline::bytes).collect::<Vec<u8>>());
    fields.u32(schema.dimensions.len() as u32);
    for dimension in &schema.dimensions {
        add_dimension(&mut fields, dimension)?;
    }
    fields.u32(schema.attributes.len() as u32);
    for attribute in &schema.attributes {
        add_attribute(&mut fields, attribute, order);
    }
    fields.u32(schema.labels.len() as u32);
    for label in &schema.labels {
        fields.u32(label.dimension as u32);
        fields.text32(&label.name);
        fields.flag(label.relative);
        fields.text64(&label.uri);
        fields.text32(&label.attribute);
        fields.u8(order_code(Some(label.order)));
        fields.u8(label.datatype.code());
        fields.u32(values_code(label.values_per_cell));
        fields.flag(false); // not external
    }
    fields.u32(0); // no enumerations
    fields.u32(0); // the version of the current domain
    fields.flag(schema.current_domain.is_none());
    if let Some(ranges) = &schema.current_domain {
        fields.u8(0); // a rectangle
        for (range, dimension) in ranges.iter().zip(&schema.dimensions) {
            let Some((low, high)) = range.integers() else {
                return Err(Error::internal("a dense domain that is not of integers"));
            };
            fields.integer(low, dimension.datatype.size());
            fields.integer(high, dimension.datatype.size());
        }
    }
    encode_generic_tile(&fields.0)
}

fn add_dimension(fields: &mut Fields, dimension: &DimensionSchema) -> Result<()> {
    let DimensionDomain::Integer { low, high, extent: Some(extent) } = dimension.domain else {
        return Err(Error::internal("a dense dimension without tiles"));
    };
    let size = dimension.datatype.size();
    fields.text32(&dimension.name);
    fields.u8(dimension.datatype.code());
    fields.u32(1);
    fields.bytes(&dimension.pipeline.bytes());
    fields.u64(2 * size);
    fields.integer(low, size);
    fields.integer(high, size);
    fields.flag(false); // there is an extent
    fields.integer(extent, size);
    Ok(())
}

fn add_attribute(fields: &mut Fields, attribute: &Attribute, order: Option<DimensionLabelOrder>) {
    fields.text32(&attribute.name);
    fields.u8(attribute.datatype.code());
    fields.u32(values_code(attribute.values_per_cell));
    fields.bytes(&attribute.pipeline.bytes());
    fields.u64(attribute.fill.len() as u64);
    fields.bytes(&attribute.fill);
    fields.flag(attribute.nullable);
    fields.flag(attribute.fill_valid);
    fields.u8(order_code(order));
    fields.text32(""); // no enumeration
}

fn order_code(order: Option<DimensionLabelOrder>) -> u8 {
    match order {
        None | Some(DimensionLabelOrder::Unordered) => 0,
        Some(DimensionLabelOrder::Increasing) => 1,
        Some(DimensionLabelOrder::Decreasing) => 2,
    }
}

fn values_code(values: ValuesPerCell) -> u32 {
    match values {
        ValuesPerCell::Fixed(values) => values,
        ValuesPerCell::Variable => VARIABLE,
    }
}
