//! [`InOrderExec`]: the rows of partitions that follow one another, without a comparison of rows.
//!
//! ```text
//!   ArraySink                                    ArraySink
//!     SortPreservingMerge  time, lat, lon   ──▶    InOrder
//!       Filter  value > 0                            Filter
//!         GridScan  1990 … 1999 │ 2000 … 2009          GridScan
//! ```
//!
//! A scan declares that its partitions are ranges of labels. A merge would compare each row with one of another range, and copy it. Here
//! the rows of one partition come after those of the other, in the batches of the scan.
//!
//! Later partitions run ahead until some megabytes wait, so that chunks are decoded on several threads.

use std::sync::Arc;

use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use futures::{StreamExt, TryStreamExt, stream};

use crate::exec::operator::{Frame, Operator, operator_methods, shown_by_text};
use crate::exec::rules::walk::{up, with_like_input};

/// The bytes of rows that wait, in all partitions together, if the memory pool has no limit.
const WAITING_BYTES: usize = 64 << 20;
/// The batches of a partition that wait otherwise.
const LEAST_BATCHES: usize = 2;

/// Rows of partitions that are ranges of the first key of their order, one partition after the other.
#[derive(Debug, Clone)]
struct InOrderExec {
    frame: Frame,
    input: Arc<dyn ExecutionPlan>,
}

impl InOrderExec {
    /// Replaces a merge; `None` if partitions are not declared as ranges of its first keys.
    fn replacing(merge: &SortPreservingMergeExec) -> Option<Self> {
        let input = merge.input();
        let Partitioning::Range(ranges) = input.output_partitioning() else { return None };
        let mut keys = merge.expr().iter();
        let are_first = ranges.ordering().iter().all(|key| keys.next() == Some(key));
        // The merge declares an order that these rows have, too.
        let frame = Frame::new(Arc::clone(merge.properties()));
        (are_first && merge.fetch().is_none()).then(|| Self { frame, input: Arc::clone(input) })
    }

    /// Returns the number of batches of a partition that may wait.
    fn waiting(&self, context: &TaskContext) -> usize {
        if let MemoryLimit::Finite(_) = context.memory_pool().memory_limit() {
            return LEAST_BATCHES;
        }
        let schema = self.schema();
        let widths = schema.fields().iter().map(|it| it.data_type().primitive_width());
        // Other values may have any length.
        let Some(width) = widths.sum::<Option<usize>>() else { return LEAST_BATCHES };
        let batch = width * context.session_config().batch_size();
        let partitions = self.input.output_partitioning().partition_count();
        (WAITING_BYTES / (batch * partitions).max(1)).max(LEAST_BATCHES)
    }
}

shown_by_text!(InOrderExec);

impl Operator for InOrderExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        vec![format!("partitions={}", self.input.output_partitioning().partition_count())]
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Ok(Self { input: Arc::clone(&inputs[0]), ..self.with_frame(self.frame.anew()) })
    }

    fn stream(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (input, waiting) = (Arc::clone(&self.input), self.waiting(&context));
        let all = async move {
            let partitions = 0..input.output_partitioning().partition_count();
            let rows = partitions.map(|partition| {
                let rows = input.execute(partition, Arc::clone(&context))?;
                Ok(spawn_buffered(rows, waiting))
            });
            let rows = rows.collect::<Result<Vec<_>>>()?;
            Ok::<_, DataFusionError>(stream::iter(rows).flatten())
        };
        let rows = stream::once(all).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

impl ExecutionPlan for InOrderExec {
    operator_methods!();
}

/// Reads partitions that follow one another in order, where the rows are written.
pub(crate) fn read_in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = up(plan, |node| {
        let Some(sink) = node.downcast_ref::<DataSinkExec>() else { return Ok(None) };
        let merge = sink.input().downcast_ref::<SortPreservingMergeExec>();
        let Some(rows) = merge.and_then(InOrderExec::replacing) else { return Ok(None) };
        with_like_input(node, Arc::new(rows)).map(Some)
    })?;
    Ok(replaced.data)
}
