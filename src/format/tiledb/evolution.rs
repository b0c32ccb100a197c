//! Attributes come and go: which attribute of a fragment's schema is one of the array's.

use super::{ArraySchema, Attribute, Fragment};
use crate::error::{Error, Result};

/// The place in the schema of `fragment` of attribute number `attribute` of the array's `schema`; `None`
/// if the fragment holds nothing of it, so that older fragments and the fill value show through.
///
/// # Errors
/// `Unsupported` if the fragment's values are of another type.
pub(super) fn field_of(
    schema: &ArraySchema,
    attribute: usize,
    fragment: &Fragment,
) -> Result<Option<usize>> {
    let wanted = schema.attributes.get(attribute);
    let wanted = wanted.ok_or_else(|| Error::internal(format!("no attribute {attribute}")))?;
    let Some(field) = fragment.schema.attribute_index(&wanted.name) else { return Ok(None) };
    let Some(stored) = fragment.schema.attributes.get(field) else { return Ok(None) };
    if stored.is_variable() != wanted.is_variable() {
        return Ok(None);
    }
    match difference(stored, wanted) {
        None => Ok(Some(field)),
        Some(what) => Err(Error::unsupported(format!(
            "attribute \"{}\" is {what} in fragment {}, but not in the array's schema",
            wanted.name, fragment.name
        ))),
    }
}

/// What makes the values of `stored` no values of `wanted`.
fn difference(stored: &Attribute, wanted: &Attribute) -> Option<String> {
    if stored.datatype != wanted.datatype {
        Some(format!("of type {}", stored.datatype))
    } else if stored.values_per_cell != wanted.values_per_cell {
        Some(format!("of {:?} values per cell", stored.values_per_cell))
    } else if stored.nullable && !wanted.nullable {
        Some("nullable".to_owned())
    } else {
        None
    }
}
