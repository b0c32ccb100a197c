//! Chooses the arrays that become columns of a table if the options name no dataset.

use super::NamedArray;
use crate::error::{Error, Result};
use crate::io::last_part;
use crate::source::axes::{can_be_united, mixed, with_axes};
use crate::source::opened_array::OpenedArray;

/// Returns the arrays that do not hold coordinates.
///
/// `time (time)` has the name of its only dimension, so it is left out. `temperature (time, station)` and
/// `elevation (station)` stay, and are an error together, because their dimensions differ.
///
/// # Errors
/// `Usage` if there are none, or if they have different dimensions.
pub fn data_variables(location: &str, mut arrays: Vec<NamedArray>) -> Result<Vec<OpenedArray>> {
    retain_data(location, &mut arrays)?;
    if arrays.len() == 1 || have_same_axes(&arrays) {
        return arrays.into_iter().map(|(_, array)| array).collect();
    }
    let listed = arrays.iter().map(|(name, array)| match array {
        Ok(array) => with_axes(name, &array.axes()),
        Err(error) => format!("\"{name}\" (cannot be opened: {})", error.detail()),
    });
    let axes: Option<Vec<_>> =
        arrays.iter().map(|(_, array)| Some(array.as_ref().ok()?.axes())).collect();
    let can_be_united = axes.is_some_and(|axes| can_be_united(axes.iter()));
    Err(mixed("there are several arrays", listed, can_be_united).in_file(location))
}

/// Returns the names of the arrays that do not hold coordinates, whatever their dimensions.
///
/// # Errors
/// `Usage` if there are none.
pub(crate) fn data_variable_names(
    location: &str,
    mut arrays: Vec<NamedArray>,
) -> Result<Vec<String>> {
    retain_data(location, &mut arrays)?;
    Ok(arrays.into_iter().map(|(name, _)| name).collect())
}

/// Removes arrays that hold coordinates.
fn retain_data(location: &str, arrays: &mut Vec<NamedArray>) -> Result<()> {
    arrays.retain(|(_, array)| !array.as_ref().is_ok_and(is_coordinate));
    if arrays.is_empty() {
        let message = "all arrays here are coordinates; choose one with the option 'dataset'";
        return Err(Error::usage(message).in_file(location));
    }
    Ok(())
}

/// Whether all arrays are open grids, and have dimensions of the same names and lengths.
fn have_same_axes(arrays: &[NamedArray]) -> bool {
    let grid = |array: &OpenedArray| array.as_grid().is_some();
    let axes = |(_, array): &NamedArray| {
        array.as_ref().ok().filter(|array| grid(array)).map(OpenedArray::axes)
    };
    let mut axes = arrays.iter().map(axes);
    let first = axes.next().flatten();
    first.is_some() && axes.all(|axes| axes == first)
}

/// Whether the array has the name of its only dimension, and so holds that dimension's coordinates.
fn is_coordinate(array: &OpenedArray) -> bool {
    let Some(grid) = array.as_grid() else { return false };
    matches!(grid.dims(), [dimension] if dimension.name() == last_part(array.name()))
}
