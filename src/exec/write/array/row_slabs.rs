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

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use futures::TryStreamExt;
use gridfusion_core::write::{CellRows, ChunkBuffers, NewArray};

use super::new_store::{ChunkRows, CutChunks, cell_bytes, have_one_width, reserve};
use super::row_runs::{PlacedRun, Places};
use super::stored_rows::StoredRows;

/// Rows, with the runs of their cells.
pub(super) struct RowSlabs {
    /// The variables.
    values: SendableRecordBatchStream,
    /// A batch for each of the values.
    runs: SendableRecordBatchStream,
    places: Places,
    /// The row of chunks that rows are added to.
    slab: Option<ChunkBuffers>,
    /// Rows that were read and not added yet.
    parts: VecDeque<Part>,
}

/// Rows of one row of chunks.
struct Part {
    /// The number of the row of chunks.
    number: u64,
    values: RecordBatch,
    runs: Vec<PlacedRun>,
}

impl RowSlabs {
    /// Takes the values of rows, the runs of their cells, and per dimension the index of each number of a label.
    ///
    /// # Errors
    /// If a spill file cannot be read.
    pub(super) fn try_new(
        values: StoredRows,
        runs: StoredRows,
        places: Vec<Vec<u64>>,
    ) -> Result<Self> {
        let (values, runs, places) =
            (values.into_stream()?, runs.into_stream()?, Places::new(places));
        Ok(Self { values, runs, places, slab: None, parts: VecDeque::new() })
    }

    /// Returns the next rows, by the row of chunks that they are in; `None` at the end.
    async fn read(&mut self, array: &NewArray) -> Result<Option<VecDeque<Part>>> {
        let (values, runs) = match (self.values.try_next().await?, self.runs.try_next().await?) {
            (Some(values), Some(runs)) => (values, runs),
            (None, None) => return Ok(None),
            _ => return internal_err!("rows without their places"),
        };
        let mut parts: VecDeque<Part> = VecDeque::new();
        for run in self.places.of_runs(&runs, values.num_rows())? {
            for run in of_rows_of_chunks(array, run) {
                let number = array.grid().chunk_of(0, run.first[0]);
                match parts.back_mut().filter(|part| part.number == number) {
                    Some(part) => part.runs.push(run),
                    None => {
                        parts.push_back(Part { number, values: values.clone(), runs: vec![run] })
                    }
                }
            }
        }
        parts.iter_mut().for_each(Part::cut);
        Ok(Some(parts))
    }

    /// Adds rows to a row of chunks.
    ///
    /// # Errors
    /// For two rows of one cell.
    fn push(slab: &mut ChunkBuffers, array: &NewArray, part: &Part) -> Result<()> {
        let cells = CellRows::try_new(part.values.columns())?;
        for run in &part.runs {
            if let Some(repeated) = slab.put_rows(&cells, run.rows.clone(), &run.first)? {
                let mut cell: Vec<Range<u64>> = run.first.iter().map(|at| *at..at + 1).collect();
                if let Some(along) = cell.last_mut() {
                    let step = (repeated - run.rows.start) as u64;
                    *along = along.start + step..along.end + step;
                }
                return exec_err!(
                    "two rows have the labels {}; aggregate them, or name more dimensions",
                    array.labels_of(&cell, 0)
                );
            }
        }
        Ok(())
    }
}

impl Part {
    /// Leaves out the rows of other rows of chunks.
    fn cut(&mut self) {
        let (Some(first), Some(last)) = (self.runs.first(), self.runs.last()) else { return };
        let rows = first.rows.start..last.rows.end;
        self.values = self.values.slice(rows.start, rows.len());
        for run in &mut self.runs {
            run.rows = run.rows.start - rows.start..run.rows.end - rows.start;
        }
    }
}

/// Divides a run among rows of chunks. Only along the single dimension of an array, it may be in several.
fn of_rows_of_chunks(array: &NewArray, run: PlacedRun) -> Vec<PlacedRun> {
    let [start] = run.first[..] else { return vec![run] };
    let (mut parts, mut at) = (vec![], start);
    let end = start + run.rows.len() as u64;
    while at < end {
        let chunk = array.grid().axis_range(0, array.grid().chunk_of(0, at));
        let next = chunk.end.min(end);
        let row = run.rows.start + (at - start) as usize;
        parts.push(PlacedRun { rows: row..row + (next - at) as usize, first: vec![at] });
        at = next;
    }
    parts
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
            while let Some(part) = self.parts.pop_front() {
                let rows = part.number..part.number + 1;
                if let Some(complete) = self.slab.take_if(|it| it.rows() != rows) {
                    self.parts.push_front(part);
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
                if !part.values.columns().iter().all(|it| have_one_width(it.data_type())) {
                    reserve(reservation, get_record_batch_memory_size(&part.values) as u64)?;
                }
                Self::push(&mut slab, array, &part)?;
                self.slab = Some(slab);
            }
            match self.read(array).await? {
                Some(parts) => self.parts = parts,
                None => return Ok(self.slab.take().map(cut)),
            }
        }
    }
}
