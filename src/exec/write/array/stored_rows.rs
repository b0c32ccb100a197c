//! [`StoredRows`]: rows that wait until all labels are known, in memory or in a spill file.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};

/// The name of the rows in messages about memory.
const ROWS: &str = "rows of a new array";

/// The most bytes of rows in memory. Rows are read once more from their beginning to their end, for which a file does as well.
const MOST_BYTES: usize = 256 << 20;
/// The share of a limited memory pool that rows may take.
const SHARE: usize = 16;
/// The bytes of rows that may wait for a file without being accounted for, so that there are not many small files.
const LEAST_BYTES: usize = 2 << 20;

/// Rows in the order in which they came.
pub(super) struct StoredRows {
    schema: SchemaRef,
    spills: SpillManager,
    /// Files with the first rows, once they take too much memory.
    files: Vec<Arc<dyn SpillFile>>,
    /// The rows behind those.
    in_memory: Vec<RecordBatch>,
    bytes: usize,
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
        Self { schema, spills, files: vec![], in_memory: vec![], bytes: 0, most, reservation }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If neither memory nor the disk takes them.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.bytes += get_record_batch_memory_size(&batch);
        self.in_memory.push(batch);
        let fits = self.bytes <= LEAST_BYTES
            || self.bytes <= self.most && self.reservation.try_resize(self.bytes).is_ok();
        if !fits {
            let file = self.spills.spill_record_batch_and_finish(&self.in_memory, ROWS)?;
            self.files.extend(file);
            self.in_memory.clear();
            self.bytes = 0;
            self.reservation.free();
        }
        Ok(())
    }

    /// Returns the rows.
    ///
    /// # Errors
    /// If a spill file cannot be read.
    pub(super) fn into_stream(self) -> Result<SendableRecordBatchStream> {
        let Self { schema, spills, files, in_memory, reservation, .. } = self;
        let files = files.into_iter().map(move |file| spills.read_spill_as_stream(file, None));
        let from_files = stream::iter(files).try_flatten();
        // The reservation lives as long as the rows.
        let rows = in_memory.into_iter().map(move |batch| {
            let bytes = get_record_batch_memory_size(&batch).min(reservation.size());
            reservation.shrink(bytes);
            Ok(batch)
        });
        let rows = from_files.chain(stream::iter(rows));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
