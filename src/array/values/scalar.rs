//! Single values of fixed width, alone or as items of lists.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::number::{arrow_type, elements_of};
use super::temporal::{NOT_A_TIME, Temporal};
use crate::error::Result;
use crate::format::ElementType;

/// A value of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A number.
    Number(ElementType),
    /// A byte, 0 for false.
    Boolean,
    /// A date, a time or a duration.
    Temporal(Temporal),
}

impl Scalar {
    /// Bytes of a value.
    pub fn size(self) -> u64 {
        match self {
            Self::Number(element) => element.size(),
            Self::Boolean => 1,
            Self::Temporal(_) => 8,
        }
    }

    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Number(element) => arrow_type(element),
            Self::Boolean => DataType::Boolean,
            Self::Temporal(temporal) => temporal.data_type(),
        }
    }

    /// Which of these little-endian values are neither NaN nor NaT, if some are.
    pub(super) fn present(self, values: &Buffer) -> Option<NullBuffer> {
        fn kept<const N: usize>(values: &[u8], is_missing: impl Fn([u8; N]) -> bool) -> NullBuffer {
            values.as_chunks::<N>().0.iter().map(|bytes| !is_missing(*bytes)).collect()
        }
        let present = match self {
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

    /// Little-endian values as an array.
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

fn numbers(element: ElementType, values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    fn typed<T: ArrowPrimitiveType>(values: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(Arc::new(PrimitiveArray::<T>::new(elements_of::<T>(values)?, nulls)))
    }
    match element {
        ElementType::F16 => typed::<Float16Type>(values, nulls),
        ElementType::F32 => typed::<Float32Type>(values, nulls),
        ElementType::F64 => typed::<Float64Type>(values, nulls),
        ElementType::I8 => typed::<Int8Type>(values, nulls),
        ElementType::I16 => typed::<Int16Type>(values, nulls),
        ElementType::I32 => typed::<Int32Type>(values, nulls),
        ElementType::I64 => typed::<Int64Type>(values, nulls),
        ElementType::U8 => typed::<UInt8Type>(values, nulls),
        ElementType::U16 => typed::<UInt16Type>(values, nulls),
        ElementType::U32 => typed::<UInt32Type>(values, nulls),
        ElementType::U64 => typed::<UInt64Type>(values, nulls),
    }
}
