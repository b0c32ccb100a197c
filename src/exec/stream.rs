//! The stream behind one partition of a scan.
//!
//! ```text
//!   tasks ──locate──▶ stored chunks ──fetch──▶ payloads ──decode──▶ tile ──blocks──▶ batches
//!          (groups)                (read ahead)           (one at a time)       (small ones joined)
//! ```
//!
//! CPU work runs where the stream is polled, one chunk at a time; only waiting is handed to tasks,
//! which are cancelled when the stream is dropped (a read of a local file that has begun is finished). Payloads in flight and the decoded tile are accounted to
//! the memory pool.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

use super::metrics::ScanMetrics;
use super::to_datafusion;
use crate::format::{Codec, StoredChunk};
use crate::scan::{Assembler, Block, Blocks, ChunkTask, Column, GridArray, ScanPlan, Tile};

/// Chunks whose index rows are looked up at once.
const LOCATE_GROUP: usize = 256;
/// Chunks fetched ahead of the one being decoded, where fetching means waiting.
const READ_AHEAD: usize = 2;
/// Memory for chunks in flight per scan, in bytes, where neither the file nor the pool says more.
const DEFAULT_BUDGET: u64 = 1 << 28;

/// Produces the batches of one partition.
pub(super) struct GridStream {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    columns: Vec<Column>,
    schema: SchemaRef,
    batch_size: u64,
    /// Tasks not yet looked up.
    tasks: Range<u64>,
    located: VecDeque<(ChunkTask, StoredChunk)>,
    in_flight: VecDeque<Fetch>,
    current: Option<OpenChunk>,
    /// Memory of the last tile, for the next one.
    spare: Vec<u8>,
    assembler: Assembler,
    /// Joins batches of small chunks; passes large ones through.
    coalescer: BatchCoalescer,
    /// Rows that may still be produced.
    remaining: u64,
    /// Bytes that chunks in flight may hold, apart from the first.
    budget: u64,
    reservation: MemoryReservation,
    metrics: ScanMetrics,
}

/// A chunk on its way.
struct Fetch {
    task: ChunkTask,
    stored: StoredChunk,
    /// Bytes accounted for it.
    reserved: usize,
    payloads: Payloads,
}

enum Payloads {
    /// In memory or mapped: read when wanted.
    Resident,
    Coming(SpawnedTask<crate::Result<Vec<Bytes>>>),
}

/// The chunk whose blocks are being produced.
struct OpenChunk {
    task: ChunkTask,
    blocks: Blocks,
    /// Absent if no value column is wanted.
    tile: Option<Tile>,
    may_hold_nulls: bool,
    reserved: usize,
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
        let pool = context.memory_pool();
        Self {
            tasks: plan.tasks(partition),
            remaining: plan.limit().unwrap_or(u64::MAX),
            budget: budget(&array, &pool.memory_limit()) / plan.partition_count() as u64,
            reservation: MemoryConsumer::new(format!("GridScanExec[{partition}]")).register(pool),
            assembler: Assembler::new(&array),
            batch_size: batch_size as u64,
            located: VecDeque::new(),
            in_flight: VecDeque::new(),
            current: None,
            spare: Vec::new(),
            array,
            plan,
            columns,
            schema,
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
        let Some(mut open) = self.current.take() else { return Ok(None) };
        let Some(block) = open.blocks.next() else {
            self.reservation.shrink(open.reserved);
            // By now most consumers have let go of the last batch, and the next tile fits here.
            self.spare = open.tile.map(Tile::into_spare).unwrap_or_default();
            return Ok(None);
        };
        let elapsed = self.metrics.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let batch = self.batch(&open, &block)?;
        self.current = Some(open);
        Ok(Some(batch))
    }

    fn batch(&mut self, open: &OpenChunk, block: &Block) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let array = match column {
                Column::Value => self.values(open, block),
                _ => self.assembler.dimension(*column, &open.task, block),
            };
            arrays.push(array.map_err(to_datafusion)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(block.rows() as usize));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    fn values(&self, open: &OpenChunk, block: &Block) -> crate::Result<ArrayRef> {
        let tile = open
            .tile
            .as_ref()
            .ok_or_else(|| crate::Error::internal("a value of a chunk that was not read"))?;
        let cells = tile.gather(&block.cells(&open.task))?;
        self.array.value().decode(cells, open.may_hold_nulls)
    }

    /// Makes the next chunk current; false if there is none.
    async fn open_next_chunk(&mut self) -> Result<bool> {
        if !self.columns.contains(&Column::Value) {
            let Some(task) = self.tasks.next().map(|task| self.plan.task(task)) else {
                return Ok(false);
            };
            self.open(task, None, false, 0);
            return Ok(true);
        }
        self.start_fetches().await?;
        let Some(fetch) = self.in_flight.pop_front() else { return Ok(false) };
        let payloads = self.payloads(&fetch.stored, fetch.payloads).await?;
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        self.metrics.chunks_read.add(1);
        self.metrics.bytes_read.add(bytes);

        let timer = self.metrics.time_decode.timer();
        let tile = self
            .array
            .decode(&fetch.task, &fetch.stored, payloads, std::mem::take(&mut self.spare))
            .map_err(to_datafusion)?;
        timer.done();
        let tile_bytes = fetch.task.cells() * self.array.value().element().size();
        self.metrics.bytes_decoded.add(tile_bytes as usize);

        let may_hold_nulls =
            self.array.value().is_nullable() && !self.is_known_without_nulls(&fetch.task).await;
        self.open(fetch.task, Some(tile), may_hold_nulls, fetch.reserved);
        Ok(true)
    }

