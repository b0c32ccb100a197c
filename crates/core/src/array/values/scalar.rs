//! Single values of fixed width, as cells or as items of lists.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType};
use half::f16;

use super::temporal::{NOT_A_TIME, Temporal};
use crate::array::element::{arrow_type, elements_of, for_element_type};
use crate::error::Result;
use crate::format::ElementType;

/// A value of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scalar {
    /// A number.
    Number(ElementType),
    /// A byte, where 0 is false.
    Boolean,
    /// A date, a time or a duration.
    Temporal(Temporal),
}

impl Scalar {
    /// Returns the bytes of a value.
    pub fn size(self) -> u64 {
        match self {
            Self::Number(element) => element.size(),
            Self::Boolean => 1,
            Self::Temporal(_) => 8,
        }
    }

    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Number(element) => arrow_type(element),
            Self::Boolean => DataType::Boolean,
            Self::Temporal(temporal) => temporal.data_type(),
        }
    }

    /// Marks as NULL those little-endian values that are NaN or NaT; `None` if there are none.
    pub(super) fn present(self, values: &Buffer) -> Option<NullBuffer> {
        /// Returns a null buffer in which values of `N` bytes are valid unless `is_missing`.
        fn kept<const N: usize>(values: &[u8], is_missing: impl Fn([u8; N]) -> bool) -> NullBuffer {
            values.as_chunks::<N>().0.iter().map(|bytes| !is_missing(*bytes)).collect()
        }
        let present = match self {
            Self::Number(ElementType::F16) => {
                kept(values, |bytes| f16::from_le_bytes(bytes).is_nan())
            }
            Self::Number(ElementType::F32) => {
                kept(values, |bytes| f32::from_le_bytes(bytes).is_nan())
            }
            Self::Number(ElementType::F64) => {
                kept(values, |bytes| f64::from_le_bytes(bytes).is_nan())
            }
            Self::Temporal(_) => kept(values, |bytes| i64::from_le_bytes(bytes) == NOT_A_TIME),
            Self::Number(_) | Self::Boolean => return None,
        };
        Some(present).filter(|present| present.null_count() > 0)
    }

    /// Converts little-endian values to an Arrow array.
    ///
    /// # Errors
    /// `Unsupported` if a date is beyond its Arrow type; `Internal` if the buffer is misaligned.
    pub(crate) fn array(self, values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        match self {
            Self::Number(element) => numbers(element, values, nulls),
            Self::Boolean => {
                let bits = BooleanBuffer::collect_bool(values.len(), |at| values[at] != 0);
                Ok(Arc::new(BooleanArray::new(bits, nulls)))
            }
            Self::Temporal(temporal) => temporal.array(values, nulls),
        }
    }
}

/// Returns numbers in the memory of `values`, without a copy.
fn numbers(element: ElementType, values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    fn typed<T: ArrowPrimitiveType>(values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(PrimitiveArray::<T>::new(elements_of::<T>(values)?, nulls)))
    }
    for_element_type!(element, T => typed::<T>(values, nulls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_of_every_float_type_is_missing() {
        fn present(element: ElementType, values: &[u8]) -> Vec<bool> {
            let nulls = Scalar::Number(element).present(&Buffer::from(values)).unwrap();
            nulls.iter().collect()
        }
        let halves = [f16::ONE, f16::NAN].map(f16::to_le_bytes).concat();
        assert_eq!(present(ElementType::F16, &halves), [true, false]);
        let singles = [f32::NAN, 1.0].map(f32::to_le_bytes).concat();
        assert_eq!(present(ElementType::F32, &singles), [false, true]);
        let doubles = [1.0, f64::NAN].map(f64::to_le_bytes).concat();
        assert_eq!(present(ElementType::F64, &doubles), [true, false]);
    }
}
