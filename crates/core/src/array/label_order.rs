//! The sort order of labels: ascending, descending or unsorted.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, make_comparator};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

use super::arrow_error::failed_to;
use crate::error::Result;

/// The sort order of a dimension's labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOrder {
    /// Each label is greater than the one before it; none is NULL.
    Ascending,
    /// Each label is less than the one before it; none is NULL.
    Descending,
    /// Neither: labels may be in any order, repeat or be NULL.
    Unsorted,
}

impl LabelOrder {
    /// Returns the order of `values`. Each direction stops at the first pair of labels against it.
    ///
    /// # Errors
    /// `Internal` for values of a type that Arrow does not compare.
    pub(super) fn try_new(values: &ArrayRef) -> Result<Self> {
        if values.null_count() > 0 || holds_negative_zero(values) {
            return Ok(Self::Unsorted);
        }
        let compare = make_comparator(values, values, SortOptions::default())
            .map_err(failed_to("compare labels"))?;
        let all = |wanted| (1..values.len()).all(|i| compare(i - 1, i) == wanted);
        Ok(if all(Ordering::Less) {
            Self::Ascending
        } else if all(Ordering::Greater) {
            Self::Descending
        } else {
            Self::Unsorted
        })
    }
}

/// Returns labels in which Arrow's order takes both zeros as equal, as SQL does. The result is for
/// comparing only: floats become doubles if one of them is -0.0.
///
/// # Errors
/// `Internal` if Arrow cannot convert the labels.
pub fn with_one_zero(values: ArrayRef) -> Result<ArrayRef> {
    if !holds_negative_zero(&values) {
        return Ok(values);
    }
    let doubles = cast(&values, &DataType::Float64).map_err(failed_to("compare labels"))?;
    // -0.0 + 0.0 is 0.0, and other numbers stay.
    let sums: Float64Array = doubles.as_primitive::<Float64Type>().unary(|value| value + 0.0);
    Ok(Arc::new(sums))
}

/// Returns numbers of the same type, in which every zero is positive.
///
/// # Errors
/// `Internal` if Arrow cannot convert the numbers.
pub fn without_negative_zeros(values: ArrayRef) -> Result<ArrayRef> {
    let data_type = values.data_type().clone();
    let doubles = with_one_zero(values)?;
    if *doubles.data_type() == data_type {
        return Ok(doubles);
    }
    // Each double was made of a narrower number, so no digit is lost.
    cast(&doubles, &data_type).map_err(failed_to("convert numbers"))
}

/// Whether a zero is negative. Arrow sorts it before positive zero, but in SQL both zeros are equal.
fn holds_negative_zero(values: &ArrayRef) -> bool {
    let is = |value: f64| value == 0.0 && value.is_sign_negative();
    if let Some(values) = values.as_primitive_opt::<Float64Type>() {
        values.values().iter().any(|value| is(*value))
    } else if let Some(values) = values.as_primitive_opt::<Float32Type>() {
        values.values().iter().any(|value| is((*value).into()))
    } else if let Some(values) = values.as_primitive_opt::<Float16Type>() {
        values.values().iter().any(|value| is((*value).into()))
    } else {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float16Array, Float32Array, Float64Array};
    use half::f16;

    use super::*;

    #[test]
    fn two_zeros_are_in_no_strict_order() {
        let of = |values: ArrayRef| LabelOrder::try_new(&values).unwrap();
        let halves =
            |all: [f32; 2]| Arc::new(Float16Array::from_iter_values(all.map(f16::from_f32)));
        assert_eq!(of(Arc::new(Float64Array::from(vec![-0.0, 0.0]))), LabelOrder::Unsorted);
        assert_eq!(of(Arc::new(Float32Array::from(vec![-0.0, 0.0]))), LabelOrder::Unsorted);
        assert_eq!(of(halves([-0.0, 0.0])), LabelOrder::Unsorted);
        assert_eq!(of(halves([0.0, 1.0])), LabelOrder::Ascending);
    }

    #[test]
    fn both_zeros_compare_as_one_label() {
        for zeros in [
            Arc::new(Float64Array::from(vec![-0.0, 0.0])) as ArrayRef,
            Arc::new(Float32Array::from(vec![-0.0, 0.0])),
            Arc::new(Float16Array::from_iter_values([-0.0, 0.0].map(f16::from_f32))),
        ] {
            let one = with_one_zero(zeros).unwrap();
            let compare = make_comparator(&one, &one, SortOptions::default()).unwrap();
            assert_eq!(compare(0, 1), Ordering::Equal, "{one:?}");
        }
        let others: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 0.0]));
        assert_eq!(&with_one_zero(Arc::clone(&others)).unwrap(), &others);
    }
}
