//! The Arrow types of stored elements, and the operations that they share.

use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use crate::error::{Error, Result};
use crate::format::{ElementType, ZoneBound, bound};

/// Evaluates an expression in which a name stands for the Arrow type of an [`ElementType`]. Half
/// precision can have its own expression, for code that has no arithmetic for it.
///
/// ```text
/// for_element_type!(element, T => T::DATA_TYPE)
/// for_element_type!(element, T => sum::<T>(bytes), F16 => sum_of_halves(bytes))
/// ```
///
/// The first line becomes `match element { F32 => { type T = Float32Type; T::DATA_TYPE } … }`: the
/// expression is compiled once per type.
macro_rules! for_element_type {
    ($element:expr, $t:ident => $body:expr) => {
        $crate::array::for_element_type!(
            $element, $t => $body,
            F16 => { type $t = ::arrow::datatypes::Float16Type; $body }
        )
    };
    ($element:expr, $t:ident => $body:expr, F16 => $half:expr) => {
        $crate::array::for_element_type!(
            @match $element, $t, $body, $half,
            F32 Float32Type, F64 Float64Type, I8 Int8Type, I16 Int16Type, I32 Int32Type,
            I64 Int64Type, U8 UInt8Type, U16 UInt16Type, U32 UInt32Type, U64 UInt64Type
        )
    };
    (@match $element:expr, $t:ident, $body:expr, $half:expr, $($name:ident $arrow:ident),*) => {
        match $element {
            $crate::format::ElementType::F16 => $half,
            $($crate::format::ElementType::$name => {
                type $t = ::arrow::datatypes::$arrow;
                $body
            })*
        }
    };
}
pub(crate) use for_element_type;

/// Work on elements, compiled once per type of elements: [`visit_element_type`] calls it with the type.
pub trait ElementVisitor {
    /// The result of the work.
    type Output;

    /// Works on elements of type `T`.
    fn visit<T: Element>(self) -> Self::Output;
}

/// Returns what `visitor` returns for the Arrow type of stored elements.
///
/// ```
/// use arrow::datatypes::{ArrowPrimitiveType, DataType};
/// use gridfusion_core::array::{Element, ElementVisitor, visit_element_type};
/// use gridfusion_core::format::ElementType;
///
/// struct ArrowType;
///
/// impl ElementVisitor for ArrowType {
///     type Output = DataType;
///
///     fn visit<T: Element>(self) -> DataType {
///         T::DATA_TYPE
///     }
/// }
///
/// assert_eq!(visit_element_type(ElementType::I16, ArrowType), DataType::Int16);
/// ```
pub fn visit_element_type<V: ElementVisitor>(element: ElementType, visitor: V) -> V::Output {
    for_element_type!(element, T => visitor.visit::<T>())
}

/// Returns the Arrow type of stored elements.
pub(super) fn arrow_type(element: ElementType) -> DataType {
    for_element_type!(element, T => T::DATA_TYPE)
}

/// Formats a stored element in decimal without loss; floats get their shortest decimal. `None` if there
/// are too few bytes.
pub fn decimal(element: ElementType, bytes: &[u8]) -> Option<String> {
    let stored = bound(bytes.get(..element.size() as usize)?);
    Some(for_element_type!(element, T => format!("{:?}", T::from_bound(stored))))
}

/// Views a buffer as elements of type `T`.
pub(super) fn elements_of<T: ArrowPrimitiveType>(
    elements: Buffer,
) -> Result<ScalarBuffer<T::Native>> {
    let size = size_of::<T::Native>();
    if !elements.len().is_multiple_of(size) || elements.as_ptr().align_offset(size) != 0 {
        return Err(Error::internal("a buffer that is not made of whole, aligned elements"));
    }
    Ok(elements.into())
}

/// Operations that the stored element types share.
pub trait Element: ArrowPrimitiveType {
    /// Parses text as this type, as the reference implementation does.
    fn parse(text: &str) -> Option<Self::Native>;
    /// Converts a double: floats round to the nearest element, integers give `None` for a number that
    /// they do not hold exactly.
    fn from_f64(number: f64) -> Option<Self::Native>;
    /// Converts a whole number; `None` for floats, and for a number beyond the integer type.
    fn from_integer(number: i128) -> Option<Self::Native>;
    /// Returns the stored form of an element.
    fn to_bound(value: Self::Native) -> ZoneBound;
    /// Returns the element with this stored form.
    fn from_bound(bound: ZoneBound) -> Self::Native;
    /// Whether the element is NaN.
    fn is_nan(value: Self::Native) -> bool;
    /// Whether two elements have the same bits; zeros of different sign do not.
    fn same_bits(a: Self::Native, b: Self::Native) -> bool;
    /// Converts to the nearest double.
    fn to_f64(value: Self::Native) -> f64;
    /// Converts an integer to a whole number; `None` for floats.
    fn to_integer(value: Self::Native) -> Option<i128>;
}

/// The conversions between an element and its stored form: little-endian bytes, padded to a [`ZoneBound`].
macro_rules! stored_form {
    () => {
        fn to_bound(value: Self::Native) -> ZoneBound {
            bound(&value.to_le_bytes())
        }
        fn from_bound(bound: ZoneBound) -> Self::Native {
            let mut bytes = Self::Native::default().to_le_bytes();
            let size = bytes.len();
            bytes.copy_from_slice(&bound[..size]);
            Self::Native::from_le_bytes(bytes)
        }
    };
}

macro_rules! integer_elements {
    ($($t:ty),*) => {$(
        impl Element for $t {
            fn parse(text: &str) -> Option<Self::Native> { text.trim().parse().ok() }
            fn from_f64(number: f64) -> Option<Self::Native> {
                (number.fract() == 0.0).then_some(number as i128).and_then(Self::from_integer)
            }
            fn from_integer(number: i128) -> Option<Self::Native> { number.try_into().ok() }
            stored_form!();
            fn is_nan(_: Self::Native) -> bool { false }
            fn same_bits(a: Self::Native, b: Self::Native) -> bool { a == b }
            fn to_f64(value: Self::Native) -> f64 { value as f64 }
            fn to_integer(value: Self::Native) -> Option<i128> { Some(value.into()) }
        }
    )*};
}

integer_elements!(
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type
);

macro_rules! float_elements {
    ($($t:ty, $parse:expr, $nearest:expr);*) => {$(
        impl Element for $t {
            fn parse(text: &str) -> Option<Self::Native> { $parse(text.trim()) }
            fn from_f64(number: f64) -> Option<Self::Native> { Some($nearest(number)) }
            fn from_integer(_: i128) -> Option<Self::Native> { None }
            stored_form!();
            fn is_nan(value: Self::Native) -> bool { value.is_nan() }
            fn same_bits(a: Self::Native, b: Self::Native) -> bool { a.to_bits() == b.to_bits() }
            fn to_f64(value: Self::Native) -> f64 { f64::from(value) }
            fn to_integer(_: Self::Native) -> Option<i128> { None }
        }
    )*};
}

float_elements!(
    // Text is rounded to f32 and then to f16, as in the reference implementation.
    Float16Type, |text: &str| text.parse().ok().map(half::f16::from_f32), half::f16::from_f64;
    Float32Type, |text: &str| text.parse().ok(), |number| number as f32;
    Float64Type, |text: &str| text.parse().ok(), |number| number
);

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
