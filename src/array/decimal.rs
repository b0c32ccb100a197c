//! Stored elements as text.

use crate::format::ElementType;

/// A stored element in decimal, as exactly as its type: the shortest digits that give a float back.
/// `None` if there are too few bytes.
pub(crate) fn decimal(element: ElementType, bytes: &[u8]) -> Option<String> {
    macro_rules! read {
        ($number:ty) => {
            <$number>::from_le_bytes(*bytes.first_chunk()?)
        };
    }
    Some(match element {
        ElementType::F16 => format!("{:?}", read!(half::f16)),
        ElementType::F32 => format!("{:?}", read!(f32)),
        ElementType::F64 => format!("{:?}", read!(f64)),
        ElementType::I8 => read!(i8).to_string(),
        ElementType::I16 => read!(i16).to_string(),
        ElementType::I32 => read!(i32).to_string(),
        ElementType::I64 => read!(i64).to_string(),
        ElementType::U8 => read!(u8).to_string(),
        ElementType::U16 => read!(u16).to_string(),
        ElementType::U32 => read!(u32).to_string(),
        ElementType::U64 => read!(u64).to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_in_decimal() {
        for (element, bytes, text) in [
            (ElementType::F16, &[0x00, 0x3e, 0xff][..], Some("1.5")),
            (ElementType::F32, &(-0.0_f32).to_le_bytes(), Some("-0.0")),
            (ElementType::F64, &1e300_f64.to_le_bytes(), Some("1e300")),
            (ElementType::F64, &f64::NEG_INFINITY.to_le_bytes(), Some("-inf")),
            (ElementType::I8, &[0x80], Some("-128")),
            (ElementType::I64, &i64::MIN.to_le_bytes(), Some("-9223372036854775808")),
            (ElementType::U16, &[0xff, 0xff, 0, 0], Some("65535")),
            (ElementType::U16, &[0xff], None),
        ] {
            assert_eq!(decimal(element, bytes).as_deref(), text, "{element} {bytes:?}");
        }
    }
}
