//! The stream of one partition of a scan: cuts chunks into pieces and blocks, and makes batches of them.
//!
//! ```text
//!   slab      chunks whose rows are interleaved; a single chunk unless rows are read in another order
//!    └ piece     a box of one chunk; opens the chunk if it is the first of it
//!       └ block     at most a batch of rows ─▶ columns ─▶ coalescer ─▶ batch
//! ```
//!
//! After the last piece all chunks of the slab are released together.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{BatchCoalescer, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::batches::Batches;
use super::blocks::{columns, own_columns, values_of};
use super::chunks::{ChunkReader, OpenChunk};
use super::metrics::ScanMetrics;
use super::pruning::{DynamicFilters, Priority};
use super::reads::Reads;
use super::yield_budget::YieldBudget;
use crate::array::{ColumnSource, GridArray};
use crate::grid::ChunkTask;
use crate::plan::{Assembler, Block, Piece, Pieces, RowBlocks, ScanPlan, TaskRange};

/// The inputs of a stream: the plan to read, the columns to make, and the filters.
pub(super) struct StreamInput {
    pub(super) array: Arc<GridArray>,
    pub(super) plan: Arc<ScanPlan>,
    /// The source of each output column.
    pub(super) columns: Vec<ColumnSource>,
    /// The schema of the output.
    pub(super) schema: SchemaRef,
    /// The dynamic filters of joins and `ORDER BY … LIMIT`.
    pub(super) filters: DynamicFilters,
    /// The sort key whose best chunks are read first.
    pub(super) priority: Option<Priority>,
}

/// A producer of the batches of one partition.
pub(super) struct GridStream {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    columns: Vec<ColumnSource>,
    schema: SchemaRef,
    batch_size: u64,
    chunks: ChunkReader,
    slab: OpenSlab,
    /// Tasks of later slabs; unused if chunks are read one by one. The reader opens the same tasks in the
    /// same order: without filters it leaves none out.
    later: TaskRange,
    assembler: Assembler,
    /// Joins batches of small chunks; passes large ones through.
    coalescer: BatchCoalescer,
    /// Rows that the limit still allows.
    remaining: u64,
    yields: YieldBudget,
    metrics: ScanMetrics,
}

/// The current slab: chunks of the plan whose rows are interleaved.
#[derive(Default)]
struct OpenSlab {
    /// The chunks that are open so far, in the order of the slab's tasks.
    open: Vec<OpenChunk>,
    /// The pieces that are left; `None` before the first slab.
    pieces: Option<Pieces>,
    /// The current piece, with the blocks of it that are left.
    piece: Option<(Piece, RowBlocks)>,
}

impl GridStream {
    /// Makes the producer of one partition of the plan.
    pub(super) fn new(
        input: StreamInput,
        partition: usize,
        context: &Arc<TaskContext>,
        metrics: ScanMetrics,
    ) -> Self {
        let StreamInput { array, plan, columns, schema, filters, priority } = input;
        let batch_size = context.session_config().batch_size();
        let coalescer = BatchCoalescer::new(Arc::clone(&schema), batch_size)
            // Larger batches pass through without a copy.
            .with_biggest_coalesce_batch_size(Some(batch_size / 2));
        let tasks = plan.tasks(partition);
        let chunks = ChunkReader::new(
            Reads::begin(&array, &plan, context),
            Arc::clone(&plan),
            tasks.clone(),
            plan.partition_count(),
            values_of(&columns),
            format!("GridScanExec[{partition}]"),
            context,
        );
        Self {
            chunks: chunks
                .filtered(filters)
                .prioritized(priority.into_iter().collect(), tasks.clone()),
            assembler: Assembler::new(&array),
            batch_size: batch_size as u64,
            remaining: plan.limit().unwrap_or(u64::MAX),
            slab: OpenSlab::default(),
            yields: YieldBudget::default(),
            later: tasks,
            array,
            plan,
            schema,
            columns,
            coalescer,
            metrics,
        }
    }
}

