//! Labels from a coordinate dataset: times become timestamps, and numbers keep their type.
//!
//! | stored elements | type of the labels |
//! |---|---|
//! | numbers with the units of a CF time of `standard`, one of which is before 1582-10-15 | the stored type, shown as dates |
//! | other numbers with the units of a CF time whose calendar SQL has | Timestamp(µs); Timestamp(ns) if they count nanoseconds |
//! | packed numbers | Float64; Float32 if the packing is in singles |
//! | f16 | Float64 |
//! | integer codes with `tetration_categories` | Utf8View |
//! | other numbers | the stored type |
//!
//! Fill values become NULL labels, if the options set so.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::kernels::cmp::eq;
use arrow::compute::{cast, min, nullif};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float64Type, Int64Type, UInt64Type,
};

use super::cf_time::TimeUnits;
use super::values::NOT_A_TIME;

/// Returns the labels for the `values` of a coordinate with these `attributes`: numbers may be times. Adds reasons
/// why numbers are no times to `odd`.
pub(super) fn label_values(
    values: ArrayRef,
    attributes: &BTreeMap<String, String>,
    odd: &mut Vec<String>,
) -> ArrayRef {
    if let Some(times) = times(&values, attributes, odd) {
        return times;
    }
    match values.data_type() {
        DataType::Float16 => {
            Arc::new(values.as_primitive::<Float16Type>().unary::<_, Float64Type>(f64::from))
        }
        _ => values,
    }
}

/// Returns the labels as timestamps if their attributes describe times. If the conversion fails, adds
/// the reason to `odd`, and all labels stay numbers: a column cannot hold both.
fn times(
    values: &ArrayRef,
    attributes: &BTreeMap<String, String>,
    odd: &mut Vec<String>,
) -> Option<ArrayRef> {
    let units = match TimeUnits::from_attributes(attributes) {
        Ok(units) => units.or_else(|| TimeUnits::from_lengths(attributes))?,
        Err(why) => {
            odd.push(format!("{why}; the labels stay numbers"));
            return None;
        }
    };
    let Some(times) = timestamps(values, units.of_instants()) else {
        odd.push("some times do not fit a timestamp; the labels stay numbers".to_owned());
        return None;
    };
    // SQL has other dates for these days, so the numbers are shown as dates of the file's calendar.
    if units.precedes_reform(min(&times)) {
        return None;
    }
    // Lengths of time are counted like times, from 0.
    cast(&times, &units.data_type()).ok()
}

/// Converts numeric offsets to counts of timestamps; `None` if one of them is out of range or not a number.
fn timestamps(values: &ArrayRef, units: TimeUnits) -> Option<Int64Array> {
    let wide = |to: DataType| cast(values, &to).ok();
    match values.data_type() {
        it if it.is_floating() => {
            try_map::<Float64Type>(&wide(DataType::Float64)?, |value| units.at_float(value))
        }
        it if it.is_signed_integer() => {
            let numbers = without_nat(&wide(DataType::Int64)?)?;
            try_map::<Int64Type>(&numbers, |value| units.at_integer(value.into()))
        }
        it if it.is_unsigned_integer() => {
            try_map::<UInt64Type>(&wide(DataType::UInt64)?, |value| units.at_integer(value.into()))
        }
        _ => None,
    }
}

/// Returns the numbers with NULL for the least `i64`, which has the bits of numpy's NaT.
fn without_nat(numbers: &ArrayRef) -> Option<ArrayRef> {
    let is_nat = eq(numbers, &Int64Array::new_scalar(NOT_A_TIME)).ok()?;
    nullif(numbers, &is_nat).ok()
}

/// Converts each number by `at`; `None` if one of them fails. NULL labels stay NULL.
fn try_map<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    at: impl Fn(T::Native) -> Option<i64>,
) -> Option<Int64Array> {
    let values: &PrimitiveArray<T> = values.as_primitive();
    values.try_unary::<_, _, ()>(|value| at(value).ok_or(())).ok()
}