    fn open(&mut self, task: ChunkTask, tile: Option<Tile>, may_hold_nulls: bool, reserved: usize) {
        self.metrics.cells_skipped.add((task.cells() - task.rows) as usize);
        let blocks = Blocks::new(&task, self.batch_size);
        self.current = Some(OpenChunk { task, blocks, tile, may_hold_nulls, reserved });
    }

    /// Whether a zone map says that the chunk has no NULL.
    async fn is_known_without_nulls(&self, task: &ChunkTask) -> bool {
        let bytes_to_read =
            self.plan.rows(None).saturating_mul(self.array.value().element().size());
        let maps = self.array.zone_maps(bytes_to_read).await;
        maps.and_then(|maps| maps.null_count(task.number)) == Some(0)
    }

    /// Starts fetching the next chunk, and some after it if there is memory for them.
    async fn start_fetches(&mut self) -> Result<()> {
        let ahead = if self.array.source().is_resident() { 0 } else { READ_AHEAD };
        while self.in_flight.len() <= ahead {
            if self.located.is_empty() {
                self.locate_group().await?;
            }
            let Some((_, stored)) = self.located.front() else { return Ok(()) };
            let needed = self.bytes_held(stored);
            let first = self.in_flight.is_empty();
            if !first && self.reservation.size().saturating_add(needed) as u64 > self.budget {
                return Ok(());
            }
            match self.reservation.try_grow(needed) {
                Ok(()) => {}
                Err(_) if !first => return Ok(()),
                Err(error) => return Err(error),
            }
            let Some((task, stored)) = self.located.pop_front() else { return Ok(()) };
            let payloads = self.fetch(&stored);
            self.in_flight.push_back(Fetch { task, stored, reserved: needed, payloads });
        }
        Ok(())
    }

    async fn locate_group(&mut self) -> Result<()> {
        let timer = self.metrics.time_locate.timer();
        let group: Vec<ChunkTask> =
            self.tasks.by_ref().take(LOCATE_GROUP).map(|task| self.plan.task(task)).collect();
        if !group.is_empty() {
            let stored = self.array.locate(&group).await.map_err(to_datafusion)?;
            self.located = group.into_iter().zip(stored).collect();
        }
        timer.done();
        Ok(())
    }

    /// Memory of ours that a chunk takes from the start of its fetch until its last batch.
    fn bytes_held(&self, stored: &StoredChunk) -> usize {
        let held = stored.layers.iter().map(|layer| {
            let payload = if self.array.source().is_resident() {
                0
            } else {
                layer.payload.end - layer.payload.start
            };
            let tile = if layer.codec == Codec::Raw { 0 } else { layer.raw_len };
            payload.saturating_add(tile)
        });
        usize::try_from(held.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
    }

    fn fetch(&self, stored: &StoredChunk) -> Payloads {
        let source = Arc::clone(self.array.source());
        if source.is_resident() {
            return Payloads::Resident;
        }
        let ranges = payload_ranges(stored);
        Payloads::Coming(SpawnedTask::spawn(async move { source.read(&ranges).await }))
    }

    async fn payloads(&self, stored: &StoredChunk, payloads: Payloads) -> Result<Vec<Bytes>> {
        let timer = self.metrics.time_fetch.timer();
        let read = match payloads {
            Payloads::Resident => self.array.source().read(&payload_ranges(stored)).await,
            Payloads::Coming(task) => task
                .join()
                .await
                .map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?,
        };
        timer.done();
        read.map_err(to_datafusion)
    }
}

fn payload_ranges(stored: &StoredChunk) -> Vec<Range<u64>> {
    stored.layers.iter().map(|layer| layer.payload.clone()).collect()
}

/// Bytes for chunks in flight: what the file's writer suggests, a share of a limited pool, or the
/// default.
fn budget(array: &GridArray, pool: &MemoryLimit) -> u64 {
    /// A quarter, the format's default.
    const DEFAULT_BASIS_POINTS: u64 = 2_500;
    let suggested = array.memory_budget();
    if suggested.bytes > 0 {
        return suggested.bytes.into();
    }
    let share = match suggested.basis_points {
        0 => DEFAULT_BASIS_POINTS,
        points => u64::from(points).min(10_000),
    };
    match pool {
        MemoryLimit::Finite(limit) => (*limit as u64 / 10_000).saturating_mul(share),
        _ => DEFAULT_BUDGET,
    }
}
