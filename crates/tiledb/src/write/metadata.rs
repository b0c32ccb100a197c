//! The metadata of a new array: its attributes, and those of its columns.
//!
//! TileDB has metadata of arrays only. The keys of columns are those of TileDB-CF: `__tiledb_attr.t2m.units` is the attribute `units`
//! of `t2m`, and `__tiledb_dim.lat.units` that of the dimension `lat`.

use gridfusion_core::Result;
use gridfusion_core::write::{Attributes, NewArray};
use serde_json::Value;

use super::stored::Fields;
use crate::bytes::{Datatype, encode_generic_tile};
use crate::labels::{ATTRIBUTE_KEY, DIMENSION_KEY};

/// Returns the file of an array's metadata; `None` if there is none.
///
/// # Errors
/// `Internal` errors only.
pub(super) fn metadata_file(array: &NewArray) -> Result<Option<Vec<u8>>> {
    let mut fields = Fields::default();
    add(&mut fields, "", array.attributes());
    for dimension in array.dimensions() {
        add(&mut fields, &format!("{DIMENSION_KEY}{}.", dimension.name), &dimension.attributes);
    }
    for variable in array.variables() {
        add(&mut fields, &format!("{ATTRIBUTE_KEY}{}.", variable.name), &variable.attributes);
    }
    match fields.0.is_empty() {
        true => Ok(None),
        false => encode_generic_tile(&fields.0).map(Some),
    }
}

fn add(fields: &mut Fields, prefix: &str, attributes: &Attributes) {
    for (name, value) in attributes {
        let (datatype, count, bytes) = stored(value);
        fields.text32(&format!("{prefix}{name}"));
        fields.flag(false); // not deleted
        fields.u8(datatype.code());
        fields.u32(count as u32);
        fields.bytes(&bytes);
    }
}

/// Returns the type of a value, the number of its elements and their bytes. Values that are neither numbers nor texts become JSON.
fn stored(value: &Value) -> (Datatype, usize, Vec<u8>) {
    let one = std::slice::from_ref(value);
    let values = value.as_array().map_or(one, Vec::as_slice);
    let all = |bytes: Option<Vec<[u8; 8]>>| bytes.filter(|bytes| !bytes.is_empty());
    let integers = values.iter().map(|it| it.as_i64().map(i64::to_le_bytes)).collect();
    if let Some(bytes) = all(integers) {
        return (Datatype::Int64, bytes.len(), bytes.concat());
    }
    let floats = values.iter().map(|it| it.as_f64().map(f64::to_le_bytes)).collect();
    if let Some(bytes) = all(floats) {
        return (Datatype::Float64, bytes.len(), bytes.concat());
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (Datatype::StringUtf8, text.len(), text.into_bytes())
}
