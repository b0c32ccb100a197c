//! Schema evolution: finds the array's attributes in the schemas of fragments.
//!
//! An attribute may have been added, dropped, or dropped and added again since a fragment was written. Its
//! name finds it in the fragment's schema, wherever it stands there:
//!
//! ```text
//!   in the array       in the fragment        the fragment's cells of the attribute
//!   v INT32            (none)                 do not exist; older fragments or the fill value show
//!   v INT32            v INT32                are read
//!   v INT32 nullable   v INT32                are read, and never NULL
//!   v INT32            v INT32, any number    do not exist, as in TileDB
//!   v INT32            v INT64                cannot be read: an error where they show
//!   v INT32            v INT32 nullable       cannot be read: an error where they show
//! ```
//!
//! See crates/tiledb/FORMAT.md, section 8, "Schema evolution".

use std::collections::HashMap;
use std::ops::Range;

use super::overlay;
use super::overlay::FragmentBox;
use crate::bytes::array::TileDbArray;
use crate::bytes::fragments::Fragment;
use crate::bytes::schema::{ArraySchema, Attribute};
use gridfusion_core::{Error, ErrorKind, Result};

/// Returns the field of attribute number `attribute` of the array's `schema`: its number in the schema of
/// `fragment`. `None` if the fragment lacks the attribute, or if only one of the two has variable length.
///
/// # Errors
/// `Unsupported` if the fragment's values have another type, another number per cell, or NULLs that the
/// array does not allow.
pub(in crate::bytes) fn field_of(
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

/// The fragments that have one attribute of the array.
#[derive(Debug)]
pub(in crate::bytes) struct AttributeFragments {
    /// By number of the fragment, the error if its values cannot be read, and `None` if they can. Fragments
    /// without the attribute are not in the map.
    fragments: HashMap<usize, Option<Error>>,
}

impl AttributeFragments {
    /// Finds the fragments among `fragments` that have the attribute. Values that cannot be read are no error
    /// yet, because newer fragments may hide them everywhere.
    pub(in crate::bytes) fn new(
        array: &TileDbArray,
        attribute: usize,
        fragments: impl Iterator<Item = usize>,
    ) -> Result<Self> {
        let held = |number: usize| {
            // `None`: no such attribute. `Some(None)`: readable. `Some(Some(error))`: not readable.
            let held = match field_of(&array.schema, attribute, &array.fragments[number]) {
                Ok(field) => field.map(|_| None),
                Err(error) if error.kind() == ErrorKind::Unsupported => Some(Some(error)),
                Err(error) => return Err(error),
            };
            Ok(held.map(|error| (number, error)))
        };
        let fragments = fragments.map(held).filter_map(Result::transpose).collect::<Result<_>>()?;
        Ok(Self { fragments })
    }

    /// Returns the pieces that a chunk shows of the attribute, the oldest first. `parts` are the parts
    /// of its tile, as [`Overlay::parts`](overlay::Overlay::parts) returns them.
    ///
    /// # Errors
    /// `Unsupported` if the chunk shows values that [`field_of`] refuses.
    pub(in crate::bytes) fn pieces(
        &self,
        parts: &[FragmentBox],
        chunk: &[Range<u64>],
    ) -> Result<Vec<FragmentBox>> {
        let have = |fragment| self.fragments.contains_key(&fragment);
        let mut pieces = overlay::pieces(parts, chunk, have);
        let refused = |piece: &FragmentBox| self.fragments.get(&piece.fragment)?.as_ref();
        // Pieces that cannot be read hide older ones, too. They are an error only if a cell of them shows.
        for (at, piece) in pieces.iter().enumerate() {
            if let Some(error) = refused(piece)
                && !overlay::is_hidden(&piece.region, &pieces[at + 1..])
            {
                return Err(error.clone());
            }
        }
        pieces.retain(|piece| refused(piece).is_none());
        Ok(pieces)
    }
}

/// Describes why values of `stored` cannot be read as `wanted`; `None` if they can.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::datatype::VARIABLE;
    use crate::bytes::folder::OpenOptions;
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, UUID, generic_tile};
    use gridfusion_core::ErrorKind;

    /// Finds each of the array's attributes `now` in a fragment with the attribute `stored`.
    fn fields(stored: Vec<u8>, now: Vec<Vec<u8>>) -> Vec<Result<Option<usize>>> {
        let mut folder = Folder::default();
        let schema = |attributes| SchemaBytes { attributes, ..SchemaBytes::dense_2d() }.content();
        let before = generic_tile(&schema(vec![stored]));
        folder.put(&format!("__schema/{SCHEMA_NAME}"), &before);
        folder.put(&format!("__schema/__9_9_{UUID}"), &generic_tile(&schema(now)));
        folder.write(5, [(1, 5), (1, 7)], [0, 0], |_, _| 0);
        let array = folder.drive(OpenArray::new(OpenOptions::default())).unwrap();
        let attributes = 0..array.schema().attributes.len();
        attributes.map(|at| field_of(array.schema(), at, &array.fragments()[0])).collect()
    }

    fn number(name: &str, code: u8, nullable: bool) -> Vec<u8> {
        let fill = if code == 1 { &[0; 8][..] } else { &[0; 4] };
        testing::attribute(name, code, 1, fill, nullable, "")
    }

    #[test]
    fn attributes_are_found_by_name() {
        let found =
            fields(number("v", 0, false), vec![number("w", 0, false), number("v", 0, false)]);
        assert!(matches!(found[..], [Ok(None), Ok(Some(0))]));
    }

    #[test]
    fn values_of_another_kind_are_not_read_as_if_they_were_not() {
        let one = |stored, now| fields(stored, vec![now]).remove(0);
        let variable = testing::attribute("v", 0, VARIABLE, &[0; 4], false, "");
        assert_eq!(one(number("v", 0, false), variable.clone()).unwrap(), None);
        assert_eq!(one(variable, number("v", 0, false)).unwrap(), None);
        assert_eq!(one(number("v", 0, false), number("v", 0, true)).unwrap(), Some(0));
        let two = testing::attribute("v", 0, 2, &[0; 8], false, "");
        for (stored, now) in [
            (number("v", 0, false), number("v", 1, false)),
            (number("v", 0, false), number("v", 9, false)),
            (number("v", 0, false), two),
            (number("v", 0, true), number("v", 0, false)),
        ] {
            assert_eq!(one(stored, now).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}
