//! Checks whether arrays can be combined, and names the differences if not.
//!
//! | check | between | compares |
//! |---|---|---|
//! | `variables_differ` | variables of one file | dimensions and labels |
//! | `array_differs` | an array, and what is known of it | names, kinds and units of dimensions; columns |
//! | `files_differ` | files | variables, dimensions, columns: types, fill values, packing, categories |
//! | `labels_differ` of `differences` | files | the labels of one dimension |
//!
//! Files must agree in everything that determines the meaning of a value, such as its unit and the reference of undated times.
//! They may differ in how they store it: in types, packing and fill values, see `common_values`. A refusal names the file and the
//! difference, so that users can act on it.

use super::differences::{Difference, differences, dims_differ, labels_differ, values_differ};
use super::file_arrays::FileArrays;
use crate::array::{Dimension, GridArray, Property, Value};

/// Returns why two variables of one file cannot be columns of one table; `None` if they can.
pub(super) fn variables_differ(a: &GridArray, b: &GridArray) -> Option<String> {
    let labels = || a.dims().iter().zip(b.dims()).find_map(|(a, b)| labels_differ(a, b));
    let stopping = dims_differ(a.dims(), b.dims()).into_iter().find(|it| it.stops_table);
    stopping.or_else(labels).map(|it| it.sentence())
}

/// Returns why an array cannot take the place of another one with these dimensions and variables; `None` if it can.
pub(super) fn array_differs(dims: &[Dimension], values: &[Value], b: &GridArray) -> Option<String> {
    let is_other = |it: &Difference| !matches!(it.property, Property::Attribute(_));
    let mut found =
        dims_differ(dims, b.dims()).into_iter().chain(values_differ(values, b.values()));
    found.find(is_other).map(|it| it.sentence())
}

/// Returns the differences between two files, apart from labels, that stop a table.
pub(super) fn files_differ(a: &FileArrays, b: &FileArrays) -> Vec<Difference> {
    let mut stopping = all_differences(a, b);
    stopping.retain(|it| it.stops_table);
    let is_structural =
        |it: &Difference| matches!(it.property, Property::Variables | Property::Dimensions);
    // Between files of other variables or dimensions, further differences are of no use.
    match stopping.iter().position(is_structural) {
        Some(at) => vec![stopping.swap_remove(at)],
        None => stopping,
    }
}

/// Returns all differences between two files, apart from labels.
pub(super) fn all_differences(a: &FileArrays, b: &FileArrays) -> Vec<Difference> {
    let (arrays_a, arrays_b): (Vec<_>, Vec<_>) = (a.required().collect(), b.required().collect());
    differences(&arrays_a, &arrays_b, a.is_one_array() && b.is_one_array())
}
