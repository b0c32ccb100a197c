//! Boxes of cells out of larger ones, row by row.

use arrow::array::{ArrayRef, UInt64Builder};
use arrow::compute::take;

use crate::array::failed_to;
use crate::error::{Error, Result};

/// The first index of a box along each axis, and its lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The first index along each axis.
    pub origin: Vec<u64>,
    /// The length along each axis.
    pub shape: Vec<u64>,
}

impl Extent {
    /// Returns the box at these coordinates of a grid of boxes, without what lies outside of an array of shape `of`.
    ///
    /// ```
    /// use gridfusion_core::write::Extent;
    ///
    /// let last = Extent::clipped(&[1, 0], &[4, 3], &[6, 3]);
    /// assert_eq!(last, Extent { origin: vec![4, 0], shape: vec![2, 3] });
    /// ```
    pub fn clipped(coordinates: &[u64], shape: &[u64], of: &[u64]) -> Self {
        let origin: Vec<u64> =
            coordinates.iter().zip(shape).map(|(at, len)| at.saturating_mul(*len)).collect();
        let lengths = origin.iter().zip(shape).zip(of);
        let shape = lengths.map(|((at, len), all)| (*len).min(all.saturating_sub(*at))).collect();
        Self { origin, shape }
    }

    /// Returns the number of cells; `u64::MAX` if there are more.
    pub fn cells(&self) -> u64 {
        self.shape.iter().fold(1, |cells, len| cells.saturating_mul(*len))
    }
}

/// Returns the cells of a box out of `cells`, which are those of an array of this `shape`, row by row. Cells of the box that lie outside
/// of the shape are NULL.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, AsArray, Int32Array};
/// use arrow::datatypes::Int32Type;
/// use gridfusion_core::write::{Extent, cells_of_box};
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Int32Array::from_iter(0..6));
/// let right = Extent { origin: vec![0, 2], shape: vec![2, 2] };
/// let cells = cells_of_box(&cells, &[2, 3], &right)?;
/// let cells: Vec<_> = cells.as_primitive::<Int32Type>().iter().collect();
/// assert_eq!(cells, [Some(2), None, Some(5), None]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if there are not as many cells as the shape has.
pub fn cells_of_box(cells: &ArrayRef, shape: &[u64], part: &Extent) -> Result<ArrayRef> {
    let whole = Extent { origin: vec![0; shape.len()], shape: shape.to_vec() };
    if whole.cells() != cells.len() as u64 {
        let message = format!("{} cells for a box of {} cells", cells.len(), whole.cells());
        return Err(Error::usage(message));
    }
    if *part == whole {
        return Ok(ArrayRef::clone(cells));
    }
    let mut indices = UInt64Builder::with_capacity(part.cells() as usize);
    append_indices(&mut indices, shape, part, 0, Some(0));
    take(cells, &indices.finish(), None).map_err(failed_to("cut a box of cells"))
}

/// Appends the indices of the cells below one cell of the outer axes, which is outside of the array if `outer` is `None`.
fn append_indices(
    indices: &mut UInt64Builder,
    shape: &[u64],
    part: &Extent,
    axis: usize,
    outer: Option<u64>,
) {
    let Some(len) = shape.get(axis) else {
        indices.append_option(outer);
        return;
    };
    let origin = part.origin[axis];
    for at in origin..origin + part.shape[axis] {
        let index = outer.filter(|_| at < *len).map(|outer| outer * len + at);
        append_indices(indices, shape, part, axis + 1, index);
    }
}
