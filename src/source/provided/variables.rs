//! Chooses the arrays that become columns of a table if the options name no dataset.

use super::Named;
use crate::array::GridArray;
use crate::error::{Error, Result};
use crate::io::last_part;
use crate::source::axes::{mixed, with_axes};

/// Returns the arrays that do not hold coordinates.
///
/// `time (time)` has the name of its only dimension, so it is left out. `temperature (time, station)` and
/// `elevation (station)` stay, and are an error together, because their dimensions differ.
///
/// # Errors
/// `Usage` if there are none, or if they have different dimensions.
pub(crate) fn data_variables(location: &str, mut arrays: Vec<Named>) -> Result<Vec<GridArray>> {
    arrays.retain(|(_, array)| !array.as_ref().is_ok_and(is_coordinate));
    if arrays.is_empty() {
        let message = "all arrays here are coordinates; choose one with the option 'dataset'";
        return Err(Error::usage(message).in_file(location));
    }
    if arrays.len() == 1 || have_same_axes(&arrays) {
        return arrays.into_iter().map(|(_, array)| array).collect();
    }
    let listed = arrays.iter().map(|(name, array)| match array {
        Ok(array) => with_axes(name, &axes_of(array)),
        Err(error) => format!("\"{name}\" (cannot be opened: {})", error.detail()),
    });
    Err(mixed("there are several arrays", listed).in_file(location))
}

/// Whether all arrays are open, and have dimensions of the same names and lengths.
fn have_same_axes(arrays: &[Named]) -> bool {
    let mut axes = arrays.iter().map(|(_, array)| array.as_ref().ok().map(axes_of));
    let first = axes.next().flatten();
    first.is_some() && axes.all(|axes| axes == first)
}

/// Whether the array has the name of its only dimension, and so holds that dimension's coordinates.
fn is_coordinate(array: &GridArray) -> bool {
    matches!(array.dims(), [dimension] if dimension.name() == last_part(array.name()))
}

/// Returns the names and lengths of the array's dimensions.
fn axes_of(array: &GridArray) -> Vec<(String, u64)> {
    array.dims().iter().map(|dimension| (dimension.name().to_owned(), dimension.len())).collect()
}
