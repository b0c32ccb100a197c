//! The rows of one partition of a lookup.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::TryStreamExt;

use super::build_side::{BuildSide, SharedRows};
use super::grid_lookup::ReturnedRows;
use super::joined_rows::{JoinedRows, LookupJoin, OwnColumns};
use super::matched_chunks::matched_tasks;
use super::matches::Matches;
use crate::exec::batches::{Batches, stream_of};
use crate::exec::block_stream::BlockStream;
use crate::exec::blocks::values_of;
use crate::exec::chunks::ChunkReader;
use crate::exec::metrics::ScanMetrics;
use crate::exec::pruning::DynamicFilters;
use crate::exec::reads::Reads;
use crate::exec::yield_budget::shared;

/// Returns the joined rows of a partition of the scan. `rows` are those of the other side.
pub(super) fn joined(
    joined: LookupJoin,
    rows: SharedRows,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = joined.lookup.scan.plan();
    // The operator of which this reads a part has reported them.
    let pruned = if joined.part.is_some() { None } else { plan.pruned() };
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), pruned);
    let schema = Arc::clone(&joined.schema);
    let opened = async move {
        let built = shared(rows).await.map_err(DataFusionError::Shared)?;
        let stream = stream(joined, built, partition, metrics, &context)?;
        Ok::<_, DataFusionError>(stream.into_stream())
    };
    stream_of(schema, futures::stream::once(opened).try_flatten())
}

/// Puts the rows of the other side into their places, and reads the chunks that may have matches.
fn stream(
    joined: LookupJoin,
    built: Arc<BuildSide>,
    partition: usize,
    metrics: ScanMetrics,
    context: &Arc<TaskContext>,
) -> Result<BlockStream<JoinedRows>> {
    let scan = &joined.lookup.scan;
    let consumer = format!("GridLookupExec[{partition}]");
    let reservation = MemoryConsumer::new(consumer.clone()).register(context.memory_pool());
    let part = joined.partition(partition);
    let all = part.chunks();
    let (plan, matches) = Matches::try_new(&joined.lookup, &built, part, &reservation)?;
    let tasks = match joined.lookup.kept {
        ReturnedRows::Matches | ReturnedRows::WithMatch => {
            matched_tasks(&joined.lookup, &built, &plan)
        }
        ReturnedRows::All | ReturnedRows::WithoutMatch => plan.tasks(0).collect(),
    };
    let left = tasks.len() as u64;
    metrics.chunks_examined.add_pruned((all - left) as usize);
    metrics.chunks_examined.add_matched(left as usize);
    let own = OwnColumns::try_new(&joined)?;
    let reader = ChunkReader::new(
        Reads::begin(scan.array(), scan.plan(), context),
        Arc::new(plan),
        tasks.into_iter(),
        scan.plan().partition_count(),
        values_of(&own.sources),
        consumer,
        context,
    );
    let filters = DynamicFilters {
        filters: joined.filters.clone(),
        columns: scan.columns(),
        schema: Arc::clone(scan.schema_ref()),
        non_null_columns: vec![],
    };
    let (schema, batch_size) = (Arc::clone(&joined.schema), context.session_config().batch_size());
    let rows = JoinedRows::new(joined, own, built, matches, reservation, batch_size);
    Ok(BlockStream::new(rows, reader.filtered(filters), &schema, batch_size, metrics))
}
