//! [`RowSlabs`]: rows in the order of a new array, as rows of chunks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use futures::TryStreamExt;
use gridfusion_core::write::NewArray;

use super::new_store::{ChunkRows, CutChunks, reserve};
use super::slab::Slab;

/// Rows whose first columns have the numbers of labels.
pub(super) struct RowSlabs {
    rows: SendableRecordBatchStream,
    /// Per dimension, the index of each number of a label.
    places: Arc<Vec<Vec<u64>>>,
    /// The row of chunks that rows are added to.
    slab: Option<Slab>,
    /// Rows that were read and not added yet, with the numbers of their rows of chunks.
    parts: VecDeque<(u64, RecordBatch)>,
}

impl RowSlabs {
    pub(super) fn new(rows: SendableRecordBatchStream, places: Vec<Vec<u64>>) -> Self {
        Self { rows, places: Arc::new(places), slab: None, parts: VecDeque::new() }
    }

    /// Returns the rows of a batch by the row of chunks that they are in.
    fn parts_of(&self, array: &NewArray, batch: &RecordBatch) -> Vec<(u64, Range<usize>)> {
        let numbers = batch.column(0).as_primitive::<UInt32Type>().values();
        let slab = |number: &u32| array.grid().chunk_of(0, self.places[0][*number as usize]);
        let runs = numbers.chunk_by(|a, b| slab(a) == slab(b));
        let mut start = 0;
        let run = |run: &[u32]| {
            let range = start..start + run.len();
            start = range.end;
            (slab(&run[0]), range)
        };
        runs.map(run).collect()
    }
}

#[async_trait]
impl ChunkRows for RowSlabs {
    async fn next(
        &mut self,
        array: &NewArray,
        reservation: &MemoryReservation,
    ) -> Result<Option<CutChunks>> {
        let cut = |slab: Slab| -> CutChunks { Box::new(move |array| slab.chunks(array)) };
        loop {
            while let Some((number, part)) = self.parts.pop_front() {
                if let Some(complete) = self.slab.take_if(|it| it.number() != number) {
                    self.parts.push_front((number, part));
                    return Ok(Some(cut(complete)));
                }
                let slab = match &mut self.slab {
                    Some(open) => open,
                    None => {
                        reserve(reservation, Slab::memory(array, number))?;
                        self.slab.insert(Slab::try_new(array, number)?)
                    }
                };
                // The rows, and one column of them together.
                reserve(reservation, 2 * get_record_batch_memory_size(&part) as u64)?;
                slab.push(array, part, &self.places)?;
            }
            let Some(batch) = self.rows.try_next().await? else {
                return Ok(self.slab.take().map(cut));
            };
            let parts = self.parts_of(array, &batch).into_iter();
            self.parts =
                parts.map(|(number, it)| (number, batch.slice(it.start, it.len()))).collect();
        }
    }
}
