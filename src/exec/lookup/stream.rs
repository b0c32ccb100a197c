//! The rows of one partition of a lookup.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::take;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::built::{Built, SharedRows};
use super::grid_lookup::{GridLookup, Kept};
use super::matches::{Matches, Rows};
use crate::array::ColumnSource;
use crate::exec::block_stream::{BlockRows, BlockStream};
use crate::exec::blocks::{columns, own_columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::metrics::ScanMetrics;
use crate::plan::{Assembler, Block};
use crate::reduce::RowPlaces;

/// Returns the joined rows of a partition of the scan. `rows` are those of the other side.
pub(super) fn joined(
    lookup: &Arc<GridLookup>,
    rows: SharedRows,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = lookup.scan.plan();
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), plan.pruned());
    let schema = Arc::clone(&lookup.schema);
    let (lookup, context) = (Arc::clone(lookup), Arc::clone(context));
    let opened = async move {
        let built = rows.await.map_err(DataFusionError::Shared)?;
        let stream = stream(lookup, built, partition, metrics, &context)?;
        Ok::<_, DataFusionError>(futures::stream::try_unfold(stream, |mut stream| async move {
            let batch = stream.next().await?;
            Ok(batch.map(|batch| (batch, stream)))
        }))
    };
    let batches = futures::stream::once(opened).try_flatten().boxed();
    Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, batches)))
}

/// Puts the rows of the other side into their places, and reads the chunks that may have matches.
fn stream(
    lookup: Arc<GridLookup>,
    built: Arc<Built>,
    partition: usize,
    metrics: ScanMetrics,
    context: &TaskContext,
) -> Result<BlockStream<JoinedRows>> {
    let scan = &lookup.scan;
    let (plan, matches) = Matches::of(&lookup, &built, partition)?;
    let consumer = format!("GridLookupExec[{partition}]");
    let reservation = MemoryConsumer::new(consumer.clone()).register(context.memory_pool());
    reservation.try_grow(matches.size())?;
    let columns = scan.columns();
    let tasks = plan.tasks(0);
    let (all, left) = (scan.plan().tasks(partition).count_tasks(), tasks.count_tasks());
    metrics.chunks_examined.add_pruned((all - left) as usize);
    metrics.chunks_examined.add_matched(left as usize);
    let reader = ChunkReader::new(
        Arc::clone(scan.array()),
        Arc::new(plan),
        tasks,
        scan.plan().partition_count(),
        values_of(&columns),
        consumer,
        context,
    );
    let batch_size = context.session_config().batch_size();
    // A row of the array may have many matches.
    let block_size = batch_size / matches.most();
    let schema = Arc::clone(&lookup.schema);
    let rows = JoinedRows {
        assembler: Assembler::new(scan.array()),
        places: RowPlaces::default(),
        last: None,
        columns,
        built,
        matches,
        _reservation: reservation,
        lookup,
    };
    Ok(BlockStream::new(rows, reader, &schema, batch_size, block_size, metrics))
}

/// A maker of joined rows.
struct JoinedRows {
    lookup: Arc<GridLookup>,
    built: Arc<Built>,
    matches: Matches,
    _reservation: MemoryReservation,
    /// The columns of the scan.
    columns: Vec<ColumnSource>,
    assembler: Assembler,
    places: RowPlaces,
    /// The rows of the last block with the columns of the other side, which the next block often needs again.
    last: Option<(Rows, Vec<ArrayRef>)>,
}

impl BlockRows for JoinedRows {
    fn rows(&mut self, open: &OpenChunk, block: &Block, is_limited: bool) -> Result<RecordBatch> {
        let array = self.lookup.scan.array();
        let (places, repeated) =
            self.places.of(&self.matches.table, array.grid(), &open.task, block);
        let (rows, built) = match self.last.take().filter(|_| repeated) {
            Some(last) => last,
            None => {
                let rows = self.matches.rows(places, self.lookup.kept);
                let built = looked_up(&self.lookup, &self.built, &rows)?;
                (rows, built)
            }
        };
        let mut arrays = columns(array, &mut self.assembler, &self.columns, open, block)?;
        if is_limited {
            arrays = own_columns(&self.columns, arrays)?;
        }
        let mut count = block.rows() as usize;
        if let Rows::Some(own, _) = &rows {
            count = own.len();
            for array in &mut arrays {
                *array = take(array, own, None)?;
            }
        }
        arrays.extend(built.iter().cloned());
        self.last = Some((rows, built));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let schema = Arc::clone(&self.lookup.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// Returns the columns of the other side in the joined rows, if the join returns them.
fn looked_up(lookup: &GridLookup, built: &Built, rows: &Rows) -> Result<Vec<ArrayRef>> {
    if matches!(lookup.kept, Kept::WithMatch | Kept::WithoutMatch) {
        return Ok(vec![]);
    }
    let (Rows::All(numbers) | Rows::Some(_, numbers)) = rows;
    let columns = built.rows.columns().iter().map(|column| take(column, numbers, None));
    Ok(columns.collect::<std::result::Result<_, _>>()?)
}
