//! The rows of one partition of a window.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use super::grid_window::GridWindow;
use super::open_column::{ColumnRange, OpenColumn, arguments};
use super::parts::{WindowPart, chunks_to_read};
use crate::array::ColumnSource;
use crate::exec::batches::{Batches, stream_of};
use crate::exec::blocks::{columns, own_columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::compact::copied;
use crate::exec::metrics::ScanMetrics;
use crate::exec::reads::Reads;
use crate::exec::yield_budget::YieldBudget;
use crate::plan::{Assembler, RowBlocks, ScanPlan};

/// The columns that an operator returns.
pub(super) struct Output {
    /// Columns of the window's schema.
    pub(super) projection: Vec<usize>,
    pub(super) schema: SchemaRef,
    /// The number of partitions, which share the memory for chunks.
    pub(super) partitions: usize,
}

/// Returns the rows of a part of the window, which is partition number `partition` of the plan.
pub(super) fn rows(
    window: &Arc<GridWindow>,
    output: Output,
    part: &WindowPart,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = window.scan.plan();
    // If several processes run the window, the one with the first chunk reports the chunks that planning left out.
    let is_first = part.columns.start == 0 && part.chunks.start == 0 && !part.columns.is_empty();
    let pruned = plan.pruned().filter(|_| is_first);
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), pruned);
    let schema = Arc::clone(&output.schema);
    let rows = WindowStream::new(Arc::clone(window), output, part, partition, metrics, context);
    stream_of(schema, rows.into_stream())
}

/// A producer of the batches of one partition.
struct WindowStream {
    window: Arc<GridWindow>,
    output: Output,
    /// The columns of the scan that are returned, in output order.
    scanned: Vec<ColumnSource>,
    /// The columns that arguments use, with their schema.
    used: Vec<ColumnSource>,
    used_schema: SchemaRef,
    /// One per plan of the window's chunks.
    readers: Vec<ChunkReader>,
    assembler: Assembler,
    /// The columns of chunks that are left.
    left: VecDeque<ColumnRange>,
    column: Option<OpenColumn>,
    returned: Option<ReturnedChunk>,
    batch_size: u64,
    coalescer: BatchCoalescer,
    reservation: MemoryReservation,
    yields: YieldBudget,
    metrics: ScanMetrics,
}

/// A chunk whose rows are being returned.
struct ReturnedChunk {
    open: OpenChunk,
    /// The number of its reader.
    reader: usize,
    /// The values of all functions in all rows.
    values: Vec<ArrayRef>,
    blocks: RowBlocks,
    /// Rows that are returned.
    rows: usize,
}

impl WindowStream {
    fn new(
        window: Arc<GridWindow>,
        output: Output,
        part: &WindowPart,
        partition: usize,
        metrics: ScanMetrics,
        context: &Arc<TaskContext>,
    ) -> Self {
        let GridWindow { scan, chunks, calls, .. } = window.as_ref();
        let read = chunks_to_read(chunks, calls, &part.chunks);
        let of_column =
            |column| ColumnRange { column, read: read.clone(), returned: part.chunks.clone() };
        let mut left: VecDeque<ColumnRange> = part.columns.clone().map(of_column).collect();
        left.retain(|it| !it.returned.is_empty());
        let of_scan = scan.columns();
        let used: Vec<ColumnSource> =
            window.argument_columns.iter().map(|&column| of_scan[column]).collect();
        let scanned: Vec<ColumnSource> =
            output.projection.iter().filter_map(|&column| window.source(column)).collect();
        let values = values_of(&[used.clone(), scanned.clone()].concat());
        let consumer = format!("GridWindowExec[{partition}]");
        let reservation = MemoryConsumer::new(consumer.clone()).register(context.memory_pool());
        let reader = |(number, plan): (usize, &Arc<ScanPlan>)| {
            let of_column = |it: &ColumnRange| {
                let (column, read) = (it.column, it.read.clone());
                let own = read.filter(|chunk| chunks.plan_of(*chunk) == number);
                own.map(move |chunk| chunks.task(column, chunk).1)
            };
            let tasks: Vec<_> = left.iter().flat_map(of_column).collect();
            ChunkReader::new(
                Reads::begin(scan.array(), scan.plan(), context),
                Arc::clone(plan),
                tasks.into_iter(),
                output.partitions,
                values.clone(),
                consumer.clone(),
                context,
            )
        };
        let readers = chunks.plans().enumerate().map(reader).collect();
        let batch_size = context.session_config().batch_size();
        let used_schema = scan.schema_ref().project(&window.argument_columns);
        Self {
            coalescer: BatchCoalescer::new(Arc::clone(&output.schema), batch_size)
                .with_biggest_coalesce_batch_size(Some(batch_size / 2)),
            assembler: Assembler::new(scan.array()),
            batch_size: batch_size as u64,
            used_schema: used_schema.map_or_else(|_| Arc::clone(&output.schema), Arc::new),
            output,
            scanned,
            used,
            readers,
            left,
            column: None,
            returned: None,
            reservation,
            yields: YieldBudget::default(),
            metrics,
            window,
        }
    }
}

