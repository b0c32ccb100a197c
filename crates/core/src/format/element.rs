//! The types of array elements.

use std::fmt;

use super::zone::ZoneBound;

/// The type of an array's elements, stored little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// IEEE 754 half precision.
    F16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
}

impl ElementType {
    /// Returns the number of bytes per element.
    ///
    /// ```
    /// assert_eq!(gridfusion_core::format::ElementType::F16.size(), 2);
    /// ```
    pub fn size(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether the elements are unsigned integers.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Returns the integers of the same size with the other sign; `None` for floats.
    ///
    /// ```
    /// use gridfusion_core::format::ElementType;
    ///
    /// assert_eq!(ElementType::I8.of_other_sign(), Some(ElementType::U8));
    /// ```
    pub fn of_other_sign(self) -> Option<Self> {
        Some(match self {
            Self::U8 => Self::I8,
            Self::U16 => Self::I16,
            Self::U32 => Self::I32,
            Self::U64 => Self::I64,
            Self::I8 => Self::U8,
            Self::I16 => Self::U16,
            Self::I32 => Self::U32,
            Self::I64 => Self::U64,
            Self::F16 | Self::F32 | Self::F64 => return None,
        })
    }

    /// Returns a number that orders elements as their values do, with -0 below 0. `None` for NaN, and for a
    /// wrong number of bytes.
    ///
    /// ```
    /// use gridfusion_core::format::ElementType;
    ///
    /// let rank = |value: f32| ElementType::F32.rank(&value.to_le_bytes());
    /// assert!(rank(-1.0) < rank(-0.0) && rank(-0.0) < rank(0.0) && rank(0.0) < rank(f32::INFINITY));
    /// assert_eq!(rank(f32::NAN), None);
    /// ```
    pub fn rank(self, bytes: &[u8]) -> Option<i128> {
        if bytes.len() as u64 != self.size() {
            return None;
        }
        let bits = bytes.iter().rev().fold(0_i128, |bits, &byte| bits << 8 | i128::from(byte));
        let sign = 1_i128 << (8 * bytes.len() - 1);
        let infinity = match self {
            Self::F16 => 0x7c00,
            Self::F32 => 0x7f80_0000,
            Self::F64 => 0x7ff0_0000_0000_0000,
            _ if self.is_unsigned() => return Some(bits),
            _ => return Some(if bits >= sign { bits - 2 * sign } else { bits }),
        };
        // Without the sign, the bits of floats ascend with their values, up to infinity; NaN is beyond it.
        // Negative floats descend from -1, which is the rank of -0.
        let magnitude = bits & (sign - 1);
        (magnitude <= infinity).then_some(if bits >= sign { -magnitude - 1 } else { magnitude })
    }

    /// Whether a stored element lies within stored bounds. The two zeros of floats count as equal; NaN lies
    /// within no bounds.
    pub fn is_within(self, element: &ZoneBound, bounds: &(ZoneBound, ZoneBound)) -> bool {
        let rank = |bound: &ZoneBound| self.rank(&bound[..self.size() as usize]);
        let (Some(at), Some(least), Some(greatest)) =
            (rank(element), rank(&bounds.0), rank(&bounds.1))
        else {
            return false;
        };
        // The ranks of the zeros of floats are -1 and 0.
        let (below, above) = match self.is_integer() {
            true => (0, 0),
            false => (i128::from(least == 0), i128::from(greatest == -1)),
        };
        (least - below..=greatest + above).contains(&at)
    }

    /// Whether the elements are integers, signed or unsigned.
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::zone::bound;

    #[test]
    fn elements_are_ordered() {
        let ranks = |element: ElementType, elements: &[&[u8]]| -> Vec<Option<i128>> {
            elements.iter().map(|bytes| element.rank(bytes)).collect()
        };
        let floats = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-40, 1.0, f32::INFINITY];
        let floats = floats.map(|value| ElementType::F32.rank(&value.to_le_bytes()));
        assert!(floats.is_sorted() && floats[2] < floats[3] && floats[0].is_some());
        assert_eq!(ElementType::F64.rank(&f64::NAN.to_le_bytes()), None);
        assert_eq!(ElementType::F16.rank(&[0, 0xfe]), None);
        assert!(
            ranks(ElementType::I16, &[&[0, 0x80], &[0xff, 0xff], &[0, 0], &[0xff, 0x7f]])
                .is_sorted()
        );
        assert!(ranks(ElementType::U8, &[&[0], &[0x7f], &[0x80], &[0xff]]).is_sorted());
    }

    #[test]
    fn elements_lie_within_bounds() {
        let floats = |value: f32, least: f32, greatest: f32| {
            let [value, least, greatest] =
                [value, least, greatest].map(|it| bound(&it.to_le_bytes()));
            ElementType::F32.is_within(&value, &(least, greatest))
        };
        assert!(floats(1.0, 1.0, 2.0) && floats(2.0, 1.0, 2.0) && floats(-9999.0, -9999.0, 4.0));
        assert!(!floats(0.5, 1.0, 2.0) && !floats(3.0, 1.0, 2.0));
        assert!(floats(-0.0, 0.0, 2.0) && floats(0.0, -2.0, -0.0) && !floats(-1e-40, 0.0, 2.0));
        assert!(!floats(f32::NAN, f32::NEG_INFINITY, f32::INFINITY));
        let integers = |value: i16, least: i16, greatest: i16| {
            let [value, least, greatest] =
                [value, least, greatest].map(|it| bound(&it.to_le_bytes()));
            ElementType::I16.is_within(&value, &(least, greatest))
        };
        assert!(integers(-9, -9, 4) && integers(0, -9, 4));
        assert!(!integers(-1, 0, 4) && !integers(0, -4, -1));
    }
}
