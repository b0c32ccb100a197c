//! The stream behind one partition of a scan: chunks become pieces, pieces become blocks, blocks become
//! batches.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::compute::{BatchCoalescer, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::breaks::Breaks;
use super::chunks::{ChunkReader, OpenChunk};
use super::compact::{compact, copied};
use super::metrics::ScanMetrics;
use super::scan::GridScanExec;
use super::to_datafusion;
use crate::array::{Column, GridArray};
use crate::grid::ChunkTask;
use crate::plan::{Assembler, Block, Blocks, Piece, Pieces, ScanPlan};

/// Produces the batches of one partition.
pub(super) struct GridStream {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    columns: Vec<Column>,
    schema: SchemaRef,
    batch_size: u64,
    chunks: ChunkReader,
    slab: Slab,
    /// Tasks of later slabs, if chunks are not read one by one.
    later: Range<u64>,
    assembler: Assembler,
    /// Joins batches of small chunks; passes large ones through.
    coalescer: BatchCoalescer,
    /// Rows that may still be produced.
    remaining: u64,
    breaks: Breaks,
    metrics: ScanMetrics,
}

/// Chunks that are read together.
#[derive(Default)]
struct Slab {
    /// Those whose turn has come.
    open: Vec<OpenChunk>,
    pieces: Option<Pieces>,
    piece: Option<(Piece, Blocks)>,
}

impl GridStream {
    /// Reads the columns of `scan` from the chunks of one of its partitions.
    pub(super) fn new(
        scan: &GridScanExec,
        partition: usize,
        context: &TaskContext,
        metrics: ScanMetrics,
    ) -> Self {
        let (array, plan, schema) = (scan.array(), scan.plan(), scan.schema_ref());
        let columns = scan.columns();
        let batch_size = context.session_config().batch_size();
        let coalescer = BatchCoalescer::new(Arc::clone(schema), batch_size)
            .with_biggest_coalesce_batch_size(Some(batch_size / 2));
        let chunks = ChunkReader::new(
            Arc::clone(array),
            Arc::clone(plan),
            plan.tasks(partition),
            plan.partition_count(),
            values_of(&columns),
            format!("GridScanExec[{partition}]"),
            context,
        );
        Self {
            assembler: Assembler::new(array),
            batch_size: batch_size as u64,
            remaining: plan.limit().unwrap_or(u64::MAX),
            slab: Slab::default(),
            breaks: Breaks::default(),
            later: plan.tasks(partition),
            chunks: chunks
                .filtered(scan.filters())
                .prioritized(scan.priority(), plan.tasks(partition)),
            array: Arc::clone(array),
            plan: Arc::clone(plan),
            schema: Arc::clone(schema),
            columns,
            coalescer,
            metrics,
        }
    }

    /// The next batch, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.next_batch().await?;
        Ok(batch.map(|batch| {
            let rows = (batch.num_rows() as u64).min(self.remaining);
            self.remaining -= rows;
            self.metrics.baseline.record_output(rows as usize);
            batch.slice(0, rows as usize)
        }))
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        loop {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.next_block().await? {
                if self.columns.is_empty() {
                    return Ok(Some(batch));
                }
                self.coalescer.push_batch(batch)?;
            } else if self.coalescer.get_buffered_rows() > 0 && self.chunks.expects_news() {
                // Better few rows now than chunks that they make needless.
                self.coalescer.finish_buffered_batch()?;
            } else if !self.open_next_slab().await? {
                self.coalescer.finish_buffered_batch()?;
                return Ok(self.coalescer.next_completed_batch());
            }
        }
    }

    /// The next block of the slab, or `None` if it is used up.
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
                // By now most consumers have let go of the last batch, and the next tile fits there.
                let cells = self.slab.open.iter().map(|chunk| chunk.task.cells()).sum();
                for chunk in self.slab.open.drain(..) {
                    self.chunks.release(chunk)?;
                }
                self.breaks.after(cells).await;
                return Ok(None);
            };
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

    /// The columns of a block of an open chunk; if it is backwards, from its last row on.
    fn batch(&mut self, chunk: usize, block: &Block, backwards: bool) -> Result<RecordBatch> {
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let open = &self.slab.open[chunk];
        let mut arrays = columns(&self.array, &mut self.assembler, &self.columns, open, block)?;
        if self.chunks.is_limited() {
            let columns = self.columns.iter().zip(arrays);
            let own = columns.map(|(column, array)| match column {
                Column::Value(_) => copied(&array),
                _ => compact(array),
            });
            arrays = own.collect::<Result<_, _>>()?;
        }
        let rows = block.rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if !backwards || self.columns.is_empty() {
            return Ok(batch);
        }
        let reversed = UInt64Array::from_iter_values((0..rows).rev());
        Ok(take_record_batch(&batch, &reversed)?)
    }

    /// Makes the next slab current; false if there is none.
    async fn open_next_slab(&mut self) -> Result<bool> {
        let Some(order) = self.plan.reordered() else {
            // Each chunk is a slab.
            let Some(open) = self.chunks.next(&self.metrics).await? else { return Ok(false) };
            self.slab.pieces = Some(Pieces::new(&[&open.task], &[], self.batch_size));
            self.slab.open.push(open);
            return Ok(true);
        };
        let slab = self.plan.slab(self.later.clone());
        self.later.start = slab.end;
        let tasks: Vec<ChunkTask> = slab.map(|task| self.plan.task(task)).collect();
        let tasks: Vec<&ChunkTask> = tasks.iter().collect();
        self.slab.pieces = Some(Pieces::new(&tasks, order, self.batch_size));
        Ok(!tasks.is_empty())
    }
}

/// The values among `columns`, each once.
pub(super) fn values_of(columns: &[Column]) -> Vec<usize> {
    let mut values: Vec<usize> = columns.iter().filter_map(|column| column.value()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// What `columns` show in the rows of a block.
pub(super) fn columns(
    array: &GridArray,
    assembler: &mut Assembler,
    columns: &[Column],
    open: &OpenChunk,
    block: &Block,
) -> Result<Vec<ArrayRef>> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for column in columns {
        let array = match column {
            Column::Value(value) => values(array, *value, open, block),
            _ => assembler.dimension(*column, &open.task, block),
        };
        arrays.push(array.map_err(to_datafusion)?);
    }
    Ok(arrays)
}

fn values(
    array: &GridArray,
    value: usize,
    open: &OpenChunk,
    block: &Block,
) -> crate::Result<ArrayRef> {
    let of = open.tile(value)?;
    let column = array.value(value).decode(&of.tile, &block.cells(&open.task), of.may_hold_nulls);
    column.map_err(|error| {
        let name = array.columns().iter().position(|column| *column == Column::Value(value));
        let name = name.map_or("", |at| array.schema().field(at).name());
        array.objects().named(error.about(&format!("column \"{name}\"")))
    })
}
