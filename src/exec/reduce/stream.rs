//! The stream of one partition of a reduction: aggregates chunks into a table of groups, and yields it in
//! batches.
//!
//! ```text
//!   filters over keys ─▶ cells that they keep ─▶ table of groups ─▶ memory reserved
//!
//!   dense          zone maps, or chunks ─▶ a Reducer per variable ─▶ GroupStats ─▶ columns
//!   accumulators   chunks ─▶ blocks ─▶ rows, and the place of each ─▶ accumulators ─▶ columns
//!
//!   keys of the groups, columns ─▶ batches
//! ```
//!
//! "Places" are places in the table of groups. Where they are optional, `None` stands for all of them in
//! order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::account::Account;
use super::accumulate::{AccumulatePlan, Accumulators};
use super::group_pruning::needed_elements;
use super::partition_blocks::PartitionBlocks;
use super::partitions::ReducePartition;
use super::reduction::Reduction;
use super::strategy::ReduceStrategy;
use crate::exec::batches::stream_of;
use crate::exec::blocks::{columns, values_of};
use crate::exec::chunks::ChunkReader;
use crate::exec::metrics::ScanMetrics;
use crate::exec::pruning::SHORT_GAP;
use crate::exec::reads::Reads;
use crate::exec::yield_budget::YieldBudget;
use crate::plan::{Assembler, RowBlocks, TaskNumber, TaskRange};
use crate::reduce::{GroupTable, RowPlaces};

/// Returns the groups of a partition. Groups for which one of `filters` is not true may be left out.
pub(super) fn reduce(
    reduction: Arc<Reduction>,
    filters: Vec<PhysicalExprRef>,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = &reduction.plan;
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), plan.pruned());
    let schema = Arc::clone(&reduction.schema);
    let opened = async move {
        let part = restricted(&reduction.partitions[partition], &reduction, &filters, &metrics)?;
        let blocks = PartitionBlocks::new(reduction, part, partition, metrics, context);
        let streams = futures::stream::try_unfold(blocks, PartitionBlocks::next);
        Ok::<_, DataFusionError>(streams.try_flatten())
    };
    stream_of(schema, futures::stream::once(opened).try_flatten())
}

/// Restricts a partition to the cells that the filters currently keep. Filters are evaluated only here,
/// before the first chunk. Later changes of them have no effect.
fn restricted(
    part: &ReducePartition,
    reduction: &Reduction,
    filters: &[PhysicalExprRef],
    metrics: &ScanMetrics,
) -> Result<ReducePartition> {
    if filters.is_empty() {
        return Ok(part.clone());
    }
    // The keys stay numbered over the whole plan, so the restricted plan needs no new numbers.
    let mut plan = part.plan.partition(part.partition);
    let before = plan.chunks();
    let needed = needed_elements(filters, &reduction.keys, &reduction.plan)?;
    // The loops of dense kernels take several cells of a row at once. The operator above drops the other groups.
    let is_dense = matches!(*reduction.strategy, ReduceStrategy::Dense(_));
    let innermost = needed.len().checked_sub(1).filter(|_| is_dense);
    for (axis, needed) in needed.iter().enumerate() {
        match needed {
            Some(needed) if Some(axis) == innermost => {
                plan = plan.restricted(axis, &needed.with_gaps_filled(SHORT_GAP));
            }
            Some(needed) => plan = plan.restricted(axis, needed),
            None => {}
        }
    }
    metrics.chunks_examined.add_pruned((before - plan.chunks()) as usize);
    metrics.chunks_examined.add_matched(plan.chunks() as usize);
    Ok(ReducePartition { plan: Arc::new(plan), partition: 0 })
}

/// The reduction of one partition, or of a block of it.
pub(super) struct PartitionReducer {
    pub(super) reduction: Arc<Reduction>,
    /// The number of the partition.
    number: usize,
    /// The part of the partition that the filters keep, or a block of its groups.
    pub(super) part: ReducePartition,
    pub(super) table: GroupTable,
    /// The table of fine groups, if groups are weighed.
    pub(super) fine: Option<GroupTable>,
    pub(super) reservation: MemoryReservation,
    pub(super) metrics: Arc<ScanMetrics>,
    context: Arc<TaskContext>,
    /// Whether values are gathered instead of being summarized.
    pub(super) gathers_summaries: bool,
}

impl PartitionReducer {
    /// Makes the table of groups, and reserves memory for it. Fails if the memory pool refuses it.
    pub(super) fn new(
        reduction: &Arc<Reduction>,
        part: ReducePartition,
        number: usize,
        metrics: Arc<ScanMetrics>,
        context: Arc<TaskContext>,
    ) -> Result<Self> {
        let selection = reduction.plan.selection().axes();
        let table = |axes: &[_]| GroupTable::new(&part.plan, part.partition, selection, axes);
        let fine = reduction.strategy.fine_groups().map(|axes| table(axes)).transpose()?;
        let table = table(&reduction.keys.axes)?;
        let table = match (&*reduction.strategy, &reduction.keys.plane) {
            (ReduceStrategy::Dense(_), Some(plane)) => {
                table.with_plane(&plane.groups, selection)?
            }
            _ => table,
        };
        let consumer = MemoryConsumer::new(format!("GridReduceExec[{number}]"));
        let reservation = consumer.register(context.memory_pool());
        let groups = table.len() + fine.as_ref().map_or(0, GroupTable::len);
        let bytes = (groups as u64).saturating_mul(reduction.bytes_per_group());
        reservation.try_grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let reduction = Arc::clone(reduction);
        let gathers_summaries = reduction.whole;
        Ok(Self {
            reduction,
            number,
            part,
            table,
            fine,
            reservation,
            metrics,
            context,
            gathers_summaries,
        })
    }

