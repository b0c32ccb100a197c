//! The rows of one partition of a lookup.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{BatchCoalescer, take};
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
use crate::exec::blocks::{columns, own_columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::metrics::ScanMetrics;
use crate::exec::yield_budget::YieldBudget;
use crate::plan::{Assembler, Block, Blocks};
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
        let stream = LookupStream::new(lookup, built, partition, metrics, &context)?;
        Ok::<_, DataFusionError>(futures::stream::try_unfold(stream, |mut stream| async move {
            let batch = stream.next().await?;
            Ok(batch.map(|batch| (batch, stream)))
        }))
    };
    let batches = futures::stream::once(opened).try_flatten().boxed();
    Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, batches)))
}

/// A producer of the batches of one partition.
struct LookupStream {
    lookup: Arc<GridLookup>,
    built: Arc<Built>,
    matches: Matches,
    _reservation: MemoryReservation,
    /// The columns of the scan.
    columns: Vec<ColumnSource>,
    reader: ChunkReader,
    assembler: Assembler,
    places: RowPlaces,
    /// The rows of the last block with the columns of the other side, which the next block often needs again.
    last: Option<(Rows, Vec<ArrayRef>)>,
    open: Option<(OpenChunk, Blocks)>,
    batch_size: u64,
    coalescer: BatchCoalescer,
    yields: YieldBudget,
    metrics: ScanMetrics,
}

impl LookupStream {
    fn new(
        lookup: Arc<GridLookup>,
        built: Arc<Built>,
        partition: usize,
        metrics: ScanMetrics,
        context: &TaskContext,
    ) -> Result<Self> {
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
        Ok(Self {
            // A row of the array may have many matches.
            batch_size: (batch_size / matches.most()).max(1) as u64,
            coalescer: BatchCoalescer::new(Arc::clone(&lookup.schema), batch_size)
                .with_biggest_coalesce_batch_size(Some(batch_size / 2)),
            assembler: Assembler::new(scan.array()),
            places: RowPlaces::default(),
            last: None,
            open: None,
            yields: YieldBudget::default(),
            _reservation: reservation,
            columns,
            reader,
            matches,
            built,
            metrics,
            lookup,
        })
    }

    /// Returns the next batch, or `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                self.metrics.baseline.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if let Some((open, blocks)) = &mut self.open {
                if let Some(block) = blocks.next() {
                    let batch = self.batch(&block)?;
                    if batch.num_columns() == 0 {
                        self.metrics.baseline.record_output(batch.num_rows());
                        return Ok(Some(batch));
                    }
                    self.coalescer.push_batch(batch)?;
                    continue;
                }
                let cells = open.task.cells();
                if let Some((open, _)) = self.open.take() {
                    self.reader.release(open)?;
                }
                self.yields.spend(cells).await;
            }
            let Some(open) = self.reader.next(&self.metrics).await? else {
                self.coalescer.finish_buffered_batch()?;
                let batch = self.coalescer.next_completed_batch();
                return Ok(batch.inspect(|it| self.metrics.baseline.record_output(it.num_rows())));
            };
            let blocks = Blocks::new(&open.task, self.batch_size);
            self.open = Some((open, blocks));
        }
    }

    /// Returns the joined rows of a block of the open chunk.
    fn batch(&mut self, block: &Block) -> Result<RecordBatch> {
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let Some((open, _)) = &self.open else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.lookup.schema)));
        };
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
        if self.reader.is_limited() {
            // Consumers may hold the batch.
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
