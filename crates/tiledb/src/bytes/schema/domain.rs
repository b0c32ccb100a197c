//! Dimensions: the types, domains and tile extents of an array's axes.
//!
//! Coordinates are `i128` throughout: that holds all values of `i64` and `u64`, and sums and differences of
//! coordinates cannot overflow it.

use crate::bytes::datatype::{Datatype, VARIABLE};
use crate::bytes::filter::Pipeline;
use crate::bytes::text::{flag, text32};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// A dimension of an array: its coordinates and its tiles.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DimensionSchema {
    /// Its name.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// The range of coordinates, and their division into tiles.
    pub domain: DimensionDomain,
    /// The filters of its coordinates, which only sparse arrays store.
    pub pipeline: Pipeline,
}

/// The coordinates of a dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum DimensionDomain {
    /// Whole numbers; dates and times count their unit.
    Integer {
        /// The least coordinate.
        low: i128,
        /// The greatest coordinate.
        high: i128,
        /// Coordinates per tile; `None` without tiles.
        extent: Option<i128>,
    },
    /// Floating-point numbers; only sparse arrays have such dimensions.
    Float {
        /// The least coordinate.
        low: f64,
        /// The greatest coordinate.
        high: f64,
        /// The length of a tile; `None` without tiles.
        extent: Option<f64>,
    },
    /// Text of any length; only sparse arrays have such dimensions.
    Text,
}

/// A range of coordinates of one dimension, both ends included.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CoordinateRange {
    /// Whole numbers; dates and times count their unit.
    Integer(i128, i128),
    /// Floating-point numbers, of either width.
    Float(f64, f64),
    /// The bytes of texts, which compare byte by byte.
    Text(Vec<u8>, Vec<u8>),
}

impl CoordinateRange {
    /// Returns the ends of a range of whole numbers; `None` for other coordinates.
    pub fn integers(&self) -> Option<(i128, i128)> {
        match self {
            Self::Integer(low, high) => Some((*low, *high)),
            Self::Float(..) | Self::Text(..) => None,
        }
    }

    /// Returns the range around two ranges of one dimension.
    #[must_use]
    pub fn around(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(low, high), Self::Integer(other_low, other_high)) => {
                Self::Integer(low.min(other_low), high.max(other_high))
            }
            (Self::Float(low, high), Self::Float(other_low, other_high)) => {
                Self::Float(low.min(other_low), high.max(other_high))
            }
            (Self::Text(low, high), Self::Text(other_low, other_high)) => {
                Self::Text(low.min(other_low), high.max(other_high))
            }
            // Ranges of one dimension have one type.
            (range, _) => range,
        }
    }

    /// Describes a range that ends before it begins.
    fn backwards(&self) -> String {
        match self {
            Self::Integer(low, high) => format!("from {low} down to {high}"),
            Self::Float(low, high) => format!("from {low} down to {high}"),
            Self::Text(low, high) => {
                format!("from \"{}\" down to \"{}\"", low.escape_ascii(), high.escape_ascii())
            }
        }
    }
}

impl DimensionSchema {
    /// Returns the extent of a tile in decimal; dates and times count their unit. `None` without tiles.
    pub fn extent_text(&self) -> Option<String> {
        match &self.domain {
            DimensionDomain::Integer { extent, .. } => extent.map(|extent| extent.to_string()),
            DimensionDomain::Float { extent, .. } => extent.map(|extent| extent.to_string()),
            DimensionDomain::Text => None,
        }
    }
}

/// An axis of a dense array: whole numbers from `low` to `high`, in tiles of `extent` that begin at
/// `low`. The last tile may end after `high`; writers fill it up.
///
/// ```text
///   low -5, high 5, extent 4     -5 -4 -3 -2 │ -1  0  1  2 │  3  4  5 (6)
///   tile                              0      │      1      │      2
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileAxis {
    pub(crate) low: i128,
    pub(crate) high: i128,
    pub(crate) extent: u64,
}

impl TileAxis {
    /// Returns the number of the tile that holds `coordinate`, which must not be less than `low`.
    pub(in crate::bytes) fn tile_of(&self, coordinate: i128) -> u64 {
        u64::try_from((coordinate - self.low) / i128::from(self.extent)).unwrap_or(u64::MAX)
    }

    /// Returns the first coordinate of a tile.
    pub(in crate::bytes) fn first_of(&self, tile: u64) -> i128 {
        self.low + i128::from(tile) * i128::from(self.extent)
    }
}

