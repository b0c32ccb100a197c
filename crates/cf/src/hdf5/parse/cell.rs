//! The types of cells.

use std::sync::Arc;

use hdf5_reader::messages::datatype::{Datatype, DatatypeMessage};
use hdf5_reader::{ByteOrder, EnumMember, StringPadding, StringSize, VarLenKind};

use super::super::bits::Bits;
use super::super::field::StoredFields;
use super::super::file_bytes::Widths;
use crate::hierarchy::{CellType, Multiples, numpy_unit};
use gridfusion_core::format::ElementType;

/// A type of cells, and how they are stored.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::hdf5) struct StoredCell {
    pub(in crate::hdf5) cell: CellType,
    /// Bytes of a stored cell; of a reference, if the cell is in a heap.
    pub(in crate::hdf5) width: u64,
    pub(in crate::hdf5) is_big_endian: bool,
    /// The bytes after the end of a text, unless they are zeros alone.
    pub(in crate::hdf5) after_text: Option<AfterText>,
    /// The bits of an integer, unless it uses all.
    pub(in crate::hdf5) bits: Option<Bits>,
    /// The units that times count, unless each is one.
    pub(in crate::hdf5) multiples: Option<Multiples>,
    /// How the fields of a compound are stored.
    pub(in crate::hdf5) fields: StoredFields,
}

/// The bytes after the end of a text in its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hdf5) enum AfterText {
    /// Spaces, as in Fortran.
    Spaces,
    /// A zero, and then any bytes, as in C.
    ZeroAndAnything,
}

/// Returns the type of cells; the name of the type if it cannot be read.
pub(super) fn stored_cell(
    message: &DatatypeMessage,
    bits: Option<Bits>,
    widths: Widths,
) -> std::result::Result<StoredCell, String> {
    let datatype = &message.datatype;
    let mut stored = StoredCell {
        cell: CellType::Text,
        width: u64::from(message.size),
        is_big_endian: is_big_endian(datatype),
        after_text: None,
        bits,
        multiples: None,
        fields: StoredFields::default(),
    };
    stored.cell = match datatype {
        Datatype::FixedPoint { .. }
        | Datatype::Bitfield { .. }
        | Datatype::FloatingPoint { .. } => CellType::Number(number(datatype)?),
        Datatype::String { size: StringSize::Fixed(width), padding, .. } => {
            stored.after_text = match padding {
                StringPadding::SpacePad => Some(AfterText::Spaces),
                // A text of one byte has no room for a zero.
                StringPadding::NullTerminate if *width > 1 => Some(AfterText::ZeroAndAnything),
                StringPadding::NullTerminate | StringPadding::NullPad => None,
            };
            CellType::FixedUtf8(*width)
        }
        _ if is_text_reference(datatype) => {
            stored.width = widths.reference() as u64;
            CellType::Text
        }
        Datatype::Compound { .. } => return Err("compounds".to_owned()),
        Datatype::Enum { base, members } => enumeration(base, members, bits)?,
        Datatype::Opaque { size, tag } => opaque(*size, tag).0,
        Datatype::VarLen { .. } | Datatype::String { .. } => {
            return Err("lists of any length".to_owned());
        }
        Datatype::Array { .. } => return Err("arrays within cells".to_owned()),
        Datatype::Reference { .. } => return Err("references to objects".to_owned()),
    };
    if let Datatype::Opaque { tag, .. } = datatype {
        stored.is_big_endian = stored.cell.word() > 1 && tag.starts_with("NUMPY:>");
        stored.multiples = Multiples::new(opaque(message.size, tag).1, stored.is_big_endian);
    }
    match stored.cell.width() {
        Some(width) if width != stored.width => {
            Err(format!("{} in {} bytes", stored.cell, stored.width))
        }
        _ => Ok(stored),
    }
}

/// Whether values are references to texts in the global heap.
pub(super) fn is_text_reference(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::String { size: StringSize::Variable, .. } => true,
        Datatype::VarLen { kind: VarLenKind::String, .. } => match datatype {
            Datatype::VarLen { base, .. } => base.is_vlen_string_base(),
            _ => false,
        },
        _ => false,
    }
}

pub(super) fn is_big_endian(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::FixedPoint { byte_order, .. }
        | Datatype::FloatingPoint { byte_order, .. }
        | Datatype::Bitfield { byte_order, .. } => *byte_order == ByteOrder::BigEndian,
        Datatype::Enum { base, .. } => is_big_endian(base),
        Datatype::Compound { fields, .. } => {
            fields.first().is_some_and(|field| is_big_endian(&field.datatype))
        }
        _ => false,
    }
}