impl Batches for WindowStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                self.metrics.baseline.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            if let Some(batch) = self.next_block()? {
                if batch.num_columns() == 0 {
                    self.metrics.baseline.record_output(batch.num_rows());
                    return Ok(Some(batch));
                }
                self.coalescer.push_batch(batch)?;
            } else if let Some(chunk) = self.returned.take() {
                self.readers[chunk.reader].release(chunk.open)?;
            } else if !self.open_next().await? {
                self.coalescer.finish_buffered_batch()?;
                let batch = self.coalescer.next_completed_batch();
                self.reservation.free();
                return Ok(batch.inspect(|it| self.metrics.baseline.record_output(it.num_rows())));
            }
        }
    }
}

impl WindowStream {
    /// Returns the next rows of the chunk that is being returned; `None` at its end.
    fn next_block(&mut self) -> Result<Option<RecordBatch>> {
        let Some(chunk) = &mut self.returned else { return Ok(None) };
        let Some(block) = chunk.blocks.next() else { return Ok(None) };
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let array = self.window.scan.array();
        let is_limited = self.readers.iter().any(ChunkReader::is_limited);
        let mut scanned = columns(array, &mut self.assembler, &self.scanned, &chunk.open, &block)?;
        if is_limited {
            // Consumers may hold the batch.
            scanned = own_columns(&self.scanned, scanned)?;
        }
        let mut scanned = scanned.into_iter();
        let (first, rows) = (chunk.rows, block.rows() as usize);
        chunk.rows += rows;
        let of_scan = self.window.scan.columns().len();
        let mut arrays = Vec::with_capacity(self.output.projection.len());
        for &column in &self.output.projection {
            let array = match column.checked_sub(of_scan) {
                None => scanned.next(),
                Some(call) => {
                    let values = chunk.values[call].slice(first, rows);
                    Some(if is_limited { copied(&values)? } else { values })
                }
            };
            let Some(array) = array else {
                return internal_err!("a column of a window is missing");
            };
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.output.schema);
        Ok(Some(RecordBatch::try_new_with_options(schema, arrays, &options)?))
    }

    /// Makes the next chunk the one to return, or reads another chunk for it. Returns false at the end.
    async fn open_next(&mut self) -> Result<bool> {
        if let Some(column) = &mut self.column {
            let elapsed = self.metrics.baseline.elapsed_compute().clone();
            let timer = elapsed.timer();
            let reader = self.window.chunks.plan_of(column.next_to_return());
            let next = column.next_chunk(&self.window)?;
            timer.done();
            if let Some((open, values)) = next {
                let bytes: usize = values.iter().map(|it| it.get_array_memory_size()).sum();
                self.reservation.try_resize(column.size() + bytes)?;
                let blocks = RowBlocks::new(&open.task, self.batch_size);
                self.returned = Some(ReturnedChunk { open, reader, values, blocks, rows: 0 });
                if column.is_done() && column.is_read() {
                    self.column = None;
                }
                return Ok(true);
            }
        }
        let column = self.column.as_ref();
        let next = match (column, self.left.front()) {
            (Some(column), _) => column.next_to_read(),
            (None, Some(range)) => range.read.clone().next(),
            (None, None) => return self.finish().await,
        };
        let reader = next.map(|chunk| self.window.chunks.plan_of(chunk));
        let open = match reader.and_then(|it| self.readers.get_mut(it)) {
            Some(reader) => reader.next(&self.metrics).await?,
            None => None,
        };
        let (Some(open), Some(reader)) = (open, reader) else {
            return internal_err!("a column has fewer chunks than the plan");
        };
        let cells = open.task.cells();
        self.add(open, reader)?;
        self.yields.spend(cells).await;
        Ok(true)
    }

    /// Ends reading. Returns false, as there is no other chunk.
    async fn finish(&mut self) -> Result<bool> {
        for reader in &mut self.readers {
            if reader.next(&self.metrics).await?.is_some() {
                return internal_err!("a window has more chunks than the plan");
            }
        }
        Ok(false)
    }

    /// Adds a chunk of a reader to the states of its column.
    fn add(&mut self, open: OpenChunk, reader: usize) -> Result<()> {
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let column = match &mut self.column {
            Some(column) => column,
            None => {
                let Some(range) = self.left.pop_front() else {
                    return internal_err!("a window has more chunks than the plan");
                };
                self.column.insert(OpenColumn::new(&self.window, range, &open.task))
            }
        };
        let rows = open.task.rows;
        let array = self.window.scan.array();
        let of_chunk = match self.used.as_slice() {
            [] => vec![],
            used => {
                let mut blocks = RowBlocks::new(&open.task, u64::MAX);
                let Some(block) = blocks.next() else {
                    return internal_err!("a chunk without rows");
                };
                columns(array, &mut self.assembler, used, &open, &block)?
            }
        };
        let arguments = arguments(&self.window, &self.used_schema, of_chunk, rows as usize)?;
        if let Some(open) = column.push(&self.window, open, &arguments)? {
            self.readers[reader].release(open)?;
        }
        self.reservation.try_resize(column.size())?;
        Ok(())
    }
}
