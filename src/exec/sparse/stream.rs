//! [`SparseStream`]: the rows of one partition of a sparse scan.
//!
//! ```text
//!   merges ─ tile by tile ─┐
//!                          ├─▶ selected rows ─▶ coalescer ─▶ batches
//!   tiles  ─ read ahead ───┘
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};

use super::merge::Merge;
use super::plan::{PartitionTasks, TileTask};
use super::tile_reader::{SelectedRows, TileReader};
use crate::array::TileNumber;
use crate::exec::batches::Batches;
use crate::exec::yield_budget::YieldBudget;
use crate::io::counted;

/// The tiles that are read at once if reads have to wait.
const READ_AHEAD: usize = 4;
/// The tiles that are read at once from object stores, whose requests wait side by side.
const REMOTE_READ_AHEAD: usize = 32;
/// The tiles that are compared with a changed filter at once.
const PRUNE_GROUP: usize = 256;

/// A producer of the batches of one partition.
pub(super) struct SparseStream {
    reader: Arc<TileReader>,
    merges: VecDeque<super::plan::MergeTask>,
    merge: Option<Merge>,
    /// Tiles that have not been compared with the filters.
    tiles: VecDeque<TileTask>,
    /// Tiles that the filters leave.
    next: VecDeque<TileTask>,
    /// Tiles that are being read.
    reading: FuturesOrdered<BoxFuture<'static, Result<Option<SelectedRows>>>>,
    coalescer: BatchCoalescer,
    batch_size: usize,
    /// Whether the output has no columns, as for `count(*)`.
    is_count: bool,
    schema: SchemaRef,
    /// Batches that have only a number of rows.
    counted: VecDeque<usize>,
    /// Rows that the limit still allows.
    remaining: usize,
    is_prepared: bool,
    yields: YieldBudget,
}

impl SparseStream {
    pub(super) fn new(
        reader: TileReader,
        tasks: PartitionTasks,
        schema: SchemaRef,
        batch_size: usize,
    ) -> Self {
        let coalescer = BatchCoalescer::new(Arc::clone(&schema), batch_size)
            // Larger batches pass through without a copy.
            .with_biggest_coalesce_batch_size(Some(batch_size / 2));
        Self {
            remaining: reader.plan.limit.unwrap_or(usize::MAX),
            reader: Arc::new(reader),
            merges: tasks.merges.into(),
            merge: None,
            tiles: tasks.tiles.into(),
            next: VecDeque::new(),
            reading: FuturesOrdered::new(),
            coalescer,
            batch_size,
            is_count: schema.fields().is_empty(),
            schema,
            counted: VecDeque::new(),
            is_prepared: false,
            yields: YieldBudget::default(),
        }
    }
}

impl Batches for SparseStream {
    /// Returns the next batch, or `None` at the end. Cuts the last batch off at the limit.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let read = async {
            self.prepare().await?;
            self.next_batch().await
        };
        let (batch, counts) = counted(read).await;
        self.reader.metrics.requests.add(&counts);
        Ok(batch?.map(|batch| {
            let rows = batch.num_rows().min(self.remaining);
            self.remaining -= rows;
            self.reader.metrics.baseline.record_output(rows);
            batch.slice(0, rows)
        }))
    }
}

