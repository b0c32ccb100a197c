//! NaN of one sign.
//!
//! `∞ - ∞` is NaN, whose sign depends on the processor. NaN in a file has the other sign on most. `ORDER BY` and comparisons take NaN
//! without a sign for the greatest number, and NaN with a sign for the least. The sign of a sum is that of the NaN that came first, so it
//! depends on the plan. So aggregates and windows return NaN without a sign, which is the greatest number, as in DuckDB and PostgreSQL.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type};
use half::f16;

/// Returns floats without signs of NaN, and other values as they are.
pub(in crate::exec) fn one_nan(values: ArrayRef) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(
        values: ArrayRef,
        is_nan: impl Fn(T::Native) -> bool,
        nan: T::Native,
    ) -> ArrayRef {
        let numbers: &PrimitiveArray<T> = values.as_primitive();
        if !numbers.values().iter().any(|value| is_nan(*value)) {
            return values;
        }
        Arc::new(numbers.unary::<_, T>(|value| if is_nan(value) { nan } else { value }))
    }
    match values.data_type() {
        DataType::Float16 => of::<Float16Type>(values, f16::is_nan, f16::NAN),
        DataType::Float32 => of::<Float32Type>(values, f32::is_nan, f32::NAN),
        DataType::Float64 => of::<Float64Type>(values, f64::is_nan, f64::NAN),
        _ => values,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn nan_has_no_sign() {
        let values = Float64Array::from(vec![Some(-f64::NAN), None, Some(-0.0), Some(f64::NAN)]);
        let values = one_nan(Arc::new(values));
        let values: &Float64Array = values.as_primitive();
        let bits: Vec<_> = values.iter().map(|it| it.map(f64::to_bits)).collect();
        let nan = Some(f64::NAN.to_bits());
        assert_eq!(bits, [nan, None, Some((-0.0_f64).to_bits()), nan]);
        let singles = one_nan(Arc::new(Float32Array::from(vec![-f32::NAN])));
        let singles: &Float32Array = singles.as_primitive();
        assert!(singles.value(0).is_sign_positive());
    }
}