impl DimensionSchema {
    /// Parses a dimension of a schema of format `version`.
    ///
    /// # Errors
    /// `Corrupt` if the domain has the wrong size, ends before it begins, or has an extent of 0 or less.
    /// `Unsupported` for types that are no numbers, dates, times or text.
    pub(in crate::bytes) fn parse(reader: &mut Reader<'_>, version: u32) -> Result<Self> {
        let name = text32(reader, "the dimension's name")?;
        let datatype = Datatype::from_code(reader.u8()?)?;
        let is_text = reader.u32()? == VARIABLE;
        if is_text && datatype != Datatype::StringAscii {
            let message = format!("a dimension of any number of {datatype}");
            return Err(Error::unsupported(message));
        }
        let pipeline = Pipeline::parse(reader, version)?;
        let expected = if is_text { 0 } else { 2 * datatype.size() };
        let domain_len = reader.u64()?;
        if domain_len != expected {
            let message = format!(
                "a domain of {domain_len} bytes for a dimension of {datatype}, expected {expected}"
            );
            return Err(reader.corrupt(message));
        }
        let domain = DimensionDomain::parse(reader, datatype, is_text)?;
        Ok(Self { name, datatype, domain, pipeline })
    }

    /// Returns the dimension as an axis of tiles.
    ///
    /// # Errors
    /// `Unsupported` if its coordinates are not whole numbers, or not divided into tiles.
    pub(crate) fn tile_axis(&self) -> Result<TileAxis> {
        match self.domain {
            DimensionDomain::Integer { low, high, extent: Some(extent) } => {
                let extent = u64::try_from(extent)
                    .map_err(|_| Error::internal("a tile extent beyond its type"))?;
                Ok(TileAxis { low, high, extent })
            }
            _ => Err(Error::unsupported(format!(
                "a dense array whose dimension \"{}\" of type {} is not cut into tiles",
                self.name, self.datatype
            ))),
        }
    }

    /// Reads a range of coordinates, low end first.
    ///
    /// # Errors
    /// `Corrupt` if the range ends before it begins. A range of floats may have NaN as an end.
    pub(in crate::bytes) fn range(&self, reader: &mut Reader<'_>) -> Result<CoordinateRange> {
        let (range, ends_first) = match self.domain {
            DimensionDomain::Integer { .. } => {
                let low = integer(reader, self.datatype)?;
                let high = integer(reader, self.datatype)?;
                (CoordinateRange::Integer(low, high), low > high)
            }
            DimensionDomain::Float { .. } => {
                let low = float(reader, self.datatype)?;
                let high = float(reader, self.datatype)?;
                (CoordinateRange::Float(low, high), low > high)
            }
            DimensionDomain::Text => {
                // u64 bytes of both ends, u64 bytes of the low end, and then both ends.
                let len = to_usize(reader.u64()?);
                let low_len = to_usize(reader.u64()?);
                let ends = reader.take(len)?;
                let Some((low, high)) = ends.split_at_checked(low_len) else {
                    let message = format!("a text of {low_len} bytes in {len} bytes of two");
                    return Err(reader.corrupt(message));
                };
                (CoordinateRange::Text(low.to_vec(), high.to_vec()), low > high)
            }
        };
        if ends_first {
            let name = &self.name;
            return Err(reader.corrupt(format!("dimension \"{name}\" {}", range.backwards())));
        }
        Ok(range)
    }
}

impl DimensionDomain {
    /// Parses low end, high end, and the extent after its flag. Text has no ends, and its extent means
    /// nothing.
    fn parse(reader: &mut Reader<'_>, datatype: Datatype, is_text: bool) -> Result<Self> {
        let at_extent = |reader: &mut Reader<'_>| flag(reader, "null tile extent");
        if is_text {
            if !at_extent(reader)? {
                reader.take(to_usize(datatype.size()))?;
            }
            Ok(Self::Text)
        } else if datatype.is_signed() || datatype.is_unsigned() {
            let (low, high) = (integer(reader, datatype)?, integer(reader, datatype)?);
            let stored = if at_extent(reader)? { None } else { Some(integer(reader, datatype)?) };
            let extent = stored.map(|stored| unwrapped(stored, low, high, datatype));
            if low > high || extent.is_some_and(|extent| extent <= 0) {
                let extent = extent.map_or("none".to_owned(), |extent| extent.to_string());
                let message = format!("impossible domain {low} to {high}, tile extent {extent}");
                return Err(reader.corrupt(message));
            }
            Ok(Self::Integer { low, high, extent })
        } else if datatype.is_float() {
            let (low, high) = (float(reader, datatype)?, float(reader, datatype)?);
            let extent = if at_extent(reader)? { None } else { Some(float(reader, datatype)?) };
            Ok(Self::Float { low, high, extent })
        } else {
            Err(Error::unsupported(format!("a dimension of type {datatype}")))
        }
    }
}

