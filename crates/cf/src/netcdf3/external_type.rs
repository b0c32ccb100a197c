//! The types of values in a file.

use gridfusion_core::format::ElementType;

/// The type of an attribute's or a variable's values, `nc_type` of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExternalType {
    /// A byte of text.
    Char,
    /// A big-endian number.
    Number(ElementType),
}

impl ExternalType {
    /// Returns the type of this code; `None` if the code is unknown. Codes from 7 on exist in CDF-5 only.
    pub(super) fn from_code(code: u32, is_cdf5: bool) -> Option<Self> {
        Some(match (code, is_cdf5) {
            (1, _) => Self::Number(ElementType::I8),
            (2, _) => Self::Char,
            (3, _) => Self::Number(ElementType::I16),
            (4, _) => Self::Number(ElementType::I32),
            (5, _) => Self::Number(ElementType::F32),
            (6, _) => Self::Number(ElementType::F64),
            (7, true) => Self::Number(ElementType::U8),
            (8, true) => Self::Number(ElementType::U16),
            (9, true) => Self::Number(ElementType::U32),
            (10, true) => Self::Number(ElementType::I64),
            (11, true) => Self::Number(ElementType::U64),
            _ => return None,
        })
    }

    /// Returns the number of bytes per value.
    pub(super) fn size(self) -> u64 {
        match self {
            Self::Char => 1,
            Self::Number(element) => element.size(),
        }
    }

    /// Returns the little-endian value of cells that were never written, `NC_FILL_*` of `netcdf.h`.
    pub(super) fn default_fill(self) -> Vec<u8> {
        let element = match self {
            Self::Char => return vec![0],
            Self::Number(element) => element,
        };
        match element {
            ElementType::I8 => (-127_i8).to_le_bytes().to_vec(),
            ElementType::I16 => (-32_767_i16).to_le_bytes().to_vec(),
            ElementType::I32 => (-2_147_483_647_i32).to_le_bytes().to_vec(),
            ElementType::I64 => (-9_223_372_036_854_775_806_i64).to_le_bytes().to_vec(),
            // The double is the same number as the float: 15 · 2^119.
            ElementType::F32 => 9.969_21e36_f32.to_le_bytes().to_vec(),
            ElementType::F64 => f64::from(9.969_21e36_f32).to_le_bytes().to_vec(),
            ElementType::U64 => (u64::MAX - 1).to_le_bytes().to_vec(),
            // The greatest value of the other unsigned types.
            ElementType::U8 | ElementType::U16 | ElementType::U32 => {
                vec![u8::MAX; element.size() as usize]
            }
            // No file has other types. Without a fill value, a missing cell would be an error.
            _ => vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_fills_are_those_of_the_specification() {
        // Big-endian, as the specification gives them.
        let fills: [(u32, &[u8]); 11] = [
            (1, b"\x81"),
            (2, b"\0"),
            (3, b"\x80\x01"),
            (4, b"\x80\0\0\x01"),
            (5, b"\x7c\xf0\0\0"),
            (6, b"\x47\x9e\0\0\0\0\0\0"),
            (7, b"\xff"),
            (8, b"\xff\xff"),
            (9, b"\xff\xff\xff\xff"),
            (10, b"\x80\0\0\0\0\0\0\x02"),
            (11, b"\xff\xff\xff\xff\xff\xff\xff\xfe"),
        ];
        for (code, fill) in fills {
            let external = ExternalType::from_code(code, true).unwrap();
            let little: Vec<u8> = fill.iter().rev().copied().collect();
            assert_eq!(external.default_fill(), little, "{code}");
            assert_eq!(external.size(), fill.len() as u64);
            assert_eq!(ExternalType::from_code(code, false).is_some(), code < 7);
        }
        assert!(
            [0, 12, u32::MAX].iter().all(|code| ExternalType::from_code(*code, true).is_none())
        );
    }
}