    /// Aggregates the partition, and returns its groups as a stream that does no more work.
    pub(super) async fn into_stream(mut self) -> Result<SendableRecordBatchStream> {
        let batch_size = self.context.session_config().batch_size();
        let reduction = Arc::clone(&self.reduction);
        let (aggregates, places) = match &*reduction.strategy {
            ReduceStrategy::Dense(plan) => self.dense(plan).await?,
            ReduceStrategy::Accumulators(plan) => self.accumulate(plan).await?,
        };
        let groups = self.groups(aggregates, places.as_deref())?;
        self.metrics.baseline.record_output(groups.num_rows());
        let slices = (0..groups.num_rows())
            .step_by(batch_size)
            .map(move |start| Ok(groups.slice(start, batch_size.min(groups.num_rows() - start))));
        // The memory of the output stays reserved until the stream is dropped.
        let reservation = self.reservation;
        let slices = futures::stream::iter(slices).inspect(move |_| {
            let _ = &reservation;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&reduction.schema), slices)))
    }

    /// Returns the tasks, one per chunk to visit.
    pub(super) fn tasks(&self) -> TaskRange {
        self.part.plan.tasks(self.part.partition)
    }

    /// Makes a reader of the variables `values` for `tasks`.
    pub(super) fn reader(
        &self,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
        values: Vec<usize>,
    ) -> ChunkReader {
        ChunkReader::new(
            // The plan of the part would tell partitions apart.
            Reads::begin(&self.reduction.array, &self.reduction.plan, &self.context),
            Arc::clone(&self.part.plan),
            tasks,
            self.reduction.partitions.len(),
            values,
            format!("GridReduceExec[{}]", self.number),
            &self.context,
        )
    }

    /// Aggregates with accumulators. Returns the columns of the aggregates, and the places of the groups.
    async fn accumulate(
        &mut self,
        plan: &AccumulatePlan,
    ) -> Result<(Vec<ArrayRef>, Option<Vec<usize>>)> {
        let reduction = Arc::clone(&self.reduction);
        let has_keys = !reduction.keys.columns.is_empty();
        let (groups, summaries) = (self.table.len(), self.gathers_summaries);
        let mut accumulators = Accumulators::new(plan, groups, has_keys, summaries)?;
        let mut reader = self.reader(self.tasks(), values_of(&plan.columns));
        let mut assembler = Assembler::new(&reduction.array);
        let mut places = RowPlaces::default();
        let mut yields = YieldBudget::default();
        let batch_size = self.context.session_config().batch_size() as u64;
        let (mut account, table_bytes) = (Account::default(), self.reservation.size());
        let bytes_per_row = plan.bytes_per_row()?;
        while let Some(open) = reader.next(&self.metrics).await? {
            for block in RowBlocks::new(&open.task, batch_size) {
                let timer = self.metrics.baseline.elapsed_compute().timer();
                let arrays =
                    columns(&reduction.array, &mut assembler, &plan.columns, &open, &block)?;
                let rows = RecordBatchOptions::new().with_row_count(Some(block.rows() as usize));
                let batch =
                    RecordBatch::try_new_with_options(Arc::clone(&plan.schema), arrays, &rows)?;
                let (places, repeated) =
                    places.of(&self.table, reduction.array.grid(), &open.task, &block);
                let bytes = bytes_per_row * batch.num_rows();
                // Reserves memory before the accumulators take it.
                let (met, held) = (accumulators.groups(), || accumulators.size());
                account.admit(&self.reservation, table_bytes, bytes, met, held)?;
                accumulators.update(&batch, places, repeated)?;
                timer.done();
                yields.spend(block.rows()).await;
            }
            reader.release(open)?;
        }
        let held = accumulators.size();
        // States are copies of the accumulators' memory.
        let copies = if reduction.whole { 0 } else { held };
        self.reservation.try_resize(table_bytes + held + copies)?;
        let (columns, places) = accumulators.finish(reduction.whole)?;
        let bytes: usize = columns.iter().map(|column| column.get_array_memory_size()).sum();
        self.reservation.resize(table_bytes + bytes);
        Ok((columns, Some(places)))
    }

    /// Makes a batch of keys and aggregates of the groups at `places`, or of all groups in table order.
    fn groups(&self, aggregates: Vec<ArrayRef>, places: Option<&[usize]>) -> Result<RecordBatch> {
        let len = places.map_or(self.table.len(), <[usize]>::len);
        if len == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.reduction.schema)));
        }
        let mut arrays = Vec::with_capacity(self.reduction.keys.columns.len() + aggregates.len());
        for key in &self.reduction.keys.columns {
            let (axis, values) = (key.axis, &key.values);
            let numbers = match places {
                Some(places) => self.table.numbers_of(axis, places.iter().copied()),
                // If every index of one axis is a group, the keys are a slice of their values: nothing is
                // copied.
                None => match self.table.whole_axis(axis) {
                    Some(groups) => {
                        arrays.push(values.slice(groups.start as usize, len));
                        continue;
                    }
                    None => self.table.numbers_of(axis, 0..len),
                },
            };
            arrays.push(take(values, &UInt64Array::from(numbers), None)?);
        }
        arrays.extend(aggregates);
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let schema = Arc::clone(&self.reduction.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}
