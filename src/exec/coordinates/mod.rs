//! Coordinates that repeat along some axes: expressions over them are evaluated once per cell of their own axes.
//!
//! ```text
//!   lat (y, x) beside t (time, y, x)                     plane    the axes y and x
//!
//!   WHERE lat > 60         evaluated on y × x cells      ──▶      rows and columns of cells, and chunks, that hold none
//!                                                                 are not selected; reductions leave out cells
//!   GROUP BY floor(lat)    numbered on y × x cells       ──▶      a group per cell, for all times
//!   station_name (station) one axis                      ──▶      as labels of that axis
//! ```
//!
//! The cells of a coordinate are read once, whole, and kept by the array for the next query. In a table of several files, they are
//! read from each file that a query touches, and must be the same. Larger coordinates, and those that differ from file to file,
//! are read per row, as other variables are.

mod cells;
mod coordinate;
mod plane;

pub(super) use cells::known_cells;
pub(super) use plane::{Plane, PlaneColumns};

use std::collections::BTreeSet;

use coordinate::Coordinate;

use crate::array::{ColumnSource, GridArray};
use crate::grid::Selection;

/// The most cells on which expressions are evaluated while planning.
const MOST_CELLS: u64 = 1 << 24;

/// Returns the number of cells to read before expressions over `columns` can be evaluated on `selection`.
pub(super) fn cells_to_read(
    array: &GridArray,
    columns: &[ColumnSource],
    selection: &Selection,
) -> u64 {
    let cells = columns.iter().map(|column| match column {
        ColumnSource::Value(value) => {
            Coordinate::new(array, *value).cells_to_read(array, selection)
        }
        _ => 0,
    });
    cells.fold(0, u64::saturating_add)
}

/// Returns the axes that `columns` are over, ascending, if one of them is a variable that repeats along some of the others.
/// `None` if a variable differs along all axes, or if the axes have too many cells.
pub(super) fn plane_axes(
    array: &GridArray,
    columns: impl IntoIterator<Item = ColumnSource>,
) -> Option<Vec<usize>> {
    let (rank, shape) = (array.grid().rank(), array.grid().shape());
    let (mut axes, mut has_variable) = (BTreeSet::new(), false);
    for column in columns {
        match column {
            ColumnSource::Value(value) => {
                axes.extend(Coordinate::new(array, value).axes);
                has_variable = true;
            }
            _ => axes.extend(column.axis()),
        }
    }
    let cells = axes.iter().try_fold(1_u64, |cells, axis| cells.checked_mul(shape[*axis]))?;
    let is_plane = has_variable && axes.len() < rank && cells <= MOST_CELLS;
    is_plane.then(|| axes.into_iter().collect())
}
