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
    /// This number of values of a type with a width.
    Array(Box<CellType>, u32),
    /// Any number of values of a type with a width.
    List(Box<CellType>),
}

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
