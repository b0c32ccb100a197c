//! [`Slab`]: the rows of one row of chunks, and the cells of its chunks.
//!
//! ```text
//!   rows   (time, lat) ─▶ place in the slab         table   0  1  2  3        the row of each cell
//!            0, 1          1                                –  0  2  1
//!            1, 1          3                        chunk   0  1 │ 2  3       cells: NULL, row 0 │ row 2, row 1
//!            1, 0          2
//! ```

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::UInt32Type;
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use gridfusion_core::write::{Extent, NewArray, NewChunk, NewVariable};

/// No row.
const NONE: u32 = u32::MAX;

/// Rows of one row of chunks, which come one batch after the other.
pub(super) struct Slab {
    /// The number of the row of chunks.
    number: u64,
    extent: Extent,
    /// The number of the row of each cell.
    rows: Vec<u32>,
    batches: Vec<RecordBatch>,
    count: usize,
}

impl Slab {
    /// Makes a slab without rows.
    ///
    /// # Errors
    /// If it has more cells than rows can be counted.
    pub(super) fn try_new(array: &NewArray, number: u64) -> Result<Self> {
        let extent = extent(array, number);
        let cells = extent.cells();
        if cells >= u64::from(NONE) {
            return exec_err!(
                "a row of chunks has {cells} cells, and at most {NONE} can be put together; choose a smaller length of the first dimension in 'chunks'"
            );
        }
        Ok(Self { number, extent, rows: vec![NONE; cells as usize], batches: vec![], count: 0 })
    }

    /// Returns the number of the row of chunks.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the bytes that a slab takes besides its rows: the row of each cell, the cells of chunks, and these encoded.
    pub(super) fn memory(array: &NewArray, number: u64) -> u64 {
        /// The bytes of a text, as far as they are known.
        const TEXT: usize = 16;
        let width = |it: &NewVariable| it.data_type.primitive_width().unwrap_or(TEXT) as u64;
        let cells: u64 = array.variables().iter().map(width).sum();
        extent(array, number).cells().saturating_mul(size_of::<u32>() as u64 + 2 * cells)
    }

    /// Adds rows. The first columns have the numbers of labels, of which `places` has the indices.
    ///
    /// # Errors
    /// For two rows of one cell.
    pub(super) fn push(
        &mut self,
        array: &NewArray,
        batch: RecordBatch,
        places: &[Vec<u64>],
    ) -> Result<()> {
        let mut cells = vec![0_u64; batch.num_rows()];
        for (axis, places) in places.iter().enumerate() {
            let numbers = batch.column(axis).as_primitive::<UInt32Type>().values();
            let (origin, len) = (self.extent.origin[axis], self.extent.shape[axis]);
            for (cell, number) in cells.iter_mut().zip(numbers) {
                let Some(at) = places[*number as usize].checked_sub(origin).filter(|at| *at < len)
                else {
                    return internal_err!("a row of an array is out of order");
                };
                *cell = *cell * len + at;
            }
        }
        for (row, cell) in cells.into_iter().enumerate() {
            let place = &mut self.rows[cell as usize];
            if *place != NONE {
                return exec_err!(
                    "two rows have the labels {}; aggregate them, or name more dimensions",
                    array.labels_of(&self.extent, cell as usize)
                );
            }
            *place = (self.count + row) as u32;
        }
        self.count += batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }

    /// Returns the chunks of all variables.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn chunks(&self, array: &NewArray) -> Result<Vec<NewChunk>> {
        let rank = array.dimensions().len();
        let counts = &array.chunk_counts()[1..];
        let mut chunks = vec![];
        for (variable, described) in array.variables().iter().enumerate() {
            let columns: Vec<ArrayRef> =
                self.batches.iter().map(|it| ArrayRef::clone(it.column(rank + variable))).collect();
            let parts: Vec<&dyn Array> = columns.iter().map(|it| it.as_ref()).collect();
            let values = match parts.is_empty() {
                true => new_empty_array(&described.data_type),
                false => concat(&parts)?,
            };
            for number in 0..counts.iter().product() {
                let mut coordinates = coordinates_of(number, counts);
                coordinates.insert(0, self.number);
                let extent = Extent::clipped(&coordinates, array.chunk_shape(), &array.shape());
                let cells = take(&values, &self.rows_of(&extent), None)?;
                chunks.push(NewChunk { variable, coordinates, cells });
            }
        }
        Ok(chunks)
    }

    /// Returns the row of each cell of a chunk; NULL for a cell without a row.
    fn rows_of(&self, chunk: &Extent) -> UInt32Array {
        let mut rows = Vec::with_capacity(chunk.cells() as usize);
        self.append_rows(&mut rows, chunk, 0, 0);
        rows.into_iter().map(|row| (row != NONE).then_some(row)).collect()
    }

    fn append_rows(&self, rows: &mut Vec<u32>, chunk: &Extent, axis: usize, outer: usize) {
        let len = self.extent.shape[axis] as usize;
        let first = outer * len + (chunk.origin[axis] - self.extent.origin[axis]) as usize;
        let own = first..first + chunk.shape[axis] as usize;
        match axis + 1 == chunk.shape.len() {
            true => rows.extend_from_slice(&self.rows[own]),
            false => own.for_each(|at| self.append_rows(rows, chunk, axis + 1, at)),
        }
    }
}

/// Returns the cells of a row of chunks.
fn extent(array: &NewArray, number: u64) -> Extent {
    let (shape, mut chunk) = (array.shape(), array.shape());
    chunk[0] = array.chunk_shape()[0];
    let mut coordinates = vec![0; shape.len()];
    coordinates[0] = number;
    Extent::clipped(&coordinates, &chunk, &shape)
}

fn coordinates_of(mut number: u64, counts: &[u64]) -> Vec<u64> {
    let mut coordinates = vec![0; counts.len()];
    for (at, count) in coordinates.iter_mut().zip(counts).rev() {
        (*at, number) = (number % count, number / count);
    }
    coordinates
}