impl SparseStream {
    /// Reads the locations of all tiles at once.
    async fn prepare(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_prepared, true) {
            return Ok(());
        }
        let merged = self.merges.iter().flat_map(|merge| &merge.tiles);
        let tiles = self.tiles.iter().chain(merged).map(|task| task.tile);
        let mut tiles: Vec<TileNumber> = tiles.collect();
        tiles.sort_unstable();
        let mut fragments: Vec<usize> = tiles.iter().map(|tile| tile.fragment).collect();
        fragments.dedup();
        self.reader.prepare(&fragments).await?;
        self.reader.pruner.prepare(&fragments, &tiles).await
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.counted.pop_front() {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let schema = Arc::clone(&self.schema);
                return Ok(Some(RecordBatch::try_new_with_options(schema, vec![], &options)?));
            }
            if let Some(batch) = self.coalescer.next_completed_batch() {
                return Ok(Some(batch));
            }
            match self.next_selected().await? {
                Some(selected) => self.push(selected)?,
                None if self.coalescer.get_buffered_rows() == 0 => return Ok(None),
                None => self.coalescer.finish_buffered_batch()?,
            }
            // Passes a few rows on early if the limit needs no more, and because they may make filters
            // exclude the next tiles.
            let buffered = self.coalescer.get_buffered_rows();
            let is_enough = buffered >= self.remaining || !self.reader.pruner.is_empty();
            if is_enough && buffered > 0 {
                self.coalescer.finish_buffered_batch()?;
            }
        }
    }

    /// Adds the selected rows of a tile to the output, in pieces of at most a batch. Pieces of one size are more than half a
    /// batch, so the coalescer does not copy them.
    fn push(&mut self, (batch, selected): SelectedRows) -> Result<()> {
        let metrics = &self.reader.metrics.baseline;
        let _timer = metrics.elapsed_compute().timer();
        if self.is_count {
            let rows = selected.map_or(batch.num_rows(), |selected| selected.true_count());
            let mut left = rows;
            while left > 0 {
                let rows = left.min(self.batch_size.max(1));
                self.counted.push_back(rows);
                left -= rows;
            }
            return Ok(());
        }
        let pieces = batch.num_rows().div_ceil(self.batch_size.max(1)).max(1);
        let piece_rows = batch.num_rows().div_ceil(pieces).max(1);
        for start in (0..batch.num_rows()).step_by(piece_rows) {
            let rows = piece_rows.min(batch.num_rows() - start);
            let piece = batch.slice(start, rows);
            match &selected {
                Some(selected) => {
                    let selected: BooleanArray = selected.slice(start, rows);
                    if selected.true_count() > 0 {
                        self.coalescer.push_batch_with_filter(piece, &selected)?;
                    }
                }
                None => self.coalescer.push_batch(piece)?,
            }
        }
        Ok(())
    }

    /// Returns the selected rows of the next tile that has any.
    async fn next_selected(&mut self) -> Result<Option<SelectedRows>> {
        loop {
            if let Some(merge) = &mut self.merge {
                match merge.next().await? {
                    Some(tile) => match self.reader.finish(tile).await? {
                        Some(selected) => return Ok(Some(selected)),
                        None => continue,
                    },
                    None => self.merge = None,
                }
            }
            if let Some(task) = self.merges.pop_front() {
                self.merge = Some(Merge::new(Arc::clone(&self.reader), task)?);
                continue;
            }
            self.start_reading().await?;
            match self.reading.next().await {
                Some(Ok(Some(selected))) => {
                    self.yields.spend(selected.0.num_rows() as u64).await;
                    return Ok(Some(selected));
                }
                Some(Ok(None)) => self.yields.spend(1).await,
                Some(Err(error)) => return Err(error),
                None => return Ok(None),
            }
        }
    }

    /// Starts to read the next tiles that the filters leave.
    async fn start_reading(&mut self) -> Result<()> {
        let ahead = match self.reader.array.objects() {
            objects if objects.is_resident() => 1,
            // A limited pool may refuse the memory of many tiles at once, which fails the query.
            objects if objects.is_remote() && !self.reader.is_limited() => REMOTE_READ_AHEAD,
            _ => READ_AHEAD,
        };
        while self.reading.len() < ahead {
            if self.reader.pruner.has_changed() {
                // The new filter may exclude tiles that the old one has left.
                self.tiles = self.next.drain(..).chain(self.tiles.drain(..)).collect();
            }
            while self.next.is_empty() && !self.tiles.is_empty() {
                self.choose()?;
                tokio::task::yield_now().await;
            }
            let Some(task) = self.next.pop_front() else { return Ok(()) };
            let reader = Arc::clone(&self.reader);
            self.reading.push_back(Box::pin(async move { reader.scan(task).await }));
        }
        Ok(())
    }

    /// Compares the next tiles with the filters.
    fn choose(&mut self) -> Result<()> {
        let pruner = &self.reader.pruner;
        if pruner.is_empty() {
            self.next = std::mem::take(&mut self.tiles);
            return Ok(());
        }
        let group = self.tiles.len().min(PRUNE_GROUP);
        let group: Vec<TileTask> = self.tiles.drain(..group).collect();
        let numbers: Vec<TileNumber> = group.iter().map(|task| task.tile).collect();
        let kept = pruner.may_hold(&numbers, false)?;
        let examined = &self.reader.metrics.tiles_examined;
        examined.add_matched(kept.iter().filter(|kept| **kept).count());
        examined.add_pruned(kept.iter().filter(|kept| !**kept).count());
        self.next = group.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|it| it.0).collect();
        Ok(())
    }
}
