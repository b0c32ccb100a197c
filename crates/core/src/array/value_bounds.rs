//! [`ValueBounds`]: the least and the greatest value of chunks, for sources that know their values without reading them.
//!
//! ```text
//!   chunk                      station   least   greatest      station = 'Oslo'
//!   A A A A B B B B B B        A .. B    A       B             cannot hold: the chunk is skipped
//! ```
//!
//! [`Zones`](crate::format::Zones) hold stored numbers of up to eight bytes. These bounds are values of the column, of any type
//! that has an order: texts, unpacked numbers, times.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Float16Type, Float32Type, Float64Type};
use half::f16;

use crate::error::Result;

/// The least and the greatest value of each chunk of one variable.
pub trait ValueBounds: Debug + Send + Sync {
    /// Returns the least and the greatest value of each of the chunks with these row-major numbers; NULL where nothing is
    /// known. A chunk may hold NULLs besides.
    ///
    /// # Errors
    /// If values cannot be compared.
    fn bounds(&self, chunks: &[u64]) -> Result<(ArrayRef, ArrayRef)>;
}

/// Returns bounds in which both zeros are one, as in SQL: Arrow sorts -0.0 before 0.0.
pub fn with_both_zeros((least, greatest): (ArrayRef, ArrayRef)) -> (ArrayRef, ArrayRef) {
    (with_zero(least, true), with_zero(greatest, false))
}

/// Gives all zeros of floats one sign.
fn with_zero(values: ArrayRef, is_negative: bool) -> ArrayRef {
    if let Some(values) = values.as_primitive_opt::<Float64Type>() {
        let zero = if is_negative { -0.0 } else { 0.0 };
        return Arc::new(values.unary::<_, Float64Type>(|it| if it == 0.0 { zero } else { it }));
    }
    if let Some(values) = values.as_primitive_opt::<Float32Type>() {
        let zero = if is_negative { -0.0 } else { 0.0 };
        return Arc::new(values.unary::<_, Float32Type>(|it| if it == 0.0 { zero } else { it }));
    }
    if let Some(values) = values.as_primitive_opt::<Float16Type>() {
        let zero = if is_negative { f16::NEG_ZERO } else { f16::ZERO };
        let with_zero = |it: f16| if it == f16::ZERO { zero } else { it };
        return Arc::new(values.unary::<_, Float16Type>(with_zero));
    }
    values
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float32Array, Int8Array};

    use super::*;

    #[test]
    fn zeros_of_floats_widen_bounds_and_other_values_stay() {
        let values: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.0), None, Some(2.0)]));
        let (least, greatest) = with_both_zeros((Arc::clone(&values), Arc::clone(&values)));
        let bits = |it: &ArrayRef| it.as_primitive::<Float32Type>().value(0).to_bits();
        assert_eq!((bits(&least), bits(&greatest)), ((-0.0_f32).to_bits(), 0));
        assert_eq!((least.null_count(), least.len()), (1, 3));
        let whole: ArrayRef = Arc::new(Int8Array::from(vec![0, 1]));
        assert_eq!(with_both_zeros((Arc::clone(&whole), Arc::clone(&whole))).0.as_ref(), &*whole);
    }
}
