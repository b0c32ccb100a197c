//! Attributes of a file or a variable.

use std::collections::btree_map::Entry;

use super::external_type::ExternalType;
use super::reader::{HeaderReader, Pause};
use crate::hierarchy::{Attribute, Attributes, attribute_text};
use gridfusion_core::format::ElementType;

/// The tag of a list of attributes.
const TAG: u32 = 12;

/// The attributes of a file or a variable.
#[derive(Debug, Default)]
pub(super) struct AttributeList {
    pub(super) values: Attributes,
    /// The type and the little-endian bytes of `_FillValue`, if it is a single value.
    pub(super) fill: Option<(ExternalType, Vec<u8>)>,
}

impl AttributeList {
    /// Reads a list of attributes.
    pub(super) fn read(reader: &mut HeaderReader<'_>) -> Result<Self, Pause> {
        // A name, a type and a number of values.
        let least = 2 * reader.version.count_len() + 8;
        let count = reader.list(TAG, "attributes", least)?;
        let mut list = Self::default();
        for _ in 0..count {
            list.read_one(reader)?;
        }
        Ok(list)
    }

    fn read_one(&mut self, reader: &mut HeaderReader<'_>) -> Result<(), Pause> {
        let at = reader.offset();
        let name = reader.name("an attribute")?;
        let external = read_type(reader)?;
        let count = reader.count_of("values of an attribute", external.size())?;
        let stored = reader.padded(count.saturating_mul(external.size()))?;
        if name == "_FillValue" && count == 1 {
            self.fill = Some((external, stored.iter().rev().copied().collect()));
        }
        match self.values.entry(name) {
            Entry::Vacant(place) => _ = place.insert(attribute(external, stored)),
            Entry::Occupied(place) => {
                let message = format!("a second attribute named \"{}\"", place.key());
                return Err(reader.corrupt(at, message));
            }
        }
        Ok(())
    }
}

/// Reads the code of a type.
pub(super) fn read_type(reader: &mut HeaderReader<'_>) -> Result<ExternalType, Pause> {
    let (at, code) = (reader.offset(), reader.u32()?);
    let is_cdf5 = reader.version.is_cdf5();
    ExternalType::from_code(code, is_cdf5).ok_or_else(|| {
        let most = if is_cdf5 { 11 } else { 6 };
        let message = format!("type {code}, expected 1 to {most} in {}", reader.version);
        reader.corrupt(at, message)
    })
}

/// Returns the value of stored bytes.
fn attribute(external: ExternalType, stored: &[u8]) -> Attribute {
    let element = match external {
        ExternalType::Char => return Attribute::Text(attribute_text(stored)),
        ExternalType::Number(element) => element,
    };
    match element {
        ElementType::F32 => {
            let words = stored.as_chunks().0.iter();
            Attribute::Singles(words.map(|word| f32::from_be_bytes(*word)).collect())
        }
        ElementType::F64 => {
            let words = stored.as_chunks().0.iter();
            Attribute::Doubles(words.map(|word| f64::from_be_bytes(*word)).collect())
        }
        _ => {
            let words = stored.chunks_exact(element.size() as usize);
            Attribute::Integers(words.map(|word| integer(word, element.is_unsigned())).collect())
        }
    }
}

fn integer(word: &[u8], is_unsigned: bool) -> i128 {
    let is_negative = !is_unsigned && word.first().is_some_and(|byte| *byte >= 0x80);
    let sign = if is_negative { -1 } else { 0 };
    word.iter().fold(sign, |number, byte| number << 8 | i128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_signs() {
        let of = |code: u32, stored: &[u8]| {
            attribute(ExternalType::from_code(code, true).unwrap(), stored)
        };
        assert_eq!(of(1, b"\xff\x01\x80"), Attribute::Integers(vec![-1, 1, -128]));
        assert_eq!(of(7, b"\xff"), Attribute::Integers(vec![255]));
        assert_eq!(of(3, b"\x80\0\0\x02"), Attribute::Integers(vec![-32_768, 2]));
        assert_eq!(of(10, &i64::MIN.to_be_bytes()), Attribute::Integers(vec![i64::MIN.into()]));
        assert_eq!(of(11, &[255; 8]), Attribute::Integers(vec![u64::MAX.into()]));
        assert_eq!(of(5, &1.5_f32.to_be_bytes()), Attribute::Singles(vec![1.5]));
        assert_eq!(of(6, &0.1_f64.to_be_bytes()), Attribute::Doubles(vec![0.1]));
        assert_eq!(of(4, b""), Attribute::Integers(vec![]));
    }

    #[test]
    fn text_is_utf8_or_latin1() {
        assert_eq!(attribute_text("Höhe\0\0".as_bytes()), "Höhe");
        assert_eq!(attribute_text(b"H\xf6he"), "Höhe");
        assert_eq!(attribute_text(b"a\0b\0"), "a\0b");
        assert_eq!(attribute_text(b"\0\0"), "");
    }
}
