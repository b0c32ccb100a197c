//! Boxes of cells out of larger ones, row by row.

use std::ops::Range;

use arrow::array::{ArrayRef, UInt64Builder};
use arrow::compute::take;

use crate::array::failed_to;
use crate::error::{Error, Result};

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
