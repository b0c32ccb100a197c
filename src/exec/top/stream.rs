//! The rows of one partition that may be among the first of their partition of the window.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{SortOptions, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use super::best::Best;
use super::grid_top::GridTop;
use crate::array::ColumnSource;
use crate::exec::batches::{Batches, stream_of};
use crate::exec::block_stream::{BlockRows, BlockStream};
use crate::exec::blocks::{columns, own_columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::metrics::ScanMetrics;
use crate::exec::order_keys::order_keys;
use crate::exec::pruning::labels::satisfied;
use crate::exec::reads::Reads;
use crate::plan::{Assembler, Block};
use crate::reduce::{GroupTable, RowPlaces};

/// Returns the rows of a partition.
pub(super) fn rows(
    grid_top: &Arc<GridTop>,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let plan = grid_top.scan.plan();
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), plan.pruned());
    let schema = Arc::clone(grid_top.scan.schema_ref());
    Ok(stream_of(schema, stream(grid_top, partition, metrics, context)?.into_stream()))
}

fn stream(
    grid_top: &Arc<GridTop>,
    partition: usize,
    metrics: ScanMetrics,
    context: &Arc<TaskContext>,
) -> Result<BlockStream<FirstRows>> {
    let GridTop { scan, top, groups } = grid_top.as_ref();
    let (array, plan) = (scan.array(), scan.plan());
    let table = GroupTable::new(plan, partition, plan.selection().axes(), groups)?;
    let consumer = format!("GridTopExec[{partition}]");
    let reservation = MemoryConsumer::new(consumer.clone()).register(context.memory_pool());
    reservation.try_grow(table.len().saturating_mul(Best::bytes_per_place(top.count)))?;
    let columns = scan.columns();
    let needed = columns_of([&top.order.expr].into_iter().chain(&top.predicate));
    let over_used = |expr: &PhysicalExprRef| over_columns(expr, &needed);
    let reader = ChunkReader::new(
        Reads::begin(array, plan, context),
        Arc::clone(plan),
        plan.tasks(partition),
        plan.partition_count(),
        values_of(&columns),
        consumer,
        context,
    );
    let rows = FirstRows {
        best: Best::new(table.len(), top.count, top.any_of_ties)?,
        assembler: Assembler::new(array),
        places: RowPlaces::default(),
        used: needed.iter().map(|&column| columns[column]).collect(),
        used_schema: Arc::new(scan.schema_ref().project(&needed)?),
        sort_key: over_used(&top.order.expr)?,
        sort: top.order.options,
        predicate: top.predicate.as_ref().map(over_used).transpose()?,
        kept: None,
        columns,
        table,
        _reservation: reservation,
        grid_top: Arc::clone(grid_top),
    };
    let batch_size = context.session_config().batch_size();
    Ok(BlockStream::new(rows, reader, scan.schema_ref(), batch_size, metrics))
}

/// A maker of the rows that may be among the first.
struct FirstRows {
    grid_top: Arc<GridTop>,
    table: GroupTable,
    best: Best,
    _reservation: MemoryReservation,
    columns: Vec<ColumnSource>,
    /// The columns of the sort key and the predicate, which are over these.
    used: Vec<ColumnSource>,
    used_schema: SchemaRef,
    sort_key: PhysicalExprRef,
    sort: SortOptions,
    predicate: Option<PhysicalExprRef>,
    assembler: Assembler,
    places: RowPlaces,
    /// The rows of the block that pass.
    kept: Option<RecordBatch>,
}

impl BlockRows for FirstRows {
    fn begin(&mut self, open: &OpenChunk, block: &Block, is_limited: bool) -> Result<()> {
        let scan = &self.grid_top.scan;
        let (rows, array) = (block.rows() as usize, scan.array());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // Most blocks have no row that passes, and then need no other columns.
        let used = columns(array, &mut self.assembler, &self.used, open, block)?;
        let used =
            RecordBatch::try_new_with_options(Arc::clone(&self.used_schema), used, &options)?;
        let passes = self.predicate.as_ref().map(|it| satisfied(it, &used)).transpose()?;
        let keys = self.keys(&used)?;
        let (places, _) = self.places.of(&self.table, array.grid(), &open.task, block);
        let kept = kept(&mut self.best, places, &keys, passes.as_ref());
        let schema = Arc::clone(scan.schema_ref());
        if kept.is_empty() {
            return Ok(());
        }
        let mut all = columns(array, &mut self.assembler, &self.columns, open, block)?;
        if is_limited {
            all = own_columns(&self.columns, all)?;
        }
        let all = RecordBatch::try_new_with_options(schema, all, &options)?;
        self.kept = Some(take_record_batch(&all, &UInt32Array::from(kept))?);
        Ok(())
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.kept.take())
    }
}

impl FirstRows {
    /// Returns the sort key of each row as a number; the least one is the first.
    fn keys(&self, used: &RecordBatch) -> Result<Vec<i64>> {
        let sort_key = self.sort_key.evaluate(used)?.into_array(used.num_rows())?;
        // Keys of descending orders are inverted.
        let of_null =
            if self.sort.nulls_first == self.sort.descending { i64::MAX } else { i64::MIN };
        let mut keys = order_keys(&sort_key, of_null)?;
        if self.sort.descending {
            keys.iter_mut().for_each(|key| *key = !*key);
        }
        Ok(keys)
    }
}

/// Returns the rows that may be among the first of their places.
fn kept(
    best: &mut Best,
    places: &[usize],
    keys: &[i64],
    passes: Option<&BooleanBuffer>,
) -> Vec<u32> {
    let mut kept = vec![];
    for (row, (&place, &key)) in places.iter().zip(keys).enumerate() {
        let passes = passes.is_none_or(|it| it.value(row));
        if passes && best.admits(place, key) {
            kept.push(row as u32);
        }
    }
    kept
}
