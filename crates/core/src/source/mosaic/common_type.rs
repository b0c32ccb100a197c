//! The type that holds the values of two.
//!
//! | types | common type |
//! |---|---|
//! | two of signed, or of unsigned integers | the wider one |
//! | signed and unsigned integers | a signed one that is wider than the unsigned one, of up to 64 bits |
//! | two of floats | the wider one |
//! | integers of up to 16 bits and singles | singles |
//! | other integers and floats | doubles, which round integers beyond 2^53 |
//! | others | none, unless they are equal |

use arrow::datatypes::DataType;

use crate::format::ElementType;

/// Returns the narrowest type that holds the values of both; `None` if there is none.
pub(super) fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(a.clone());
    }
    match (Number::of(a)?, Number::of(b)?) {
        (Number::Float(a), Number::Float(b)) => float(a.max(b)),
        (Number::Float(float_bits), Number::Signed(bits) | Number::Unsigned(bits))
        | (Number::Signed(bits) | Number::Unsigned(bits), Number::Float(float_bits)) => {
            // A float of half as many bits as its own holds an integer exactly.
            float(float_bits.max(if bits <= 8 {
                16
            } else if bits <= 16 {
                32
            } else {
                64
            }))
        }
        (Number::Signed(a), Number::Signed(b)) => signed(a.max(b)),
        (Number::Unsigned(a), Number::Unsigned(b)) => unsigned(a.max(b)),
        (Number::Signed(bits), Number::Unsigned(of_unsigned))
        | (Number::Unsigned(of_unsigned), Number::Signed(bits)) => {
            signed(bits.max(2 * of_unsigned))
        }
    }
}

/// Returns the stored element of a column of this type; `None` for types that are not numbers.
pub(super) fn element_of_type(data_type: &DataType) -> Option<ElementType> {
    Some(match data_type {
        DataType::Int8 => ElementType::I8,
        DataType::Int16 => ElementType::I16,
        DataType::Int32 => ElementType::I32,
        DataType::Int64 => ElementType::I64,
        DataType::UInt8 => ElementType::U8,
        DataType::UInt16 => ElementType::U16,
        DataType::UInt32 => ElementType::U32,
        DataType::UInt64 => ElementType::U64,
        DataType::Float16 => ElementType::F16,
        DataType::Float32 => ElementType::F32,
        DataType::Float64 => ElementType::F64,
        _ => return None,
    })
}

/// A type of numbers, with its bits.
enum Number {
    Signed(u32),
    Unsigned(u32),
    Float(u32),
}

impl Number {
    fn of(data_type: &DataType) -> Option<Self> {
        let bits = data_type.primitive_width()? as u32 * 8;
        Some(match data_type {
            it if it.is_signed_integer() => Self::Signed(bits),
            it if it.is_unsigned_integer() => Self::Unsigned(bits),
            it if it.is_floating() => Self::Float(bits),
            _ => return None,
        })
    }
}

fn signed(bits: u32) -> Option<DataType> {
    Some(match bits {
        8 => DataType::Int8,
        16 => DataType::Int16,
        32 => DataType::Int32,
        64 => DataType::Int64,
        _ => return None,
    })
}

fn unsigned(bits: u32) -> Option<DataType> {
    Some(match bits {
        8 => DataType::UInt8,
        16 => DataType::UInt16,
        32 => DataType::UInt32,
        64 => DataType::UInt64,
        _ => return None,
    })
}

fn float(bits: u32) -> Option<DataType> {
    Some(match bits {
        16 => DataType::Float16,
        32 => DataType::Float32,
        64 => DataType::Float64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The common type holds the least and the greatest number of both, as numpy's `result_type` does where it is exact.
    #[test]
    fn common_types_are_those_of_numpy_where_they_are_exact() {
        use DataType::{
            Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
            Utf8,
        };
        for (a, b, expected) in [
            (Int8, Int16, Some(Int16)),
            (UInt8, UInt32, Some(UInt32)),
            (UInt8, Int8, Some(Int16)),
            (UInt16, Int64, Some(Int64)),
            (UInt32, Int8, Some(Int64)),
            (UInt64, Int8, None),
            (Float32, Float64, Some(Float64)),
            (Float16, Int8, Some(Float16)),
            (Float16, UInt16, Some(Float32)),
            (Float32, Int16, Some(Float32)),
            (Float32, Int32, Some(Float64)),
            (Float32, UInt64, Some(Float64)),
            (Utf8, Utf8, Some(Utf8)),
            (Utf8, Float64, None),
            (DataType::Boolean, Int8, None),
        ] {
            assert_eq!(common_type(&a, &b), expected, "{a} and {b}");
            assert_eq!(common_type(&b, &a), expected, "{b} and {a}");
        }
    }
}
