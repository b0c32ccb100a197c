//! Numbers of all types as 64-bit integers in the same order, for least and greatest values.
//!
//! | type | key |
//! |---|---|
//! | signed integers, dates, times | the number itself |
//! | unsigned integers | the number, less 2⁶³ if it has 64 bits |
//! | floats | their bits, with those of negative numbers inverted: the total order of IEEE 754, where NaN is greatest |

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::common::internal_err;
use datafusion::error::Result;
use half::f16;

/// A number with an order key.
trait OrderKey: ArrowNativeType {
    fn key(self) -> i64;
    fn from_key(key: i64) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl OrderKey for $type {
            fn key(self) -> i64 { self as i64 }
            fn from_key(key: i64) -> Self { key as Self }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32);

impl OrderKey for u64 {
    fn key(self) -> i64 {
        (self ^ (1 << 63)) as i64
    }

    fn from_key(key: i64) -> Self {
        key as Self ^ (1 << 63)
    }
}

macro_rules! floats {
    ($($type:ty, $signed:ty, $unsigned:ty);*) => {$(
        impl OrderKey for $type {
            fn key(self) -> i64 {
                let bits = self.to_bits() as $signed;
                // All bits of a negative number but the sign are inverted.
                let inverted = (bits >> (<$signed>::BITS - 1)) as $unsigned >> 1;
                (bits ^ inverted as $signed).into()
            }

            fn from_key(key: i64) -> Self {
                let bits = key as $signed;
                let inverted = (bits >> (<$signed>::BITS - 1)) as $unsigned >> 1;
                Self::from_bits((bits ^ inverted as $signed) as $unsigned)
            }
        }
    )*};
}
floats!(f16, i16, u16; f32, i32, u32; f64, i64, u64);

/// Calls a function generic over the native type of a data type.
macro_rules! by_type {
    ($data_type:expr, $function:ident, $($argument:expr),*; $other:expr) => {
        match $data_type {
            DataType::Int8 => $function::<i8>($($argument),*),
            DataType::Int16 => $function::<i16>($($argument),*),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => $function::<i32>($($argument),*),
            DataType::Int64 | DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..)
            | DataType::Duration(_) => $function::<i64>($($argument),*),
            DataType::UInt8 => $function::<u8>($($argument),*),
            DataType::UInt16 => $function::<u16>($($argument),*),
            DataType::UInt32 => $function::<u32>($($argument),*),
            DataType::UInt64 => $function::<u64>($($argument),*),
            DataType::Float16 => $function::<f16>($($argument),*),
            DataType::Float32 => $function::<f32>($($argument),*),
            DataType::Float64 => $function::<f64>($($argument),*),
            _ => $other,
        }
    };
}

/// Whether numbers of a type have order keys.
pub(in crate::exec) fn has_order_keys(data_type: &DataType) -> bool {
    fn yes<T: OrderKey>() -> bool {
        true
    }
    by_type!(data_type, yes,; false)
}

/// Returns the order keys of numbers, with `of_null` for NULL.
///
/// # Errors
/// `Internal` for other types.
pub(in crate::exec) fn order_keys(values: &dyn Array, of_null: i64) -> Result<Vec<i64>> {
    fn keys<T: OrderKey>(values: &dyn Array, of_null: i64) -> Result<Vec<i64>> {
        let data = values.to_data();
        let numbers = &data.buffer::<T>(0)[..values.len()];
        Ok(match values.nulls() {
            None => numbers.iter().map(|number| number.key()).collect(),
            Some(nulls) => {
                let key = |(number, is_valid): (&T, bool)| match is_valid {
                    true => number.key(),
                    false => of_null,
                };
                numbers.iter().zip(nulls).map(key).collect()
            }
        })
    }
    let data_type = values.data_type();
    by_type!(data_type, keys, values, of_null; internal_err!("{data_type} has no order keys"))
}

/// Returns the order keys of numbers to be compared as values, with `of_null` for NULL: NaN of either sign is the greatest.
///
/// # Errors
/// `Internal` for other types.
pub(in crate::exec) fn value_keys(values: &dyn Array, of_null: i64) -> Result<Vec<i64>> {
    let (of_nan, numbers) = match values.data_type() {
        DataType::Float16 => (f16::NAN.key(), f16::NEG_INFINITY.key()..=f16::INFINITY.key()),
        DataType::Float32 => (f32::NAN.key(), f32::NEG_INFINITY.key()..=f32::INFINITY.key()),
        DataType::Float64 => (f64::NAN.key(), f64::NEG_INFINITY.key()..=f64::INFINITY.key()),
        _ => return order_keys(values, of_null),
    };
    let mut keys = order_keys(values, of_nan)?;
    for key in &mut keys {
        // Arithmetic makes NaN of either sign, depending on the processor.
        if !numbers.contains(key) {
            *key = of_nan;
        }
    }
    if let Some(nulls) = values.nulls() {
        for (key, _) in keys.iter_mut().zip(nulls).filter(|(_, is_valid)| !is_valid) {
            *key = of_null;
        }
    }
    Ok(keys)
}

/// Returns the numbers of order keys.
///
/// # Errors
/// `Internal` for other types.
pub(in crate::exec) fn of_order_keys(
    keys: &[i64],
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    fn numbers<T: OrderKey>(
        keys: &[i64],
        nulls: Option<NullBuffer>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let numbers: Vec<T> = keys.iter().map(|key| T::from_key(*key)).collect();
        let data = ArrayData::builder(data_type.clone())
            .len(keys.len())
            .add_buffer(Buffer::from_vec(numbers))
            .nulls(nulls)
            .build()?;
        Ok(make_array(data))
    }
    by_type!(data_type, numbers, keys, nulls, data_type; internal_err!("{data_type} has no order keys"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn nan_of_either_sign_is_the_greatest_value() {
        let numbers = [Some(-f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), None];
        let keys = value_keys(&Float64Array::from(numbers.to_vec()), i64::MAX).unwrap();
        assert!(keys[0] > keys[1] && keys[1] > keys[2] && keys[3] == i64::MAX);
        let payload = f32::from_bits(0x7fff_ffff);
        let keys = value_keys(&Float32Array::from(vec![payload, f32::NAN]), 0).unwrap();
        assert_eq!(keys[0], keys[1]);
    }

    #[test]
    fn keys_have_the_order_of_their_numbers() {
        fn check<T: OrderKey + PartialEq>(ascending: &[T]) {
            assert!(ascending.is_sorted_by_key(|number| number.key()), "{ascending:?}");
            assert!(ascending.iter().all(|number| T::from_key(number.key()) == *number));
        }
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[0, 1, u32::MAX]);
        check(&[0, 1, 1 << 63, u64::MAX]);
        check(&[f32::NEG_INFINITY, f32::MIN, -1.0, -f32::MIN_POSITIVE, -0.0, 0.0, 1.5, f32::MAX]);
        check(&[f64::NEG_INFINITY, f64::MIN, -0.0, 0.0, f64::EPSILON, f64::INFINITY]);
        check(&[f16::NEG_INFINITY, f16::NEG_ONE, f16::ZERO, f16::ONE, f16::INFINITY]);
        assert!(f64::NAN.key() > f64::INFINITY.key());
        assert!((-f32::NAN).key() < f32::NEG_INFINITY.key());
    }
}
