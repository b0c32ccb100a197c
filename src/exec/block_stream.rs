//! [`BlockStream`]: reads the chunks of one partition, and makes batches of their blocks.
//!
//! ```text
//!   chunks ─▶ blocks ─▶ `BlockRows`: the rows of a block ─▶ coalescer ─▶ batches
//! ```
//!
//! Operators that change the rows of a scan implement [`BlockRows`].
//!
//! Small chunks share batches. Large batches pass through.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use super::batches::Batches;
use super::chunks::{ChunkReader, OpenChunk};
use super::metrics::ScanMetrics;
use super::yield_budget::YieldBudget;
use crate::plan::{Block, RowBlocks};

/// A maker of the rows of blocks.
pub(super) trait BlockRows: Send {
    /// Begins with a block of an open chunk. If the memory pool `is_limited`, batches must not keep the chunk alive, because
    /// consumers may hold them.
    fn begin(&mut self, open: &OpenChunk, block: &Block, is_limited: bool) -> Result<()>;

    /// Returns the next rows of the block, at most about as many as a batch has. `None` at the end.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>>;
}

/// A producer of the batches of one partition.
pub(super) struct BlockStream<R> {
    rows: R,
    reader: ChunkReader,
    open: Option<(OpenChunk, RowBlocks)>,
    batch_size: u64,
    coalescer: BatchCoalescer,
    yields: YieldBudget,
    metrics: ScanMetrics,
}

impl<R: BlockRows> BlockStream<R> {
    /// Makes batches of about `batch_size` rows.
    pub(super) fn new(
        rows: R,
        reader: ChunkReader,
        schema: &SchemaRef,
        batch_size: usize,
        metrics: ScanMetrics,
    ) -> Self {
        Self {
            coalescer: BatchCoalescer::new(Arc::clone(schema), batch_size)
                .with_biggest_coalesce_batch_size(Some(batch_size / 2)),
            batch_size: batch_size as u64,
            yields: YieldBudget::default(),
            open: None,
            rows,
            reader,
            metrics,
        }
    }
}

impl<R: BlockRows + 'static> Batches for BlockStream<R> {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.next_batch().await?;
        Ok(batch.inspect(|batch| self.metrics.baseline.record_output(batch.num_rows())))
    }
}

impl<R: BlockRows> BlockStream<R> {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.coalescer.next_completed_batch() {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.next_block().await? {
                // Without columns, a batch is a number of rows: there is nothing to join.
                if batch.num_columns() == 0 {
                    return Ok(Some(batch));
                }
                self.coalescer.push_batch(batch)?;
            } else if let Some(open) = self.reader.next(&self.metrics).await? {
                let blocks = RowBlocks::new(&open.task, self.batch_size);
                self.open = Some((open, blocks));
            } else {
                self.coalescer.finish_buffered_batch()?;
                return Ok(self.coalescer.next_completed_batch());
            }
        }
    }

    /// Returns the next rows of the open chunk; `None` at its end, when it is released.
    async fn next_block(&mut self) -> Result<Option<RecordBatch>> {
        let Some((open, blocks)) = &mut self.open else { return Ok(None) };
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let timer = elapsed.timer();
        loop {
            if let Some(batch) = self.rows.next_rows()? {
                return Ok(Some(batch));
            }
            let Some(block) = blocks.next() else { break };
            self.rows.begin(open, &block, self.reader.is_limited())?;
        }
        timer.done();
        if let Some((open, _)) = self.open.take() {
            let cells = open.task.cells();
            self.reader.release(open)?;
            self.yields.spend(cells).await;
        }
        Ok(None)
    }
}
