//! The stream of one partition: aggregates pairs into groups, and yields these in batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::built_groups::{BuiltGroups, SharedGroups};
use super::join_part::JoinPart;
use super::reduction::{JoinReduction, KeyColumn};
use super::{pairs, sparse};
use crate::exec::GridLookupExec;
use crate::exec::batches::stream_of;
use crate::exec::config::GridfusionConfig;
use crate::exec::metrics::ScanMetrics;
use crate::exec::reduce::is_exhausted;
use crate::exec::yield_budget::shared;

/// Returns the groups of a partition.
pub(super) fn reduce(
    reduction: Arc<JoinReduction>,
    lookup: GridLookupExec,
    groups: SharedGroups,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = reduction.lookup.scan.plan();
    let scan_metrics = ScanMetrics::new(metrics, partition, plan.grid(), plan.pruned());
    let (schema, metrics) = (Arc::clone(&reduction.schema), metrics.clone());
    let opened = async move {
        // Nothing is yielded before the last chunk, so until then the work can start again.
        let matrices = MetricBuilder::new(&metrics).counter("matrices", partition);
        let counters = (scan_metrics, matrices);
        match reduced(&reduction, groups, partition, counters, &context).await {
            Ok(Some(groups)) => return Ok(groups),
            Ok(None) => {}
            Err(error) if is_exhausted(&error) => {
                log::debug!("no memory for the groups of a join, aggregating rows: {error}");
            }
            Err(error) => return Err(error),
        }
        let part = Arc::new(reduction.part(partition));
        let rows = reduction.over_rows(lookup.of_part(part, &metrics)?)?;
        rows.execute(0, context)
    };
    stream_of(schema, futures::stream::once(opened).try_flatten())
}

/// Reduces a partition; `None` if rows are better. If this fails or is not worthwhile, the groups of the other side are released.
async fn reduced(
    reduction: &Arc<JoinReduction>,
    groups: SharedGroups,
    partition: usize,
    counters: (ScanMetrics, Count),
    context: &Arc<TaskContext>,
) -> Result<Option<SendableRecordBatchStream>> {
    let held = shared(groups).await.map_err(DataFusionError::Shared)?;
    let Some(built) = held.get() else { return Ok(None) };
    let reduced = match is_worthwhile(reduction, &built, context) {
        true => {
            let reducer = PartitionReducer { reduction, built, partition, context };
            reducer.into_stream(counters).await.map(Some)
        }
        false => Ok(None),
    };
    if !matches!(reduced, Ok(Some(_))) {
        held.release();
    }
    reduced
}

/// Whether the groups fit in the allowed memory, and large tables have no more groups than there are pairs. Hashing needs memory
/// only for groups with pairs, so it is better for few pairs of many possible groups.
fn is_worthwhile(reduction: &JoinReduction, built: &BuiltGroups, context: &TaskContext) -> bool {
    /// The number of groups up to which a table costs almost nothing.
    const SMALL: u64 = 1 << 16;
    let config = GridfusionConfig::from_options(context.session_config().options());
    let groups = reduction.axis_groups().saturating_mul(built.count as u64);
    reduction.bytes(built.count as u64) <= config.optimizer.reduce_memory as u64
        && groups <= SMALL.max(built.pairs)
}

/// The reduction of one partition.
struct PartitionReducer<'a> {
    reduction: &'a Arc<JoinReduction>,
    built: Arc<BuiltGroups>,
    partition: usize,
    context: &'a Arc<TaskContext>,
}

impl PartitionReducer<'_> {
    /// Aggregates the partition, and returns its groups as a stream that does no more work.
    async fn into_stream(
        self,
        (metrics, matrices): (ScanMetrics, Count),
    ) -> Result<SendableRecordBatchStream> {
        let Self { reduction, built, partition, context } = self;
        let consumer = MemoryConsumer::new(format!("GridJoinReduceExec[{partition}]"));
        let reservation = consumer.register(context.memory_pool());
        let part = JoinPart::try_new(reduction, built, partition, reservation, &metrics, matrices)?;
        let weights = part.built.weights.as_deref();
        let products = reduction.products.as_ref().zip(weights);
        let products = products.filter(|(plan, _)| sparse::is_worthwhile(&part, plan, context));
        let (aggregates, places) = match products {
            Some((plan, weights)) => {
                sparse::aggregate(&part, plan, weights, &metrics, context).await?
            }
            None => pairs::aggregate(&part, &metrics, context).await?,
        };
        let groups = groups(&part, aggregates, &places)?;
        let JoinPart { reservation, .. } = part;
        metrics.baseline.record_output(groups.num_rows());
        let batch_size = context.session_config().batch_size();
        let slices = (0..groups.num_rows())
            .step_by(batch_size)
            .map(move |start| Ok(groups.slice(start, batch_size.min(groups.num_rows() - start))));
        // The memory of the output stays reserved until the stream is dropped.
        let slices = futures::stream::iter(slices).inspect(move |_| {
            let _: &MemoryReservation = &reservation;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&reduction.schema), slices)))
    }
}

/// Makes a batch of the keys and aggregates of the groups at `places`.
fn groups(part: &JoinPart<'_>, aggregates: Vec<ArrayRef>, places: &[usize]) -> Result<RecordBatch> {
    let JoinPart { reduction, built, table, .. } = part;
    if places.is_empty() {
        return Ok(RecordBatch::new_empty(Arc::clone(&reduction.schema)));
    }
    let mut arrays = Vec::with_capacity(reduction.schema.fields().len());
    for key in &reduction.keys {
        arrays.push(match key {
            KeyColumn::Built(key) => built
                .key(*key, places.iter().map(|place| (place / table.len()) as u32).collect())?,
            KeyColumn::Axis { axis, values } => {
                let on_axes = places.iter().map(|place| place % table.len());
                let numbers = UInt64Array::from(table.numbers_of(*axis, on_axes));
                take(values, &numbers, None)?
            }
        });
    }
    arrays.extend(aggregates);
    let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&reduction.schema), arrays, &options)?)
}
