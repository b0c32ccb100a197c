//! The types of cells that variables can have.

use std::fmt;
use std::sync::Arc;

use super::record::Record;
use gridfusion_core::format::{ElementType, TimeUnit};

/// The type of a variable's cells, after decoding: little-endian, and without the padding of the format.
#[derive(Debug, Clone, PartialEq)]
pub enum CellType {
    /// A number.
    Number(ElementType),
    /// A byte, where 0 is false.
    Boolean,
    /// Two floats of this type: the real part, then the imaginary part.
    Complex(ElementType),
    /// An `i64` that counts this unit since 1970-01-01; `i64::MIN` is NaT.
    TimePoint(TimeUnit),
    /// An `i64` that counts this unit; `i64::MIN` is NaT.
    TimeSpan(TimeUnit),
    /// UTF-8 text in this number of bytes, with NUL bytes after its end.
    FixedUtf8(u32),
    /// Text of this number of code points of 4 bytes each, with zeros after its end.
    FixedUtf32(u32),
    /// UTF-8 text of any length.
    Text,
    /// This number of bytes.
    FixedBytes(u32),
    /// Bytes of any length.
    Bytes,
    /// An integer that stands for a name.
    Enumeration {
        /// The type of the integer.
        index: ElementType,
        /// Integers and their names, in any order.
        names: Arc<Vec<(i128, String)>>,
    },
    /// Several values with names.
    Record(Arc<Record>),
    /// This number of values of a type.
    Array(Box<CellType>, u32),
    /// Any number of values of a type with a width.
    List(Box<CellType>),
}

/// The bytes of a reference in a compound to a value of any length.
pub(super) const REFERENCE: u64 = 16;

impl CellType {
    /// Returns the bytes of a cell; `None` if cells have any length.
    pub fn width(&self) -> Option<u64> {
        Some(match self {
            Self::Number(element) | Self::Enumeration { index: element, .. } => element.size(),
            Self::Boolean => 1,
            Self::Complex(element) => 2 * element.size(),
            Self::TimePoint(_) | Self::TimeSpan(_) => 8,
            Self::FixedUtf8(width) | Self::FixedBytes(width) => u64::from(*width),
            Self::FixedUtf32(points) => 4 * u64::from(*points),
            Self::Record(record) => u64::from(record.width),
            Self::Array(item, len) => item.width()?.saturating_mul(u64::from(*len)),
            Self::Text | Self::Bytes | Self::List(_) => return None,
        })
    }

    /// Whether values refer to others, of any length: texts and lists, or arrays and compounds of them.
    pub fn has_references(&self) -> bool {
        match self {
            Self::Text | Self::Bytes | Self::List(_) => true,
            Self::Array(item, _) => item.has_references(),
            Self::Record(record) => record.fields.iter().any(|field| field.cell.has_references()),
            _ => false,
        }
    }

    /// Returns the bytes before the values that others in a compound or an array refer to; `None` for a single value.
    pub fn bytes_in_cell(&self) -> Option<u32> {
        let is_single = matches!(self, Self::Text | Self::Bytes | Self::List(_));
        let bytes = self.references(0, &mut vec![]);
        u32::try_from(bytes).ok().filter(|_| !is_single)
    }

    /// Adds the places of references in a value that begins at `base`, and returns its bytes in a cell.
    pub(super) fn references(&self, base: u64, places: &mut Vec<u64>) -> u64 {
        match self {
            Self::Text | Self::Bytes | Self::List(_) => {
                places.push(base);
                REFERENCE
            }
            Self::Array(item, len) if item.has_references() => {
                (0..*len).fold(0, |width, _| width + item.references(base + width, places))
            }
            Self::Record(record) => {
                for field in &record.fields {
                    field.cell.references(base + u64::from(field.offset), places);
                }
                u64::from(record.width)
            }
            other => other.width().unwrap_or_default(),
        }
    }

    /// Returns the bytes per word, which are reversed if they are stored big-endian; 1 if there are no words.
    pub fn word(&self) -> u64 {
        match self {
            Self::Number(element)
            | Self::Complex(element)
            | Self::Enumeration { index: element, .. } => element.size(),
            Self::TimePoint(_) | Self::TimeSpan(_) => 8,
            Self::FixedUtf32(_) => 4,
            // Fields of a record have orders of their own.
            Self::Boolean
            | Self::FixedUtf8(_)
            | Self::Text
            | Self::FixedBytes(_)
            | Self::Bytes
            | Self::Record(_)
            | Self::Array(..)
            | Self::List(_) => 1,
        }
    }
}

impl fmt::Display for CellType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(element) => write!(f, "{element}"),
            Self::Boolean => f.write_str("bool"),
            Self::Complex(element) => write!(f, "complex of {element}"),
            Self::TimePoint(unit) => write!(f, "datetime64 ({unit:?})"),
            Self::TimeSpan(unit) => write!(f, "timedelta64 ({unit:?})"),
            Self::FixedUtf8(1) => f.write_str("text of 1 byte"),
            Self::FixedUtf8(width) => write!(f, "text of {width} bytes"),
            Self::FixedUtf32(1) => f.write_str("text of 1 code point"),
            Self::FixedUtf32(points) => write!(f, "text of {points} code points"),
            Self::Text => f.write_str("text"),
            Self::FixedBytes(1) => f.write_str("1 byte"),
            Self::FixedBytes(width) => write!(f, "{width} bytes"),
            Self::Bytes => f.write_str("bytes"),
            Self::Enumeration { index, .. } => write!(f, "enumeration of {index}"),
            Self::Record(record) => {
                f.write_str("compound (")?;
                for (at, field) in record.fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", field.name, field.cell)?;
                }
                f.write_str(")")
            }
            Self::Array(item, len) => write!(f, "array of {len} {item}"),
            Self::List(item) => write!(f, "list of {item}"),
        }
    }
}
