//! Checks whether arrays can be combined, and names the difference if not.
//!
//! | check | between | compares |
//! |---|---|---|
//! | `variables_differ` | variables of one file | dimensions and labels |
//! | `names_differ` | files | names, kinds and units of dimensions |
//! | `labels_differ` | files | the labels of one dimension |
//! | `values_differ` | files | columns: names, types, fill values, packing, categories |
//!
//! Each returns the difference as a part of a sentence about `b`, the second argument: "its dimensions are
//! lat, not lon".
//!
//! Files must agree in everything that determines the meaning of a value, also in the reference of undated times. A
//! refusal names the file and the difference, so that users can act on it.

use super::own_fill::differs_in_fill_only;
use crate::array::{Dimension, GridArray, Value};

/// Returns why two variables of one file cannot be columns of one table; `None` if they can.
pub(super) fn variables_differ(a: &GridArray, b: &GridArray) -> Option<String> {
    names_differ(a.dims(), b.dims())
        .or_else(|| a.dims().iter().zip(b.dims()).find_map(|(a, b)| labels_differ(a, b)))
}

/// Returns how dimensions differ in names, kinds or units of labels; `None` if they do not. Does not compare
/// the labels.
pub(super) fn names_differ(a: &[Dimension], b: &[Dimension]) -> Option<String> {
    let names = |dims: &[Dimension]| {
        let names: Vec<&str> = dims.iter().map(Dimension::name).collect();
        names.join(", ")
    };
    let (of_a, of_b) = (names(a), names(b));
    if of_a != of_b || a.len() != b.len() {
        return Some(format!("its dimensions are {of_b}, not {of_a}"));
    }
    a.iter().zip(b).find_map(|(a, b)| kinds_differ(a, b))
}

/// Returns why the labels of two dimensions of one name cannot be concatenated; `None` if they can.
fn kinds_differ(a: &Dimension, b: &Dimension) -> Option<String> {
    let name = a.name();
    // Indices of one file and labels of another would mix two meanings in one column.
    if a.is_labelled() != b.is_labelled() {
        let has = if b.is_labelled() { "labels" } else { "no labels" };
        return Some(format!("its \"{name}\" has {has}, unlike the other \"{name}\""));
    }
    let (of_a, of_b) = (a.labels().data_type(), b.labels().data_type());
    if of_a != of_b {
        return Some(format!("its labels of \"{name}\" are of type {of_b}, not {of_a}"));
    }
    // 5 in "days since 2000" and 5 in "days since 2001" are different times, although both are the number
    // 5.
    let (of_a, of_b) = (a.unit(), b.unit());
    let text = |unit: Option<&str>| unit.unwrap_or("no unit").to_owned();
    (of_a != of_b)
        .then(|| format!("its labels of \"{name}\" are in {}, not in {}", text(of_b), text(of_a)))
}

/// Returns how the labels of two dimensions of one name differ; `None` if they are equal.
pub(super) fn labels_differ(a: &Dimension, b: &Dimension) -> Option<String> {
    let name = a.name();
    if a.len() != b.len() {
        return Some(format!("\"{name}\" has {} elements, not {}", b.len(), a.len()));
    }
    if a.labels().same(b.labels()) {
        return None;
    }
    Some(format!("\"{name}\" has other labels: {}, not {}", b.labels().ends(), a.labels().ends()))
}

/// Returns how the values of two files differ in name, type, fill value or packing; `None` if they do not.
pub(super) fn values_differ(a: &[Value], b: &[Value]) -> Option<String> {
    let names = |values: &[Value]| {
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        names.join(", ")
    };
    let (of_a, of_b) = (names(a), names(b));
    if of_a != of_b || a.len() != b.len() {
        return Some(format!("its values are {of_b}, not {of_a}"));
    }
    a.iter().zip(b).find_map(|(a, b)| {
        let (of_a, of_b) = (a.column.data_type(), b.column.data_type());
        if of_a != of_b {
            return Some(format!("\"{}\" is of type {of_b}, not {of_a}", a.name));
        }
        // The column has the fill value that is NULL and the packing. The format of cells has the fill value of missing
        // cells, which each file keeps.
        let same = a.column == b.column
            && (a.cells == b.cells || differs_in_fill_only(&a.cells, &b.cells));
        (!same)
            .then(|| format!("\"{}\" has another fill value, packing or set of categories", a.name))
    })
}
