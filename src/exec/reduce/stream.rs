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
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::account::Account;
use super::accumulate::{AccumulatePlan, Accumulators};
use super::dense::{Call, DenseCall, DenseColumn, DensePlan};
use super::extremes::Extremes;
use super::group_pruning::needed_elements;
use super::partitions::ReducePartition;
use super::reduction::Reduction;
use super::strategy::ReduceStrategy;
use crate::exec::blocks::{columns, values_of};
use crate::exec::chunks::ChunkReader;
use crate::exec::metrics::ScanMetrics;
use crate::exec::pruning::zones::{ReadExtent, worthwhile_zones};
use crate::exec::yield_budget::YieldBudget;
use crate::format::Zone;
use crate::grid::ChunkTask;
use crate::plan::{Assembler, Blocks, TaskNumber, TaskRange};
use crate::reduce::{
    GroupStats, GroupTable, GroupedChunk, Reducer, RowPlaces, count_rows, reducer,
};

/// Returns the groups of a partition. If the memory pool refuses memory for them and rows may take less,
/// the partition is aggregated over rows. Groups for which one of `filters` is not true may be left out.
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
        let batch_size = context.session_config().batch_size();
        // Nothing is yielded before the last chunk, so until then the work can start again over rows.
        let reducer =
            PartitionReducer::new(&reduction, &filters, partition, metrics, Arc::clone(&context));
        let reduced = match reducer {
            Ok(reducer) => reducer.into_stream().await,
            Err(refused) => Err(refused),
        };
        match reduced {
            Err(error)
                if is_exhausted(&error)
                    && reduction.strategy.rows_may_take_less(&reduction.keys, batch_size) =>
            {
                log::debug!("no memory for the groups, aggregating rows: {error}");
                let of_plan = reduction.partitions[partition].partition;
                reduction.over_rows(partition)?.execute(of_plan, context)
            }
            reduced => reduced,
        }
    };
    let batches = futures::stream::once(opened).try_flatten();
    Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, Box::pin(batches))))
}

/// Whether the memory pool refused memory, directly or below other errors.
fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
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
    for (axis, needed) in needed.iter().enumerate() {
        if let Some(needed) = needed {
            plan = plan.restricted(axis, needed);
        }
    }
    metrics.chunks_examined.add_pruned((before - plan.chunks()) as usize);
    metrics.chunks_examined.add_matched(plan.chunks() as usize);
    Ok(ReducePartition { plan: Arc::new(plan), partition: 0 })
}

/// The reduction of one partition.
struct PartitionReducer {
    reduction: Arc<Reduction>,
    /// The number of the partition.
    number: usize,
    /// The part of the partition that the filters keep.
    part: ReducePartition,
    table: GroupTable,
    reservation: MemoryReservation,
    metrics: ScanMetrics,
    context: Arc<TaskContext>,
}

impl PartitionReducer {
    /// Makes the table of groups, and reserves memory for it. Fails if the memory pool refuses it.
    fn new(
        reduction: &Arc<Reduction>,
        filters: &[PhysicalExprRef],
        number: usize,
        metrics: ScanMetrics,
        context: Arc<TaskContext>,
    ) -> Result<Self> {
        let part = restricted(&reduction.partitions[number], reduction, filters, &metrics)?;
        let selection = reduction.plan.selection().axes();
        let table = GroupTable::new(&part.plan, part.partition, selection, &reduction.keys.axes)?;
        let consumer = MemoryConsumer::new(format!("GridReduceExec[{number}]"));
        let reservation = consumer.register(context.memory_pool());
        let bytes = (table.len() as u64).saturating_mul(reduction.bytes_per_group());
        reservation.try_grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let reduction = Arc::clone(reduction);
        Ok(Self { reduction, number, part, table, reservation, metrics, context })
    }

