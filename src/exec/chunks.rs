//! The chunks of one partition, one after the other, fetched ahead and decoded.
//!
//! ```text
//!   tasks ──locate──▶ stored chunks ──fetch──▶ payloads ──decode──▶ tile
//!          (groups)                (read ahead)           (one at a time)
//! ```
//!
//! CPU work runs where the reader is polled, one chunk at a time; only waiting is handed to tasks,
//! which are cancelled when the reader is dropped (a read of a local file that has begun is finished).
//! Payloads in flight and the decoded tile are accounted to the memory pool.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

use super::metrics::ScanMetrics;
use super::to_datafusion;
use crate::format::tet::ZoneMaps;
use crate::format::{Codec, StoredChunk};
use crate::scan::{ChunkTask, GridArray, ScanPlan, Tile};

/// Chunks whose index rows are looked up at once.
const LOCATE_GROUP: usize = 256;
/// Chunks fetched ahead of the one being decoded, where fetching means waiting.
const READ_AHEAD: usize = 2;
/// Memory for chunks in flight per scan, in bytes, where neither the file nor the pool says more.
const DEFAULT_BUDGET: u64 = 1 << 28;

/// What of the chunks is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// Nothing but their labels.
    Skip,
    /// Their cells.
    Read,
}

/// Reads the chunks of one partition.
pub(super) struct ChunkReader {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    payload: Payload,
    /// Tasks not yet looked up, by number.
    tasks: Box<dyn Iterator<Item = u64> + Send + Sync>,
    located: VecDeque<(ChunkTask, StoredChunk)>,
    in_flight: VecDeque<Fetch>,
    /// Memory of the last tile, for the next one.
    spare: Vec<u8>,
    /// Bytes that chunks in flight may hold, apart from the first.
    budget: u64,
    reservation: MemoryReservation,
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

/// A chunk that has arrived.
pub(super) struct OpenChunk {
    pub(super) task: ChunkTask,
    /// Absent if no cells are wanted.
    pub(super) tile: Option<Tile>,
    pub(super) may_hold_nulls: bool,
    reserved: usize,
}

impl ChunkReader {
    /// Reads the chunks of `tasks`, of the plan's; `partitions` share the memory for chunks in flight.
    pub(super) fn new(
        array: Arc<GridArray>,
        plan: Arc<ScanPlan>,
        tasks: impl Iterator<Item = u64> + Send + Sync + 'static,
        partitions: usize,
        payload: Payload,
        consumer: String,
        context: &TaskContext,
    ) -> Self {
        let pool = context.memory_pool();
        Self {
            tasks: Box::new(tasks),
            budget: budget(&array, &pool.memory_limit()) / partitions.max(1) as u64,
            reservation: MemoryConsumer::new(consumer).register(pool),
            located: VecDeque::new(),
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            array,
            plan,
            payload,
        }
    }

    /// The next chunk, or `None` at the end.
    pub(super) async fn next(&mut self, metrics: &ScanMetrics) -> Result<Option<OpenChunk>> {
        if self.payload == Payload::Skip {
            let task = self.tasks.next().map(|task| self.plan.task(task));
            return Ok(task.map(|task| {
                metrics.cells_skipped.add((task.cells() - task.rows) as usize);
                OpenChunk { task, tile: None, may_hold_nulls: false, reserved: 0 }
            }));
        }
        self.start_fetches(metrics).await?;
        let Some(fetch) = self.in_flight.pop_front() else { return Ok(None) };
        let payloads = self.payloads(&fetch.stored, fetch.payloads, metrics).await?;
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        metrics.chunks_read.add(1);
        metrics.bytes_read.add(bytes);

        let timer = metrics.time_decode.timer();
        let tile = self
            .array
            .decode(&fetch.task, &fetch.stored, payloads, std::mem::take(&mut self.spare))
            .map_err(to_datafusion)?;
        timer.done();
        let tile_bytes = fetch.task.cells() * self.array.value().element().size();
        metrics.bytes_decoded.add(tile_bytes as usize);
        metrics.cells_skipped.add((fetch.task.cells() - fetch.task.rows) as usize);

        let may_hold_nulls =
            self.array.value().is_nullable() && self.null_count(&fetch.task).await != Some(0);
        let Fetch { task, reserved, .. } = fetch;
        Ok(Some(OpenChunk { task, tile: Some(tile), may_hold_nulls, reserved }))
    }

    /// Takes a chunk back, and its memory for the next one.
    pub(super) fn release(&mut self, chunk: OpenChunk) {
        self.reservation.shrink(chunk.reserved);
        self.spare = chunk.tile.map(Tile::into_spare).unwrap_or_default();
    }

    /// How many NULLs a zone map says that the chunk has.
    async fn null_count(&self, task: &ChunkTask) -> Option<u64> {
        zone_maps(&self.array, &self.plan).await?.null_count(task.number)
    }

    /// Starts fetching the next chunk, and some after it if there is memory for them.
    async fn start_fetches(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let ahead = if self.array.source().is_resident() { 0 } else { READ_AHEAD };
        while self.in_flight.len() <= ahead {
            if self.located.is_empty() {
                self.locate_group(metrics).await?;
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

    async fn locate_group(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let timer = metrics.time_locate.timer();
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

    async fn payloads(
        &self,
        stored: &StoredChunk,
        payloads: Payloads,
        metrics: &ScanMetrics,
    ) -> Result<Vec<Bytes>> {
        let timer = metrics.time_fetch.timer();
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

/// The zone maps of the array, if reading them is worthwhile for `plan`.
pub(super) async fn zone_maps<'a>(array: &'a GridArray, plan: &ScanPlan) -> Option<&'a ZoneMaps> {
    let bytes_to_read = plan.rows(None).saturating_mul(array.value().element().size());
    array.zone_maps(bytes_to_read).await
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
