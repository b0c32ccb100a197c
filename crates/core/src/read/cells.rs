//! [`Cells`]: the selected cells of a variable as an N-dimensional array in memory.
//!
//! ```text
//!   selection, row-major     chunk 0   chunk 1       each chunk is a box of the result, and its rows along
//!                            ├─ row ─┤ ├─ row ─┤     the last axes are copied whole
//! ```

use std::fmt;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};

use crate::error::{Error, Result};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection, ravel};

/// The cells of a variable in row-major order, and which of them are NULL.
#[derive(Clone, PartialEq)]
pub struct Cells<T: ArrowPrimitiveType> {
    shape: Vec<usize>,
    values: Vec<T::Native>,
    /// Whether each cell has a value; empty while all have one.
    valid: Vec<bool>,
}

/// Shows no cells, of which there may be millions.
impl<T: ArrowPrimitiveType> fmt::Debug for Cells<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, nulls) = (&self.shape, self.null_count());
        f.debug_struct("Cells").field("shape", shape).field("nulls", &nulls).finish_non_exhaustive()
    }
}

impl<T: ArrowPrimitiveType> Cells<T> {
    /// Makes room for the cells of a selection.
    pub(super) fn new(selection: &Selection) -> Result<Self> {
        let counts = selection.axes().iter().map(AxisSelection::count);
        let too_many = || Error::usage("more cells than memory can hold; select less");
        let shape: Vec<usize> = counts
            .map(usize::try_from)
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| too_many())?;
        let count = shape.iter().try_fold(1_usize, |cells, len| cells.checked_mul(*len));
        let count = match shape.contains(&0) {
            true => 0,
            false => count.ok_or_else(too_many)?,
        };
        let mut values: Vec<T::Native> = vec![];
        values.try_reserve_exact(count).map_err(|_| too_many())?;
        values.resize(count, T::Native::default());
        Ok(Self { shape, values, valid: vec![] })
    }

    /// Returns all cells as the place for a reader.
    pub(super) fn target(&mut self) -> Target<'_, T> {
        Target { shape: &self.shape, values: &mut self.values, valid: &mut self.valid }
    }

    /// The number of cells along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All cells in row-major order. A NULL holds any value; see [`get`](Self::get).
    #[must_use]
    pub fn values(&self) -> &[T::Native] {
        &self.values
    }

    /// The number of cells that are NULL.
    #[must_use]
    pub fn null_count(&self) -> usize {
        self.valid.iter().filter(|valid| !**valid).count()
    }

    /// The cell at an index per dimension; `None` if it is NULL, or there is no such cell.
    #[must_use]
    pub fn get(&self, index: &[usize]) -> Option<T::Native> {
        let is_within = index.len() == self.shape.len()
            && index.iter().zip(&self.shape).all(|(index, len)| index < len);
        let mut at = 0;
        for (index, len) in index.iter().zip(&self.shape) {
            at = at * len + index;
        }
        let is_valid = is_within && self.valid.get(at).copied().unwrap_or(true);
        is_valid.then(|| self.values.get(at).copied()).flatten()
    }

    /// The cells in row-major order as an Arrow array, without a copy of the values.
    #[must_use]
    pub fn into_array(self) -> PrimitiveArray<T> {
        let nulls =
            (!self.valid.is_empty()).then(|| NullBuffer::new(BooleanBuffer::from(self.valid)));
        PrimitiveArray::new(ScalarBuffer::from(self.values), nulls)
    }
}

/// Memory for the selected cells of a variable, in row-major order.
pub(super) struct Target<'a, T: ArrowPrimitiveType> {
    pub(super) shape: &'a [usize],
    pub(super) values: &'a mut [T::Native],
    /// Whether each cell has a value; empty while all have one.
    pub(super) valid: &'a mut Vec<bool>,
}

impl<T: ArrowPrimitiveType> Target<'_, T> {
    /// Copies the selected cells of a chunk to their places.
    pub(super) fn place(
        &mut self,
        grid: &ChunkGrid,
        selection: &Selection,
        task: &ChunkTask,
        column: &ArrayRef,
    ) -> Result<()> {
        let column = column.as_primitive_opt::<T>();
        let column = column.ok_or_else(|| Error::internal("a column of another type"))?;
        let lens: Vec<u64> = task.selection.iter().map(AxisSelection::count).collect();
        let first = task.coordinates.iter().zip(selection.axes()).enumerate();
        let first: Vec<u64> = first
            .map(|(axis, (chunk, selected))| {
                selected.count_before(grid.axis_range(axis, *chunk).start)
            })
            .collect();
        let shape: Vec<u64> = self.shape.iter().map(|len| *len as u64).collect();
        let start = ravel(&first, &shape) as usize;
        let (outer, row) = rows(&lens, &shape);
        let mut at = vec![0; outer];
        let strides: Vec<usize> =
            (0..outer).map(|axis| self.shape[axis + 1..].iter().product()).collect();
        for source in (0..column.len()).step_by(row.max(1)) {
            let steps = at.iter().zip(&strides).map(|(at, stride)| *at as usize * stride);
            self.copy(column, source, start + steps.sum::<usize>(), row)?;
            step(&mut at, &lens);
        }
        Ok(())
    }

    fn copy(
        &mut self,
        column: &PrimitiveArray<T>,
        from: usize,
        to: usize,
        len: usize,
    ) -> Result<()> {
        let target = self.values.get_mut(to..to + len);
        let (Some(target), Some(source)) = (target, column.values().get(from..from + len)) else {
            return Err(Error::internal("a chunk that is not within the selection"));
        };
        target.copy_from_slice(source);
        if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
            if self.valid.is_empty() {
                self.valid.resize(self.values.len(), true);
            }
            for (at, valid) in self.valid[to..to + len].iter_mut().enumerate() {
                *valid = nulls.is_valid(from + at);
            }
        }
        Ok(())
    }
}

/// Returns how many leading axes to step through when a box of `lens` is copied into an array of `shape`. Also returns the
/// cells per copy. A box that spans whole axes needs no steps along these.
fn rows(lens: &[u64], shape: &[u64]) -> (usize, usize) {
    let mut outer = lens.len();
    let mut row = 1;
    while let Some(axis) = outer.checked_sub(1) {
        outer = axis;
        row *= lens[axis];
        if lens[axis] != shape[axis] {
            break;
        }
    }
    (outer, row as usize)
}

/// Steps to the next row.
fn step(at: &mut [u64], lens: &[u64]) {
    for (at, len) in at.iter_mut().zip(lens).rev() {
        *at += 1;
        if *at < *len {
            return;
        }
        *at = 0;
    }
}
