//! In which order labels are.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::Float64Type;

use super::arrow_error::failed_to;
use crate::error::Result;

/// How the labels of a dimension follow one another.
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
    /// The order of `values`.
    ///
    /// # Errors
    /// `Unsupported` for values of a type that Arrow does not compare.
    pub(super) fn of(values: &ArrayRef) -> Result<Self> {
        // To Arrow's order -0.0 is less than 0.0; to SQL they are one number.
        let negative_zero = |value: &f64| *value == 0.0 && value.is_sign_negative();
        let floats = values.as_primitive_opt::<Float64Type>();
        let may_repeat = floats.is_some_and(|it| it.values().iter().any(negative_zero));
        if values.null_count() > 0 || may_repeat {
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
