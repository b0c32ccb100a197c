//! [`StoredRows`]: rows that wait until all labels are known, in memory or in a spill file.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};

/// The name of the rows in messages about memory.
const ROWS: &str = "rows of a new array";

/// The most bytes of values in memory, and of runs. Rows are read once more from their beginning to their end, for which a file does as well.
const MOST_BYTES: usize = 128 << 20;
/// The share of a limited memory pool that values of rows may take, and their runs, too.
const SHARE: usize = 32;
/// The bytes of rows that may wait for a file without being accounted for, so that there are not many small files.
const LEAST_BYTES: usize = 2 << 20;

/// Rows in the order in which they came.
pub(super) struct StoredRows {
    schema: SchemaRef,
    spills: SpillManager,
    /// Files with the first rows, once they take too much memory.
    files: Vec<Arc<dyn SpillFile>>,
    /// The rows behind those, and their bytes.
    in_memory: Vec<(RecordBatch, usize)>,
    bytes: usize,
    /// The buffers of the last rows. Slices of one chunk share them.
    buffers: Vec<usize>,
    /// The most bytes of rows in memory.
    most: usize,
    reservation: MemoryReservation,
}

impl StoredRows {
    pub(super) fn new(
        schema: SchemaRef,
        metrics: &ExecutionPlanMetricsSet,
        context: &TaskContext,
    ) -> Self {
        let metrics = SpillMetrics::new(metrics, 0);
        let spills = SpillManager::new(context.runtime_env(), metrics, Arc::clone(&schema));
        let consumer = MemoryConsumer::new(ROWS).with_can_spill(true);
        let reservation = consumer.register(context.memory_pool());
        let most = match context.memory_pool().memory_limit() {
            // The sort below needs the rest, and fails where these rows need not be.
            MemoryLimit::Finite(limit) => MOST_BYTES.min(limit / SHARE),
            _ => MOST_BYTES,
        };
        let (files, in_memory, buffers) = (vec![], vec![], vec![]);
        Self { schema, spills, files, in_memory, bytes: 0, buffers, most, reservation }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If neither memory nor the disk takes them.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = self.new_bytes(&batch);
        self.bytes += bytes;
        self.in_memory.push((batch, bytes));
        let fits = self.bytes <= LEAST_BYTES
            || self.bytes <= self.most && self.reservation.try_resize(self.bytes).is_ok();
        if !fits {
            let rows: Vec<_> = self.in_memory.drain(..).map(|(batch, _)| batch).collect();
            self.files.extend(self.spills.spill_record_batch_and_finish(&rows, ROWS)?);
            self.bytes = 0;
            self.reservation.free();
        }
        Ok(())
    }

    /// Returns the bytes that a batch takes beside the one before it.
    fn new_bytes(&mut self, batch: &RecordBatch) -> usize {
        let mut buffers = vec![];
        let mut left: Vec<ArrayData> = batch.columns().iter().map(|it| it.to_data()).collect();
        while let Some(data) = left.pop() {
            let nulls = data.nulls().map(|nulls| nulls.buffer());
            let of_data = data.buffers().iter().chain(nulls);
            buffers.extend(of_data.map(|it| (it.data_ptr().addr().get(), it.capacity())));
            left.extend(data.child_data().iter().cloned());
        }
        buffers.sort_unstable();
        buffers.dedup();
        let is_new = |(buffer, _): &&(usize, usize)| !self.buffers.contains(buffer);
        let bytes = buffers.iter().filter(is_new).map(|(_, bytes)| bytes).sum();
        self.buffers = buffers.into_iter().map(|(buffer, _)| buffer).collect();
        bytes
    }

    /// Returns the rows, in the batches in which they came.
    ///
    /// # Errors
    /// If a spill file cannot be read.
    pub(super) fn into_stream(self) -> Result<SendableRecordBatchStream> {
        let Self { schema, spills, files, in_memory, reservation, .. } = self;
        let files = files.into_iter().map(move |file| spills.read_spill_as_stream(file, None));
        let from_files = stream::iter(files).try_flatten();
        // The reservation lives as long as the rows.
        let rows = in_memory.into_iter().map(move |(batch, bytes)| {
            reservation.shrink(bytes.min(reservation.size()));
            Ok(batch)
        });
        let rows = from_files.chain(stream::iter(rows));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
