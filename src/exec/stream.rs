//! The stream behind one partition of a scan: chunks become blocks, blocks become batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::chunks::{ChunkReader, OpenChunk};
use super::metrics::ScanMetrics;
use super::to_datafusion;
use crate::scan::{Assembler, Block, Blocks, Column, GridArray, ScanPlan};

/// Produces the batches of one partition.
pub(super) struct GridStream {
    array: Arc<GridArray>,
    columns: Vec<Column>,
    schema: SchemaRef,
    batch_size: u64,
    chunks: ChunkReader,
    current: Option<(OpenChunk, Blocks)>,
    assembler: Assembler,
    /// Joins batches of small chunks; passes large ones through.
    coalescer: BatchCoalescer,
    /// Rows that may still be produced.
    remaining: u64,
    metrics: ScanMetrics,
}

impl GridStream {
    pub(super) fn new(
        array: Arc<GridArray>,
        plan: Arc<ScanPlan>,
        partition: usize,
        columns: Vec<Column>,
        schema: SchemaRef,
        context: &TaskContext,
        metrics: ScanMetrics,
    ) -> Self {
        let batch_size = context.session_config().batch_size();
        let coalescer = BatchCoalescer::new(Arc::clone(&schema), batch_size)
            .with_biggest_coalesce_batch_size(Some(batch_size / 2));
        let values = values_of(&columns);
        let remaining = plan.limit().unwrap_or(u64::MAX);
        let (tasks, partitions) = (plan.tasks(partition), plan.partition_count());
        let consumer = format!("GridScanExec[{partition}]");
        let chunks = ChunkReader::new(
            Arc::clone(&array),
            plan,
            tasks,
            partitions,
            values,
            consumer,
            context,
        );
        Self {
            assembler: Assembler::new(&array),
            batch_size: batch_size as u64,
            remaining,
            current: None,
            array,
            columns,
            schema,
            chunks,
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
            if let Some(batch) = self.next_block()? {
                if self.columns.is_empty() {
                    return Ok(Some(batch));
                }
                self.coalescer.push_batch(batch)?;
            } else if !self.open_next_chunk().await? {
                self.coalescer.finish_buffered_batch()?;
                return Ok(self.coalescer.next_completed_batch());
            }
        }
    }

    /// The next block of the open chunk, or `None` if there is no chunk or it is used up.
    fn next_block(&mut self) -> Result<Option<RecordBatch>> {
        let Some((open, mut blocks)) = self.current.take() else { return Ok(None) };
        let Some(block) = blocks.next() else {
            // By now most consumers have let go of the last batch, and the next tile fits there.
            self.chunks.release(open);
            return Ok(None);
        };
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let batch = self.batch(&open, &block)?;
        self.current = Some((open, blocks));
        Ok(Some(batch))
    }

    fn batch(&mut self, open: &OpenChunk, block: &Block) -> Result<RecordBatch> {
        let arrays = columns(&self.array, &mut self.assembler, &self.columns, open, block)?;
        let options = RecordBatchOptions::new().with_row_count(Some(block.rows() as usize));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// Makes the next chunk current; false if there is none.
    async fn open_next_chunk(&mut self) -> Result<bool> {
        let Some(open) = self.chunks.next(&self.metrics).await? else { return Ok(false) };
        let blocks = Blocks::new(&open.task, self.batch_size);
        self.current = Some((open, blocks));
        Ok(true)
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