/// Returns the extent that a writer meant by the number that it stored.
///
/// TileDB gives a dimension without an extent one tile, of `high - low + 1` coordinates, in the dimension's own
/// type. For -128 to 126 as `INT8` that is 255, which wraps around to -1. Other numbers stay as they are.
fn unwrapped(stored: i128, low: i128, high: i128, datatype: Datatype) -> i128 {
    let whole = high - low + 1;
    let wraps = 1_i128 << (8 * datatype.size());
    if stored < 0 && stored + wraps == whole { whole } else { stored }
}

/// Reads a whole number of type `datatype`.
pub(in crate::bytes) fn integer(reader: &mut Reader<'_>, datatype: Datatype) -> Result<i128> {
    let bytes = reader.take(to_usize(datatype.size()))?;
    Ok(integer_of(bytes, datatype.is_signed()))
}

/// Decodes a little-endian whole number of at most 8 bytes, by its bytes from the highest to the lowest.
///
/// The sign is there before the first byte: for the signed byte 0xfe, the result is -1 · 256 + 254 = -2.
pub(in crate::bytes) fn integer_of(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let padding = if negative { -1 } else { 0 };
    bytes.iter().rev().fold(padding, |number, &byte| (number << 8) | i128::from(byte))
}

/// Reads a floating-point number of type `datatype`.
pub(in crate::bytes) fn float(reader: &mut Reader<'_>, datatype: Datatype) -> Result<f64> {
    Ok(match datatype {
        Datatype::Float32 => f64::from(f32::from_le_bytes(reader.array()?)),
        _ => f64::from_le_bytes(reader.array()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::dimension;

    #[test]
    fn whole_numbers_of_all_widths() {
        assert_eq!(integer_of(&[0xfe], true), -2);
        assert_eq!(integer_of(&[0xfe], false), 254);
        assert_eq!(integer_of(&i64::MIN.to_le_bytes(), true), i128::from(i64::MIN));
        assert_eq!(integer_of(&u64::MAX.to_le_bytes(), false), i128::from(u64::MAX));
        assert_eq!(integer_of(&[0x34, 0x12], true), 0x1234);
    }

    #[test]
    fn tiles_are_counted_from_the_low_end() {
        let axis = TileAxis { low: -5, high: 5, extent: 4 };
        assert_eq!([-5, -2, -1, 5].map(|at| axis.tile_of(at)), [0, 0, 1, 2]);
        assert_eq!(axis.first_of(2), 3);
        let widest = TileAxis { low: i128::from(i64::MIN), high: i128::from(i64::MAX), extent: 1 };
        assert_eq!(widest.tile_of(widest.high), u64::MAX);
    }

    #[test]
    fn impossible_domains_are_refused() {
        let parse = |bytes: &[u8]| DimensionSchema::parse(&mut Reader::new("test", 0, bytes), 22);
        let good = parse(&dimension("x", 0, -5, 5, 4)).unwrap();
        assert_eq!(good.tile_axis().unwrap(), TileAxis { low: -5, high: 5, extent: 4 });
        assert!(parse(&dimension("x", 0, 5, -5, 4)).is_err());
        assert!(parse(&dimension("x", 0, 0, 5, 0)).is_err());
        assert!(parse(&dimension("x", 0, 0, 5, -1)).is_err());
        assert!(parse(&dimension("x", 4, 0, 5, 1)).is_err());
        // One more than i32::MAX wraps around, and is the extent of this domain only.
        let wide = parse(&dimension("x", 0, i32::MIN, -1, i32::MIN)).unwrap();
        assert_eq!(wide.extent_text().as_deref(), Some("2147483648"));
        assert!(parse(&dimension("x", 0, i32::MIN, -2, i32::MIN)).is_err());
        let widest = parse(&dimension("x", 0, i32::MIN, i32::MAX - 1, -1)).unwrap();
        assert_eq!(widest.extent_text().as_deref(), Some("4294967295"));
        let bytes = dimension("x", 0, -5, 5, 4);
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err());
        }
    }
}
