//! Boxes of cells out of larger ones, row by row, and arrays out of boxes.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array, UInt64Builder};
use arrow::compute::{concat, take};

use crate::array::failed_to;
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, for_each_run, unravel};

/// Returns the cells of a box out of `cells`, which are those of an array of this `shape`, row by row. The box has `ranges` of indices.
/// Cells of the box that lie outside of the shape are NULL.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, AsArray, Int32Array};
/// use arrow::datatypes::Int32Type;
/// use gridfusion_core::write::cells_of_box;
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Int32Array::from_iter(0..6));
/// let cells = cells_of_box(&cells, &[2, 3], &[0..2, 2..4])?;
/// let cells: Vec<_> = cells.as_primitive::<Int32Type>().iter().collect();
/// assert_eq!(cells, [Some(2), None, Some(5), None]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if there are not as many cells as the shape has.
pub fn cells_of_box(cells: &ArrayRef, shape: &[u64], ranges: &[Range<u64>]) -> Result<ArrayRef> {
    let whole = shape.iter().fold(1_u64, |cells, len| cells.saturating_mul(*len));
    if whole != cells.len() as u64 {
        let message = format!("{} cells for a box of {whole} cells", cells.len());
        return Err(Error::usage(message));
    }
    if ranges.iter().zip(shape).all(|(range, len)| *range == (0..*len)) {
        return Ok(ArrayRef::clone(cells));
    }
    let count: u64 = ranges.iter().map(|range| range.end - range.start).product();
    let mut indices = UInt64Builder::with_capacity(count as usize);
    append_indices(&mut indices, shape, ranges, Some(0));
    take(cells, &indices.finish(), None).map_err(failed_to("cut a box of cells"))
}

/// Returns the cells of a whole array, row by row, out of those of its chunks. Cells of chunks that are not there are NULL. `none` has the
/// type of an array without chunks.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, AsArray, Int32Array};
/// use arrow::datatypes::Int32Type;
/// use gridfusion_core::grid::ChunkGrid;
/// use gridfusion_core::write::cells_of_chunks;
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Int32Array::from(vec![7, 8]));
/// let grid = ChunkGrid::new(&[2, 2], &[2, 1])?;
/// let cells = cells_of_chunks(&grid, &[(vec![0, 1], Arc::clone(&cells))], &cells)?;
/// let cells: Vec<_> = cells.as_primitive::<Int32Type>().iter().collect();
/// assert_eq!(cells, [None, Some(7), None, Some(8)]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if there is no such chunk, or it does not have the cells that the grid has there.
pub fn cells_of_chunks(
    grid: &ChunkGrid,
    chunks: &[(Vec<u64>, ArrayRef)],
    none: &ArrayRef,
) -> Result<ArrayRef> {
    /// No cell.
    const NONE: u64 = u64::MAX;
    let mut indices = vec![NONE; grid.cells() as usize];
    let mut first = 0;
    for (coordinates, cells) in chunks {
        if grid.chunk_number(coordinates).is_none() {
            return Err(Error::usage(format!("there is no chunk {coordinates:?}")));
        }
        let expected: u64 = grid.extents(coordinates).iter().product();
        if cells.len() as u64 != expected {
            let message = format!("chunk {coordinates:?} has {} cells of {expected}", cells.len());
            return Err(Error::usage(message));
        }
        let axes = grid.shape().iter().zip(coordinates).enumerate();
        let within = axes
            .map(|(axis, (len, at))| AxisSelection::from_range(*len, grid.axis_range(axis, *at)));
        let mut next = first..first + expected;
        for_each_run(&within.collect::<Vec<_>>(), |run| {
            let places = &mut indices[run.start as usize..run.end as usize];
            places.iter_mut().zip(&mut next).for_each(|(place, index)| *place = index);
        });
        first += expected;
    }
    let parts: Vec<&dyn Array> = chunks.iter().map(|(_, cells)| cells.as_ref()).collect();
    let values = match parts.is_empty() {
        true => none.slice(0, 0),
        false => concat(&parts).map_err(failed_to("put chunks together"))?,
    };
    let is_there = (first < grid.cells()).then(|| indices.iter().map(|at| *at != NONE).collect());
    let indices = UInt64Array::new(indices.into(), is_there);
    take(&values, &indices, None).map_err(failed_to("put chunks together"))
}

/// Appends the indices of the cells below one cell of the outer axes, which is outside of the array if `outer` is `None`.
fn append_indices(
    indices: &mut UInt64Builder,
    shape: &[u64],
    ranges: &[Range<u64>],
    outer: Option<u64>,
) {
    let ([len, inner @ ..], [range, inner_ranges @ ..]) = (shape, ranges) else {
        indices.append_option(outer);
        return;
    };
    let index = |at: u64| outer.filter(|_| at < *len).map(|outer| outer * len + at);
    match inner.is_empty() {
        true => range.clone().for_each(|at| indices.append_option(index(at))),
        false => {
            range.clone().for_each(|at| append_indices(indices, inner, inner_ranges, index(at)))
        }
    }
}

/// Calls `f` with the indices of each row of a box, along all axes but the last.
///
/// ```
/// let mut rows = vec![];
/// gridfusion_core::write::for_each_row(&[4..6, 1..2, 0..9], |outer| rows.push(outer.to_vec()));
/// assert_eq!(rows, [[4, 1], [5, 1]]);
/// ```
pub fn for_each_row(ranges: &[Range<u64>], mut f: impl FnMut(&[u64])) {
    let outer = &ranges[..ranges.len().saturating_sub(1)];
    let counts = lens(outer);
    for row in 0..counts.iter().product() {
        let mut at = unravel(row, &counts);
        at.iter_mut().zip(outer).for_each(|(at, range)| *at += range.start);
        f(&at);
    }
}

/// Returns the lengths of ranges.
///
/// ```
/// assert_eq!(gridfusion_core::write::lens(&[4..6, 1..2]), [2, 1]);
/// ```
pub fn lens(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}
