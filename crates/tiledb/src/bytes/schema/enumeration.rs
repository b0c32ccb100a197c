//! Enumerations: lists of values that the integers of an attribute index.
//!
//! ```text
//!   values    "Mon"  ""  "Tue"          cells of the attribute   0 0 2
//!   data      MonTue                    SQL shows                Mon Mon Tue
//!   offsets   0  3  3  6
//! ```

use super::attribute::ValuesPerCell;
use crate::bytes::datatype::Datatype;
use crate::bytes::filter::EncryptionKey;
use crate::bytes::generic_tile;
use crate::bytes::text::{flag, numbers, text32};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// A list of values that an attribute indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// The number of elements of `datatype` in each value of the list.
    pub values_per_cell: ValuesPerCell,
    /// Whether the order of the list is the order of its values.
    pub ordered: bool,
    /// The bytes of all values, one after the other.
    data: Vec<u8>,
    /// The offset of each value in `data`, and then the end of the last value.
    offsets: Vec<usize>,
}

const REGION: &str = "enumeration";

impl Enumeration {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of value number `i`; `None` if `i` is not less than [`Enumeration::len`].
    pub fn value(&self, i: usize) -> Option<&[u8]> {
        self.data.get(*self.offsets.get(i)?..*self.offsets.get(i.checked_add(1)?)?)
    }

    /// Parses a file of the folder `__schema/__enumerations`.
    ///
    /// # Errors
    /// `Corrupt` if it is malformed, `Unsupported` for unknown versions, and `Usage` if the key does not fit.
    pub(in crate::bytes) fn parse(stored: &[u8], key: Option<&EncryptionKey>) -> Result<Self> {
        let content = generic_tile::decode(REGION, 0, stored, key)?;
        let mut reader = Reader::new(REGION, 0, &content);
        let version = reader.u32()?;
        if version != 0 {
            return Err(Error::unsupported(format!("a TileDB enumeration of version {version}")));
        }
        let name = text32(&mut reader, "the enumeration's name")?;
        // The name of this file, which the schema lists, too.
        text32(&mut reader, "the enumeration's file name")?;
        let datatype = Datatype::from_code(reader.u8()?)?;
        let values_per_cell = ValuesPerCell::parse(&mut reader)?;
        let ordered = flag(&mut reader, "ordered")?;
        let len = to_usize(reader.u64()?);
        let data = reader.take(len)?.to_vec();
        let offsets = match values_per_cell {
            ValuesPerCell::Variable => stored_offsets(&mut reader, len)?,
            ValuesPerCell::Fixed(values) => {
                let size = u64::from(values) * datatype.size();
                regular_offsets(&reader, len, to_usize(size))?
            }
        };
        reader.end()?;
        Ok(Self { name, datatype, values_per_cell, ordered, data, offsets })
    }
}

/// Returns the offsets of values of `size` bytes each, and then the end of the last value: 0, 4 and 8 for
/// `len` 8 and `size` 4.
fn regular_offsets(reader: &Reader<'_>, len: usize, size: usize) -> Result<Vec<usize>> {
    if !len.is_multiple_of(size) {
        return Err(reader.corrupt(format!("{len} bytes of values, not a multiple of {size}")));
    }
    Ok((0..=len).step_by(size).collect())
}

/// Reads the offsets of values of variable length, and adds the end of the last value.
fn stored_offsets(reader: &mut Reader<'_>, len: usize) -> Result<Vec<usize>> {
    let offset_bytes = reader.u64()?;
    if !offset_bytes.is_multiple_of(8) {
        return Err(reader.corrupt(format!("{offset_bytes} bytes of offsets, not a multiple of 8")));
    }
    let mut offsets: Vec<usize> =
        numbers(reader, offset_bytes / 8)?.into_iter().map(to_usize).collect();
    offsets.push(len);
    let begins_at_0 = offsets.first() == Some(&0);
    if !offsets.is_sorted() || !begins_at_0 {
        return Err(reader.corrupt("offsets that do not ascend from 0 to the end of the values"));
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::datatype::VARIABLE;
    use crate::bytes::testing::{enumeration, generic_tile};

    fn parse(content: &[u8]) -> Result<Enumeration> {
        Enumeration::parse(&generic_tile(content), None)
    }

    #[test]
    fn values_of_any_and_of_fixed_length() {
        let words = parse(&enumeration("e", 12, VARIABLE, b"onetwo", &[0, 3, 3])).unwrap();
        let values: Vec<&[u8]> = (0..).map_while(|i| words.value(i)).collect();
        assert_eq!(values, [&b"one"[..], b"", b"two"]);
        let numbers = parse(&enumeration("e", 7, 1, &[1, 0, 2, 0], &[])).unwrap();
        assert_eq!((numbers.len(), numbers.value(1)), (2, Some(&[2, 0][..])));
        assert!(parse(&enumeration("e", 7, 1, &[], &[])).unwrap().is_empty());
    }

    #[test]
    fn bad_offsets_are_refused() {
        for offsets in [&[1, 3][..], &[0, 7], &[0, 3, 2], &[u64::MAX]] {
            let content = enumeration("e", 12, VARIABLE, b"onetwo", offsets);
            assert!(parse(&content).is_err(), "{offsets:?}");
        }
        assert!(parse(&enumeration("e", 7, 1, &[1, 0, 2], &[])).is_err());
        let content = enumeration("e", 12, VARIABLE, b"onetwo", &[0, 3]);
        for len in 0..content.len() {
            assert!(parse(&content[..len]).is_err());
        }
    }
}
