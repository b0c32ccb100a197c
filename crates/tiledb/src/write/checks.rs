//! Checks of arrays and rows before cells are appended.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use gridfusion_core::array::failed_to;
use gridfusion_core::{Error, Result};

use super::schema::VERSION;
use crate::bytes::{ArrayKind, ArraySchema, Attribute, CellOrder, Datatype, ValuesPerCell};

/// Fails for an array that is not written.
pub(super) fn check_schema(schema: &ArraySchema) -> Result<()> {
    let refused = |what: String| Err(Error::unsupported(format!("an append to {what}")));
    if schema.kind != ArrayKind::Dense {
        return refused("a sparse TileDB array".to_owned());
    }
    if schema.version != VERSION {
        return refused(format!(
            "a TileDB array of format version {}; upgrade it to {VERSION} with TileDB",
            schema.version
        ));
    }
    if let Some((name, _)) = schema.enumeration_files.first() {
        return refused(format!("a TileDB array with the enumeration \"{name}\""));
    }
    let orders = [schema.tile_order, schema.cell_order];
    if orders != [CellOrder::RowMajor; 2] {
        return refused("a TileDB array that is not in row-major order".to_owned());
    }
    schema.attributes.iter().try_for_each(|attribute| {
        let Attribute { name, datatype, values_per_cell, .. } = attribute;
        let is_text = matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8);
        let is_variable = *values_per_cell == ValuesPerCell::Variable;
        let is_one = *values_per_cell == ValuesPerCell::Fixed(1);
        if attribute.enumeration.is_some() || !(is_text && is_variable || !is_text && is_one) {
            return refused(format!(
                "an array whose attribute \"{name}\" has {values_per_cell} values of {datatype}, or an enumeration"
            ));
        }
        let of_bytes = [Some(&schema.offsets_pipeline), schema.validity_pipeline.as_ref()];
        let of_bytes = of_bytes.into_iter().flatten().find_map(|it| it.not_written(false));
        match attribute.pipeline.not_written(is_text).or(of_bytes) {
            Some(filter) => refused(format!("an array with the filter {filter} of \"{name}\"")),
            None => Ok(()),
        }
    })
}

/// Fails unless the rows have a column for each dimension, and all others are attributes.
pub(super) fn check_columns<'a>(
    columns: &[&str],
    dimensions: impl Iterator<Item = &'a str>,
    attributes: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let dimensions: Vec<&str> = dimensions.collect();
    let known: Vec<&str> = dimensions.iter().copied().chain(attributes).collect();
    if let Some(other) = columns.iter().find(|it| !known.contains(it)) {
        let known = known.join(", ");
        return Err(Error::usage(format!("the array has no column \"{other}\"; it has {known}")));
    }
    match dimensions.iter().find(|it| !columns.contains(it)) {
        None => Ok(()),
        Some(missing) => Err(Error::usage(format!(
            "the array has the dimension \"{missing}\", and the rows have no column for it"
        ))),
    }
}

/// Whether labels are ASCII texts, or no texts.
pub(super) fn is_ascii(labels: &ArrayRef) -> Result<bool> {
    if !labels.data_type().is_string() {
        return Ok(true);
    }
    let texts = cast(labels, &DataType::Utf8).map_err(failed_to("read labels"))?;
    Ok(texts.as_string::<i32>().iter().flatten().all(str::is_ascii))
}

/// Fails for a column of a kind that is not the array's.
pub(super) fn check_kind(name: &str, new: &DataType, there: &DataType) -> Result<()> {
    let is_number = |it: &DataType| it.is_integer() || it.is_floating();
    let is_time = |it: &DataType| matches!(it, DataType::Date32 | DataType::Timestamp(..));
    let is_same = new == there
        || new.is_null()
        || is_number(new) && is_number(there)
        || is_time(new) && is_time(there)
        || new.is_string() && there.is_string();
    match is_same {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "the column \"{name}\" is of type {new}, and the array's of type {there}"
        ))),
    }
}
