//! [`RowSlabs`]: rows in the order of a new array, as rows of chunks.
//!
//! ```text
//!   rows   (time, lat)  value        row of chunks 0      cells: a, b │ c, NULL
//!            0, 0       a     run
//!            0, 1       b    ─┘
//!            0, 2       c
//!            1, 0       d            row of chunks 1      cells: d, … │ …
//! ```
//!
//! Rows whose cells lie side by side along the last dimension are copied as a run.

use std::collections::VecDeque;
use std::ops::Range;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use async_trait::async_trait;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use futures::TryStreamExt;
use gridfusion_core::write::{CellRows, ChunkBuffers, NewArray};

use super::new_store::{ChunkRows, CutChunks, cell_bytes, have_one_width, reserve};

/// Rows whose first columns have the numbers of labels.
pub(super) struct RowSlabs {
    rows: SendableRecordBatchStream,
    /// Per dimension, the index of each number of a label.
    places: Vec<Vec<u64>>,
    /// The row of chunks that rows are added to.
    slab: Option<ChunkBuffers>,
    /// Rows that were read and not added yet, with the numbers of their rows of chunks.
    parts: VecDeque<(u64, RecordBatch)>,
}

impl RowSlabs {
    pub(super) fn new(rows: SendableRecordBatchStream, places: Vec<Vec<u64>>) -> Self {
        Self { rows, places, slab: None, parts: VecDeque::new() }
    }

    /// Returns the rows of a batch by the row of chunks that they are in.
    fn parts_of(&self, array: &NewArray, batch: &RecordBatch) -> Vec<(u64, Range<usize>)> {
        let slab = |number: &u32| array.grid().chunk_of(0, self.places[0][*number as usize]);
        let runs = numbers(batch, 0).chunk_by(|a, b| a == b || slab(a) == slab(b));
        let mut start = 0;
        let run = |run: &[u32]| {
            let range = start..start + run.len();
            start = range.end;
            (slab(&run[0]), range)
        };
        runs.map(run).collect()
    }

    /// Returns the rows whose cells lie side by side along the last dimension.
    fn runs_of(&self, batch: &RecordBatch) -> Vec<Range<usize>> {
        let mut begins = vec![false; batch.num_rows()];
        let (last, outer) = (self.places.len() - 1, 0..self.places.len() - 1);
        for axis in outer {
            let pairs = numbers(batch, axis).windows(2).zip(begins.iter_mut().skip(1));
            pairs.for_each(|(pair, begins)| *begins |= pair[0] != pair[1]);
        }
        let mut next = u64::MAX;
        for (number, begins) in numbers(batch, last).iter().zip(&mut begins) {
            let place = self.places[last][*number as usize];
            *begins |= place != next;
            next = place + 1;
        }
        let rows: Vec<usize> = (0..begins.len()).filter(|row| begins[*row]).collect();
        let ends = rows.iter().skip(1).copied().chain([begins.len()]);
        rows.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Adds rows to a row of chunks.
    ///
    /// # Errors
    /// For two rows of one cell.
    fn push(&self, slab: &mut ChunkBuffers, array: &NewArray, batch: &RecordBatch) -> Result<()> {
        let cells = CellRows::try_new(&batch.columns()[self.places.len()..])?;
        let index = |row: usize| {
            let places = self.places.iter().enumerate();
            places.map(|(axis, places)| places[numbers(batch, axis)[row] as usize]).collect()
        };
        for run in self.runs_of(batch) {
            let first: Vec<u64> = index(run.start);
            if let Some(repeated) = slab.put_rows(&cells, run, &first)? {
                let cell: Vec<Range<u64>> =
                    index(repeated).into_iter().map(|at| at..at + 1).collect();
                return exec_err!(
                    "two rows have the labels {}; aggregate them, or name more dimensions",
                    array.labels_of(&cell, 0)
                );
            }
        }
        Ok(())
    }
}

fn numbers(batch: &RecordBatch, axis: usize) -> &[u32] {
    batch.column(axis).as_primitive::<UInt32Type>().values()
}

#[async_trait]
impl ChunkRows for RowSlabs {
    async fn next(
        &mut self,
        array: &NewArray,
        reservation: &MemoryReservation,
    ) -> Result<Option<CutChunks>> {
        let cut = |slab: ChunkBuffers| -> CutChunks { Box::new(|| Ok(slab.finish()?)) };
        loop {
            while let Some((number, part)) = self.parts.pop_front() {
                let rows = number..number + 1;
                if let Some(complete) = self.slab.take_if(|it| it.rows() != rows) {
                    self.parts.push_front((number, part));
                    return Ok(Some(cut(complete)));
                }
                let mut slab = match self.slab.take() {
                    Some(open) => open,
                    None => {
                        // The cells, and their chunks.
                        reserve(reservation, 2 * cell_bytes(array, &rows))?;
                        ChunkBuffers::new(array, rows)
                    }
                };
                // Other cells stay in memory until their chunks are complete.
                if !part.columns().iter().all(|it| have_one_width(it.data_type())) {
                    reserve(reservation, get_record_batch_memory_size(&part) as u64)?;
                }
                self.push(&mut slab, array, &part)?;
                self.slab = Some(slab);
            }
            let Some(batch) = self.rows.try_next().await? else {
                return Ok(self.slab.take().map(cut));
            };
            let parts = self.parts_of(array, &batch).into_iter();
            let part =
                |(number, rows): (u64, Range<usize>)| (number, batch.slice(rows.start, rows.len()));
            self.parts = parts.map(part).collect();
        }
    }
}