/// Returns the type of a number.
pub(super) fn number(datatype: &Datatype) -> std::result::Result<ElementType, String> {
    Ok(match *datatype {
        Datatype::FixedPoint { size: 1, signed: true, .. } => ElementType::I8,
        Datatype::FixedPoint { size: 2, signed: true, .. } => ElementType::I16,
        Datatype::FixedPoint { size: 4, signed: true, .. } => ElementType::I32,
        Datatype::FixedPoint { size: 8, signed: true, .. } => ElementType::I64,
        Datatype::FixedPoint { size: 1, .. } | Datatype::Bitfield { size: 1, .. } => {
            ElementType::U8
        }
        Datatype::FixedPoint { size: 2, .. } | Datatype::Bitfield { size: 2, .. } => {
            ElementType::U16
        }
        Datatype::FixedPoint { size: 4, .. } | Datatype::Bitfield { size: 4, .. } => {
            ElementType::U32
        }
        Datatype::FixedPoint { size: 8, .. } | Datatype::Bitfield { size: 8, .. } => {
            ElementType::U64
        }
        Datatype::FloatingPoint { size: 2, .. } => ElementType::F16,
        Datatype::FloatingPoint { size: 4, .. } => ElementType::F32,
        Datatype::FloatingPoint { size: 8, .. } => ElementType::F64,
        Datatype::FixedPoint { size, .. } | Datatype::Bitfield { size, .. } => {
            return Err(format!("integers of {size} bytes"));
        }
        Datatype::FloatingPoint { size, .. } => return Err(format!("floats of {size} bytes")),
        _ => return Err("other than numbers".to_owned()),
    })
}

/// h5py writes booleans as an enumeration of FALSE and TRUE.
fn enumeration(
    base: &Datatype,
    members: &[EnumMember],
    bits: Option<Bits>,
) -> std::result::Result<CellType, String> {
    let index = number(base)?;
    if !matches!(base, Datatype::FixedPoint { .. }) {
        return Err(format!("an enumeration of {index}"));
    }
    let named = |name: &str, value: u8| {
        members.iter().any(|member| member.name == name && member.value == [value])
    };
    if members.len() == 2 && named("FALSE", 0) && named("TRUE", 1) {
        return Ok(CellType::Boolean);
    }
    let is_big_endian = is_big_endian(base);
    let value = |member: &EnumMember| {
        let mut value = member.value.clone();
        if let Some(bits) = bits {
            bits.apply(&mut value);
        }
        integer(&value, is_big_endian, !index.is_unsigned())
    };
    let names = members.iter().map(|member| (value(member), member.name.clone())).collect();
    Ok(CellType::Enumeration { index, names: Arc::new(names) })
}

/// h5py tags NumPy's times with their type, such as `NUMPY:<M8[ns]`. Also returns the units that a time counts.
fn opaque(size: u32, tag: &str) -> (CellType, i64) {
    let numpy = tag.strip_prefix("NUMPY:").map(|kind| kind.trim_start_matches(['<', '>', '=']));
    let time = numpy.and_then(|kind| {
        let (kind, unit) = kind.strip_suffix(']')?.split_once('[')?;
        let (multiple, unit) = numpy_unit(unit)?;
        match kind {
            "M8" | "datetime64" => Some((CellType::TimePoint(unit), multiple)),
            "m8" | "timedelta64" => Some((CellType::TimeSpan(unit), multiple)),
            _ => None,
        }
    });
    time.filter(|_| size == 8).unwrap_or((CellType::FixedBytes(size), 1))
}

/// Returns the value of an integer of up to 8 bytes.
pub(super) fn integer(bytes: &[u8], is_big_endian: bool, is_signed: bool) -> i128 {
    let number = |number: i128, byte: &u8| number << 8 | i128::from(*byte);
    let bytes = bytes.get(..8).unwrap_or(bytes);
    let bits = match is_big_endian {
        true => bytes.iter().fold(0, number),
        false => bytes.iter().rev().fold(0, number),
    };
    let end = 1_i128 << (8 * bytes.len());
    if is_signed && 2 * bits >= end && bits > 0 { bits - end } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_signs_and_orders() {
        assert_eq!(integer(&[0xfe, 0xff], false, true), -2);
        assert_eq!(integer(&[0xfe, 0xff], false, false), 0xfffe);
        assert_eq!(integer(&[1, 2], true, true), 258);
        assert_eq!(integer(&[0x80; 8], true, true), i128::from(0x8080_8080_8080_8080_u64 as i64));
        assert_eq!(integer(&[], true, true), 0);
    }

    #[test]
    fn tags_of_times() {
        use gridfusion_core::format::TimeUnit;
        for (size, tag, expected) in [
            (8, "NUMPY:<M8[ns]", (CellType::TimePoint(TimeUnit::Nanosecond), 1)),
            (8, "NUMPY:>m8[s]", (CellType::TimeSpan(TimeUnit::Second), 1)),
            (8, "NUMPY:<M8[10s]", (CellType::TimePoint(TimeUnit::Second), 10)),
            (4, "NUMPY:<M8[s]", (CellType::FixedBytes(4), 1)),
            (3, "colour", (CellType::FixedBytes(3), 1)),
        ] {
            assert_eq!(opaque(size, tag), expected, "{tag}");
        }
    }
}
