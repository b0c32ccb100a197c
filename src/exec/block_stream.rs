//! [`BlockStream`]: reads the chunks of one partition, and makes batches of their blocks.
//!
//! ```text
//!   chunks ─▶ blocks ─▶ `BlockRows`: the rows of a block ─▶ coalescer ─▶ batches
//! ```
//!
//! Operators that change the rows of a scan implement [`BlockRows`].

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use super::chunks::{ChunkReader, OpenChunk};
use super::metrics::ScanMetrics;
use super::yield_budget::YieldBudget;
use crate::plan::{Block, Blocks};

/// A maker of the rows of blocks.
pub(super) trait BlockRows: Send {
    /// Returns the rows of a block of an open chunk. If the memory pool `is_limited`, the batch must not keep the chunk alive,
    /// because consumers may hold it.
    fn rows(&mut self, open: &OpenChunk, block: &Block, is_limited: bool) -> Result<RecordBatch>;
}

/// A producer of the batches of one partition.
pub(super) struct BlockStream<R> {
    rows: R,
    reader: ChunkReader,
    open: Option<(OpenChunk, Blocks)>,
    /// The greatest number of rows of a block.
    block_size: u64,
    coalescer: BatchCoalescer,
    yields: YieldBudget,
    metrics: ScanMetrics,
}

impl<R: BlockRows> BlockStream<R> {
    /// Makes batches of `batch_size` rows, from blocks of at most `block_size` rows.
    pub(super) fn new(
        rows: R,
        reader: ChunkReader,
        schema: &SchemaRef,
        batch_size: usize,
        block_size: usize,
        metrics: ScanMetrics,
    ) -> Self {
        Self {
            coalescer: BatchCoalescer::new(Arc::clone(schema), batch_size)
                .with_biggest_coalesce_batch_size(Some(batch_size / 2)),
            block_size: block_size.max(1) as u64,
            yields: YieldBudget::default(),
            open: None,
            rows,
            reader,
            metrics,
        }
    }

    /// Returns the next batch, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = self.next_batch().await?;
        Ok(batch.inspect(|batch| self.metrics.baseline.record_output(batch.num_rows())))
    }

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
                let blocks = Blocks::new(&open.task, self.block_size);
                self.open = Some((open, blocks));
            } else {
                self.coalescer.finish_buffered_batch()?;
                return Ok(self.coalescer.next_completed_batch());
            }
        }
    }

    /// Returns the rows of the next block; `None` at the end of the chunk, which is then released.
    async fn next_block(&mut self) -> Result<Option<RecordBatch>> {
        let Some((open, blocks)) = &mut self.open else { return Ok(None) };
        if let Some(block) = blocks.next() {
            let elapsed = self.metrics.baseline.elapsed_compute().clone();
            let _timer = elapsed.timer();
            return self.rows.rows(open, &block, self.reader.is_limited()).map(Some);
        }
        if let Some((open, _)) = self.open.take() {
            let cells = open.task.cells();
            self.reader.release(open)?;
            self.yields.spend(cells).await;
        }
        Ok(None)
    }
}