impl Batches for GridStream {
    /// Returns the next batch, or `None` at the end. Cuts the last batch off at the limit.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.next_batch().await? else { return Ok(None) };
        let rows = (batch.num_rows() as u64).min(self.remaining);
        self.remaining -= rows;
        if self.remaining == 0 {
            // The operator above may not ask for another batch.
            self.chunks.finish().await?;
        }
        self.metrics.baseline.record_output(rows as usize);
        Ok(Some(batch.slice(0, rows as usize)))
    }
}

impl GridStream {
    /// Returns the next batch, without regard to how many of its rows the limit allows.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        loop {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.next_block().await? {
                // Without columns, as for `count(*)`, a batch is a number of rows: there is nothing to
                // join.
                if self.columns.is_empty() {
                    return Ok(Some(batch));
                }
                self.coalescer.push_batch(batch)?;
            } else if self.coalescer.get_buffered_rows() > 0 && self.chunks.may_prune_more() {
                // Passes a few rows on early, because they may make filters exclude the next chunks.
                self.coalescer.finish_buffered_batch()?;
            } else if !self.open_next_slab().await? {
                self.chunks.finish().await?;
                self.coalescer.finish_buffered_batch()?;
                return Ok(self.coalescer.next_completed_batch());
            }
        }
    }

    /// Returns the next block of the slab as a batch, or `None` after the last one.
    async fn next_block(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((piece, blocks)) = &mut self.slab.piece {
                if let Some(block) = blocks.next() {
                    let (task, backwards) = (piece.task, piece.backwards);
                    return self.batch(task, &block, backwards).map(Some);
                }
                self.slab.piece = None;
            }
            let Some(piece) = self.slab.pieces.as_mut().and_then(Iterator::next) else {
                // By now most consumers have dropped the last batch, so the next tile can reuse its
                // memory.
                let cells = self.slab.open.iter().map(|chunk| chunk.task.cells()).sum();
                for chunk in self.slab.open.drain(..) {
                    self.chunks.release(chunk)?;
                }
                self.yields.spend(cells).await;
                return Ok(None);
            };
            // Pieces name chunks in order, so the next chunk of the reader is the one that is needed.
            while self.slab.open.len() <= piece.task {
                let Some(chunk) = self.chunks.next(&self.metrics).await? else {
                    return internal_err!("a slab has more chunks than the plan");
                };
                self.slab.open.push(chunk);
            }
            let blocks = piece.blocks(self.batch_size);
            self.slab.piece = Some((piece, blocks));
        }
    }

    /// Makes a batch of a block of an open chunk; `backwards` puts its last row first.
    fn batch(&mut self, chunk: usize, block: &Block, backwards: bool) -> Result<RecordBatch> {
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let open = &self.slab.open[chunk];
        let mut arrays = columns(&self.array, &mut self.assembler, &self.columns, open, block)?;
        if self.chunks.is_limited() {
            // Consumers may hold the batch.
            arrays = own_columns(&self.columns, arrays)?;
        }
        let rows = block.rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if !backwards || self.columns.is_empty() {
            return Ok(batch);
        }
        // Dimension columns and values are made in ascending order, whatever order is read.
        let reversed = UInt64Array::from_iter_values((0..rows).rev());
        Ok(take_record_batch(&batch, &reversed)?)
    }

    /// Makes the next slab the current one; returns false if there is none.
    async fn open_next_slab(&mut self) -> Result<bool> {
        let Some(order) = self.plan.reordered() else {
            // Each chunk is a slab.
            let Some(open) = self.chunks.next(&self.metrics).await? else { return Ok(false) };
            self.slab.pieces = Some(Pieces::new(&[&open.task], &[], self.batch_size));
            self.slab.open.push(open);
            return Ok(true);
        };
        let slab = self.plan.take_slab(&mut self.later);
        let tasks: Vec<ChunkTask> = slab.map(|task| self.plan.task(task)).collect();
        let tasks: Vec<&ChunkTask> = tasks.iter().collect();
        self.slab.pieces = Some(Pieces::new(&tasks, order, self.batch_size));
        Ok(!tasks.is_empty())
    }
}