    /// Aggregates the partition, and returns its groups as a stream that does no more work.
    async fn into_stream(mut self) -> Result<SendableRecordBatchStream> {
        let batch_size = self.context.session_config().batch_size();
        let reduction = Arc::clone(&self.reduction);
        let (aggregates, places) = match &reduction.strategy {
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
    fn tasks(&self) -> TaskRange {
        self.part.plan.tasks(self.part.partition)
    }

    /// Makes a reader of the variables `values` for `tasks`.
    fn reader(
        &self,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
        values: Vec<usize>,
    ) -> ChunkReader {
        ChunkReader::new(
            Arc::clone(&self.reduction.array),
            Arc::clone(&self.part.plan),
            tasks,
            self.reduction.partitions.len(),
            values,
            format!("GridReduceExec[{}]", self.number),
            &self.context,
        )
    }

    /// Adds the stored statistics of chunks that need no reading to `reducers`, and returns the tasks
    /// whose chunks must be read. A chunk counts as answered only if all variables are: then nothing of
    /// it is read.
    async fn unanswered(
        &self,
        dense: &DensePlan,
        reducers: &mut [Box<dyn Reducer>],
    ) -> Result<Vec<TaskNumber>> {
        let (plan, tasks) = (&self.part.plan, self.tasks());
        let chunks = ReadExtent::of_plan(plan);
        let mut zones = Vec::with_capacity(dense.columns.len());
        for column in &dense.columns {
            match worthwhile_zones(&self.reduction.array, column.value, chunks).await {
                Some(of_column) => zones.push(of_column),
                // Every variable needs its zone maps.
                None => return Ok(tasks.collect()),
            }
        }
        let mut unanswered = Vec::new();
        for task_number in tasks {
            let task = plan.task(task_number);
            let known: Option<Vec<Zone>> =
                zones.iter().map(|zones| zones.zone(task.chunk_number)).collect();
            let chunk = self.chunk(&task);
            let answered = known.filter(|known| {
                reducers.iter().zip(known).all(|(reducer, zone)| reducer.is_answered(chunk, zone))
            });
            let Some(known) = answered else {
                unanswered.push(task_number);
                continue;
            };
            for (reducer, zone) in reducers.iter_mut().zip(&known) {
                if zone.null_count < task.cells() {
                    reducer.add_zone(chunk, zone);
                }
            }
            self.metrics.chunks_answered.add(1);
        }
        Ok(unanswered)
    }

    /// Returns the chunk of `task` together with the table of groups.
    fn chunk<'a>(&'a self, task: &'a ChunkTask) -> GroupedChunk<'a> {
        GroupedChunk { table: &self.table, grid: self.reduction.array.grid(), task }
    }

    /// Aggregates with the kernels. Returns the columns of the aggregates, and the places of the groups;
    /// `None` if they are all groups of the table.
    async fn dense(&mut self, plan: &DensePlan) -> Result<(Vec<ArrayRef>, Option<Vec<usize>>)> {
        let groups = self.table.len();
        // A group is in the result if it has a row. With a predicate, rows are the values that pass it,
        // so `counts` shows which groups have any. Without one, extents do, and if the whole selection is
        // visited, no group of the final result is without rows.
        let by_cells = plan.range.is_some();
        let every_group_has_rows = self.part.plan.is_selection();
        let counts_rows = plan.calls.iter().any(|call| call.call == Call::CountRows);
        let needs_rows = !by_cells && (counts_rows || !every_group_has_rows);
        let rows = if needs_rows { self.rows_per_group() } else { vec![] };
        let mut stats = self.fold(plan).await?;

        let mut columns: Vec<ArrayRef> = Vec::new();
        let mut nothing = GroupStats::default();
        for (at, DenseCall { call, column }) in plan.calls.iter().enumerate() {
            let stats = column.map_or(&mut nothing, |column| &mut stats[column]);
            if self.reduction.whole {
                // Averages are computed in the memory of the sums, if no later call needs these.
                let same = |later: &DenseCall| later.column == *column && later.call.needs_sums();
                let last = !plan.calls[at + 1..].iter().any(same);
                columns.push(call.value(stats, &rows, last)?);
            } else {
                columns.extend(call.state(stats, &rows)?);
            }
        }
        let has_keys = !self.reduction.keys.columns.is_empty();
        if !has_keys || (!by_cells && every_group_has_rows) {
            return Ok((columns, None));
        }
        let rows = match stats.first() {
            Some(stats) if by_cells => &stats.counts,
            _ => &rows,
        };
        // Leaves out the groups without rows.
        let places: Vec<usize> = (0..groups).filter(|&place| rows[place] > 0).collect();
        let at = UInt64Array::from_iter_values(places.iter().map(|&place| place as u64));
        let columns = columns.iter().map(|column| Ok(take(column, &at, None)?));
        Ok((columns.collect::<Result<_>>()?, Some(places)))
    }

    /// Aggregates all chunks, and returns the requested statistics of each column of `plan`.
    async fn fold(&mut self, plan: &DensePlan) -> Result<Vec<GroupStats>> {
        let array = Arc::clone(&self.reduction.array);
        let of_column = |column: &DenseColumn| {
            let number = array.value(column.value).as_number()?;
            reducer(number, column.requested, plan.range.as_ref(), self.table.len())
        };
        let reducers: Option<Vec<_>> = plan.columns.iter().map(of_column).collect();
        let Some(mut reducers) = reducers else {
            return internal_err!("the dense kernels do not support a column of the plan");
        };
        if reducers.is_empty() {
            return Ok(vec![]);
        }
        let table_bytes = self.reservation.size();
        // Chunks answered by zone maps come first, so that extremes start with good values.
        let tasks = self.unanswered(plan, &mut reducers).await?;
        let values = plan.columns.iter().map(|column| column.value).collect();
        let mut extremes = match self.reduction.keys.columns.as_slice() {
            [] => Extremes::of(plan, &array)?,
            _ => None,
        };
        let mut reader = self.reader(tasks.clone().into_iter(), values);
        if let Some(extremes) = &mut extremes {
            extremes.update(&reducers)?;
            // Without keys and with extremes alone, a chunk that cannot improve any of them is skipped.
            reader = reader.filtered(extremes.filters());
            reader = reader.prioritized(extremes.priorities(), tasks);
        }
        let mut yields = YieldBudget::default();
        while let Some(open) = reader.next(&self.metrics).await? {
            let timer = self.metrics.baseline.elapsed_compute().timer();
            for (column, reducer) in plan.columns.iter().zip(&mut reducers) {
                let of = open.tile(column.value)?;
                reducer.add(self.chunk(&open.task), &of.tile, of.may_hold_nulls)?;
            }
            if let Some(extremes) = &mut extremes {
                extremes.update(&reducers)?;
            }
            timer.done();
            let scratch: usize = reducers.iter().map(|reducer| reducer.scratch_bytes()).sum();
            // Converted tiles take memory that was not planned.
            self.reservation.try_resize(table_bytes + scratch)?;
            yields.spend(open.task.cells() * plan.columns.len() as u64).await;
            reader.release(open)?;
        }
        Ok(reducers.into_iter().map(|reducer| reducer.finish()).collect())
    }

    /// Counts the rows of each group, from selection sizes alone. Reads nothing, but visits every task.
    fn rows_per_group(&self) -> Vec<u64> {
        let mut rows = vec![0; self.table.len()];
        for task_number in self.tasks() {
            let task = self.part.plan.task(task_number);
            count_rows(&mut rows, &self.chunk(&task));
        }
        rows
    }

    /// Aggregates with accumulators. Returns the columns of the aggregates, and the places of the groups.
    async fn accumulate(
        &mut self,
        plan: &AccumulatePlan,
    ) -> Result<(Vec<ArrayRef>, Option<Vec<usize>>)> {
        let reduction = Arc::clone(&self.reduction);
        let has_keys = !reduction.keys.columns.is_empty();
        let mut accumulators = Accumulators::new(plan, self.table.len(), has_keys)?;
        let mut reader = self.reader(self.tasks(), values_of(&plan.columns));
        let mut assembler = Assembler::new(&reduction.array);
        let mut places = RowPlaces::default();
        let mut yields = YieldBudget::default();
        let batch_size = self.context.session_config().batch_size() as u64;
        let (mut account, table_bytes) = (Account::default(), self.reservation.size());
        let bytes_per_row = plan.bytes_per_row()?;
        while let Some(open) = reader.next(&self.metrics).await? {
            for block in Blocks::new(&open.task, batch_size) {
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
