//! [`Slab`]: the rows of one row of chunks, and the cells of its chunks.
//!
//! ```text
//!   rows   (time, lat) ─▶ place in the slab         table   0  1  2  3        the row of each cell
//!            0, 1          1                                –  0  2  1
//!            1, 1          3                        chunk   0  1 │ 2  3       cells: NULL, row 0 │ row 2, row 1
//!            1, 0          2
//! ```

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, UInt32Array, UInt32Builder, new_empty_array,
};
use arrow::compute::{concat, take};
use arrow::datatypes::UInt32Type;
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use gridfusion_core::grid::{AxisSelection, for_each_run, unravel};
use gridfusion_core::write::{NewArray, NewChunk, NewVariable};

/// No row.
const NONE: u32 = u32::MAX;

/// Rows of one row of chunks, which come one batch after the other.
pub(super) struct Slab {
    /// The number of the row of chunks.
    number: u64,
    /// Its indices along each axis.
    ranges: Vec<Range<u64>>,
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
        let (ranges, cells) = ranges_of(array, number);
        if cells >= u64::from(NONE) {
            return exec_err!(
                "a row of chunks has {cells} cells, and at most {NONE} can be put together; choose a smaller length of the first dimension in 'chunks'"
            );
        }
        Ok(Self { number, ranges, rows: vec![NONE; cells as usize], batches: vec![], count: 0 })
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
        ranges_of(array, number).1.saturating_mul(size_of::<u32>() as u64 + 2 * cells)
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
            let Range { start, end } = self.ranges[axis];
            for (cell, number) in cells.iter_mut().zip(numbers) {
                let Some(at) =
                    places[*number as usize].checked_sub(start).filter(|at| *at < end - start)
                else {
                    return internal_err!("a row of an array is out of order");
                };
                *cell = *cell * (end - start) + at;
            }
        }
        for (row, cell) in cells.into_iter().enumerate() {
            let place = &mut self.rows[cell as usize];
            if *place != NONE {
                return exec_err!(
                    "two rows have the labels {}; aggregate them, or name more dimensions",
                    array.labels_of(&self.ranges, cell as usize)
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
        let across = array.chunks_of_region().split_off(1);
        let counts: Vec<u64> = across.iter().map(|range| range.end - range.start).collect();
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
                let at = unravel(number, &counts).into_iter().zip(&across);
                let at = at.map(|(at, range)| at + range.start);
                let coordinates: Vec<u64> = std::iter::once(self.number).chain(at).collect();
                let rows = self.rows_of(array, &coordinates);
                let cells = take(&values, &rows, None)?;
                let given = rows.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
                chunks.push(NewChunk { variable, coordinates, cells, given });
            }
        }
        Ok(chunks)
    }

    /// Returns the row of each cell of a chunk; NULL for a cell without a row.
    fn rows_of(&self, array: &NewArray, chunk: &[u64]) -> UInt32Array {
        let written = array.ranges_in(chunk);
        let within = |(written, own): (&Range<u64>, &Range<u64>)| {
            let within = written.start - own.start..written.end - own.start;
            AxisSelection::from_range(own.end - own.start, within)
        };
        let selection: Vec<AxisSelection> = written.iter().zip(&self.ranges).map(within).collect();
        let cells = written.iter().map(|range| range.end - range.start).product::<u64>();
        let mut rows = UInt32Builder::with_capacity(cells as usize);
        for_each_run(&selection, |run| {
            let run = &self.rows[run.start as usize..run.end as usize];
            run.iter().for_each(|row| rows.append_option((*row != NONE).then_some(*row)));
        });
        rows.finish()
    }
}

/// Returns the indices of a row of chunks that are written, and the number of its cells.
fn ranges_of(array: &NewArray, number: u64) -> (Vec<Range<u64>>, u64) {
    let mut ranges = array.region().to_vec();
    let row = array.grid().axis_range(0, number);
    ranges[0] = row.start.max(ranges[0].start)..row.end.min(ranges[0].end);
    let cells = ranges.iter().map(|range| range.end - range.start).product();
    (ranges, cells)
}
