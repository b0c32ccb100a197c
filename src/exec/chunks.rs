//! [`ChunkReader`]: reads the chunks of one partition, fetching ahead and decoding them.
//!
//! ```text
//!   tasks ──locate──▶ stored chunks ──fetch──▶ payloads ──decode──▶ a tile per variable
//!          (groups)                (read ahead)           (one at a time)
//!
//!   `locator` ─`memory`─▶ `in_flight` ─▶ `OpenChunk` ─release─▶ `workspace`
//!    up to 256 chunks      read ahead     of the caller          memory for the next tiles
//! ```
//!
//! If a filter changes, `locator` and `in_flight` are pruned again before the next chunk is opened. A
//! reader without variables makes no requests: its chunks have tasks and no tiles.
//!
//! CPU work runs where the reader is polled, one chunk at a time. Only fetches that wait run as spawned
//! tasks. Dropping the reader cancels them, except that a local read in progress finishes. Payloads in
//! flight and decoded tiles are accounted to the memory pool.
//!
//! Object stores answer late, and many requests at once. So their chunks are fetched as far ahead as memory
//! allows, in batches whose neighbours share requests. Files need few reads ahead.
//!
//! A compressed chunk is decoded into the memory of an earlier tile if nothing else holds it. Fresh memory would fault in
//! its pages each time.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::chunk_memory::ChunkMemory;
use super::config::GridfusionConfig;
use super::in_flight::{Fetch, InFlight};
use super::locator::Locator;
use super::metrics::ScanMetrics;
use super::pruning::zones::{ReadExtent, worthwhile_zones};
use super::pruning::{DynamicFilters, Priority};
use super::reads::Reads;
use crate::array::{FoundChunks, GridArray, ValueColumn, Workspace};
use crate::format::{Location, Payload, StoredChunk, Zones};
use crate::grid::ChunkTask;
use crate::io::counted;
use crate::plan::{ScanPlan, TaskNumber};
use crate::tile::{Tile, leave_out_absent};

/// The number of chunks to fetch ahead of the one being decoded from files. Sources in memory and mappings
/// never wait.
const READ_AHEAD: usize = 2;
/// The bytes of the chunks of an object store that are fetched together. Half as many take nearly as long, and
/// with twice as many, fewer requests fit into the memory for reading ahead.
const BATCH_BYTES: usize = 2 << 20;

/// A reader of the chunks of one partition.
pub(super) struct ChunkReader {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    /// The numbers of the variables to read; empty if only labels are needed.
    values: Vec<usize>,
    /// Per variable, its zone maps if they are worth reading; `None` until they are first needed.
    zones: Option<Vec<Option<Arc<dyn Zones>>>>,
    /// The chunks to fetch next.
    locator: Locator,
    /// Chunks whose memory is reserved and whose fetch has started.
    in_flight: InFlight,
    /// Memory of the last tiles, which the next ones reuse.
    workspace: Workspace,
    memory: ChunkMemory,
    /// The objects of the chunks so far.
    reads: Reads,
    /// Whether chunks were stored.
    found: FoundChunks,
}

/// A chunk that is fetched and decoded.
pub(super) struct OpenChunk {
    pub(super) task: ChunkTask,
    /// One per variable of the reader.
    tiles: Vec<OpenTile>,
    /// The locations of the payloads.
    locations: Vec<Location>,
    /// The bytes of memory that belong to this chunk, until it is released.
    reserved: usize,
}

/// The decoded elements of one variable of a chunk.
pub(super) struct OpenTile {
    /// The number of the variable.
    value: usize,
    pub(super) tile: Tile,
    /// False if the column cannot hold NULL, or a zone map excludes it; then no pass looks for NULLs.
    pub(super) may_hold_nulls: bool,
}

impl OpenChunk {
    /// Returns the tile of the variable `value`, which must be one that the reader reads.
    pub(super) fn tile(&self, value: usize) -> crate::Result<&OpenTile> {
        let tile = self.tiles.iter().find(|tile| tile.value == value);
        tile.ok_or_else(|| crate::Error::internal("a variable that the scan uses was not read"))
    }
}

impl ChunkReader {
    /// Makes a reader of the variables `values` for `tasks` of the plan. Each of `partitions` readers gets
    /// the same share of the memory for chunks in flight. `reads` has the array, and begins a partition.
    pub(super) fn new(
        reads: Reads,
        plan: Arc<ScanPlan>,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
        partitions: usize,
        values: Vec<usize>,
        consumer: String,
        context: &TaskContext,
    ) -> Self {
        let array = Arc::clone(reads.array());
        let limits =
            GridfusionConfig::from_options(context.session_config().options()).remote.limits();
        let memory = ChunkMemory::new(&array, partitions, limits.bytes, consumer, context);
        Self {
            memory,
            locator: Locator::new(Arc::clone(&array), Arc::clone(&plan), values.clone(), tasks),
            in_flight: InFlight::new(Arc::clone(&array), limits.gap),
            workspace: Workspace::default(),
            zones: None,
            reads,
            found: FoundChunks::default(),
            array,
            plan,
            values,
        }
    }

    /// Skips chunks and rows that `filters` exclude at the time a chunk is read.
    pub(super) fn filtered(mut self, filters: DynamicFilters) -> Self {
        self.locator.filter(filters);
        self
    }

    /// Reads the most promising chunks first if there are filters, which good rows make stricter. `tasks`
    /// must be all tasks of the reader.
    pub(super) fn prioritized(
        mut self,
        priorities: Vec<Priority>,
        tasks: impl IntoIterator<Item = TaskNumber, IntoIter: Send + Sync + 'static>,
    ) -> Self {
        self.locator.prioritize(priorities, tasks.into_iter());
        self
    }

    /// Makes a single cell of a variable of a chunk of which nothing is stored; see [`Tile::is_repeated`].
    pub(super) fn repeating_fill(mut self) -> Self {
        self.workspace = Workspace::repeating_fill();
        self
    }

    /// Returns the next chunk, or `None` at the end. Callers must give each chunk back with
    /// [`release`](Self::release).
    ///
    /// # Errors
    /// If a chunk cannot be located, read or decoded, or if the memory pool refuses even one chunk.
    pub(super) async fn next(&mut self, metrics: &ScanMetrics) -> Result<Option<OpenChunk>> {
        // Zone maps and indexes are read here. Tasks of their own fetch payloads, and count for themselves.
        let (next, counts) = counted(self.next_chunk(metrics)).await;
        metrics.requests.add(&counts);
        next
    }

    async fn next_chunk(&mut self, metrics: &ScanMetrics) -> Result<Option<OpenChunk>> {
        self.locator.prepare().await?;
        self.prune_fetched(metrics)?;
        if self.values.is_empty() {
            let Some(task) = self.locator.next_task(metrics).await? else {
                self.finish().await?;
                return Ok(None);
            };
            metrics.cells_skipped.add((task.cells() - task.rows) as usize);
            return Ok(Some(OpenChunk { task, tiles: vec![], locations: vec![], reserved: 0 }));
        }
        self.start_fetches(metrics).await?;
        let timer = metrics.time_fetch.timer();
        let next = self.in_flight.next(&metrics.requests).await?;
        timer.done();
        let Some((fetch, payloads)) = next else {
            self.memory.finish();
            self.finish().await?;
            return Ok(None);
        };
        if self.locator.has_filters() {
            metrics.chunks_examined.add_matched(1);
        }
        self.open(fetch, payloads, metrics).await.map(Some)
    }

    /// Ends reading: checks that no object has changed meanwhile, and explains why no chunk was found. Callers that stop
    /// before `next` returns `None` must call it.
    ///
    /// # Errors
    /// `Io` if an object was written since it was read; `Corrupt` if the chunks have other names than the metadata sets.
    pub(super) async fn finish(&mut self) -> Result<()> {
        self.found.explain(&self.array, &self.values).await?;
        Ok(self.reads.end().await?)
    }

    /// Decodes the payloads of a chunk.
    async fn open(
        &mut self,
        fetch: Fetch,
        payloads: Vec<Option<Bytes>>,
        metrics: &ScanMetrics,
    ) -> Result<OpenChunk> {
        let Fetch { task, mut stored, reserved, received, .. } = fetch;
        self.found.note_requested(&stored);
        if self.array.objects().are_rewritten() {
            let objects = self.array.objects();
            let object = |(payload, read): (&Payload, &Option<Bytes>)| match read {
                Some(_) => (payload.at.member, Arc::clone(&payload.at.object)),
                None => (payload.at.member, objects.checked_for_absent(&payload.at)),
            };
            self.reads.extend(payloads_of(&stored).zip(&payloads).map(object));
        }
        let payloads = leave_out_absent(&mut stored, payloads);
        self.found.note_found(&stored);
        // This was checked when the fetch began, so only several open chunks may be too many.
        let decoded = self.bytes_decoded(&task, &stored);
        self.memory.reserve(decoded, true)?;
        let reserved = reserved + decoded;
        metrics.chunks_read.add(1);
        metrics.bytes_read.add(received);

        let timer = metrics.time_decode.timer();
        let locations = locations_of(&stored);
        let tiles = self.array.decode(&task, &self.values, &stored, payloads, &mut self.workspace);
        timer.done();
        let tiles = match tiles {
            Ok(tiles) => tiles,
            Err(error) => {
                // A file that is being written looks damaged. If it has changed, that is the error.
                self.array.objects().used(&locations, false)?;
                return Err(error.into());
            }
        };
        metrics.bytes_decoded.add(tiles.iter().map(Tile::len_bytes).sum());
        metrics.cells_skipped.add((task.cells() - task.rows) as usize);

        let mut open = Vec::with_capacity(tiles.len());
        for (at, tile) in tiles.into_iter().enumerate() {
            let may_hold_nulls = self.may_hold_nulls(at, &task).await;
            open.push(OpenTile { value: self.values[at], tile, may_hold_nulls });
        }
        Ok(OpenChunk { task, tiles: open, locations, reserved })
    }

    /// Whether filters may become stricter once operators receive more rows.
    pub(super) fn may_prune_more(&self) -> bool {
        self.locator.may_prune_more()
    }

    /// Takes a chunk back to reuse its memory. Fails if a file of the chunk was written since it was
    /// opened.
    pub(super) fn release(&mut self, chunk: OpenChunk) -> Result<()> {
        self.memory.release(chunk.reserved);
        self.workspace.reclaim(chunk.tiles.into_iter().map(|open| open.tile));
        // Pages of a mapping count as memory of the process. With a memory limit they are given back.
        Ok(self.array.objects().used(&chunk.locations, self.memory.is_limited())?)
    }

    /// Whether the memory pool has a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.memory.is_limited()
    }

    /// Whether the variable at position `at` may hold NULL in this chunk, by its type and zone map.
    async fn may_hold_nulls(&mut self, at: usize, task: &ChunkTask) -> bool {
        let Self { array, plan, values, .. } = self;
        if !array.forms_of(values[at]).any(ValueColumn::is_nullable) {
            return false;
        }
        let zones = match &self.zones {
            Some(zones) => zones,
            None => {
                let chunks = ReadExtent::from_plan(plan);
                let mut zones = Vec::with_capacity(values.len());
                for &value in values.iter() {
                    zones.push(worthwhile_zones(array, value, chunks).await);
                }
                self.zones.insert(zones)
            }
        };
        let zone = zones[at].as_ref().and_then(|zones| zones.zone(task.chunk_number));
        zone.is_none_or(|zone| zone.null_count > 0)
    }

    /// Starts to fetch the next chunks, and more if there is memory for them.
    async fn start_fetches(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let (ahead, batch) = match self.array.objects() {
            objects if objects.is_resident() => (0, 0),
            objects if objects.is_remote() => (usize::MAX, self.memory.batch(BATCH_BYTES)),
            _ => (READ_AHEAD, 0),
        };
        // One batch to open next, and `ahead` more. A batch waits until there is memory for all of it, because small
        // ones would be many requests.
        while self.in_flight.batches() <= ahead
            && (self.in_flight.is_empty() || self.memory.room() >= batch)
        {
            let mut chunks = vec![];
            let mut bytes = 0;
            while chunks.is_empty() || bytes < batch {
                if chunks.is_empty() {
                    self.locator.locate(metrics).await?;
                }
                let first = self.in_flight.is_empty() && chunks.is_empty();
                let Some(fetch) = self.reserve_next(first)? else { break };
                bytes += fetch.reserved;
                chunks.push(fetch);
            }
            if chunks.is_empty() {
                return Ok(());
            }
            self.in_flight.start(chunks);
        }
        Ok(())
    }

    /// Reserves memory for the payloads of the next chunk; `None` if there is none, or no memory. Only the
    /// first may exceed the budget.
    fn reserve_next(&mut self, first: bool) -> Result<Option<Fetch>> {
        let Some((task, stored)) = self.locator.front() else { return Ok(None) };
        let (fetched, decoded) = (self.bytes_fetched(stored), self.bytes_decoded(task, stored));
        if !self.memory.reserve_ahead(fetched, decoded, first)? {
            return Ok(None);
        }
        let next = self.locator.pop();
        Ok(next.map(|(task, stored)| Fetch::new(task, stored, fetched)))
    }

    /// If a filter has changed, drops located and fetched chunks that it now excludes.
    fn prune_fetched(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let Self { in_flight, locator, memory, .. } = self;
        if !locator.refresh() {
            return Ok(());
        }
        memory.release(in_flight.prune(|tasks| locator.prune(tasks, metrics))?);
        locator.prune_located(metrics)
    }

    /// Returns the bytes that the payloads of a chunk take; pages of a mapping do not count.
    fn bytes_fetched(&self, stored: &[StoredChunk]) -> usize {
        if self.array.objects().is_resident() {
            return 0;
        }
        let fetched = payloads_of(stored).map(|payload| payload.stored_len());
        usize::try_from(fetched.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
    }

    /// Returns the bytes that the tiles of a chunk take.
    fn bytes_decoded(&self, task: &ChunkTask, stored: &[StoredChunk]) -> usize {
        let all = self.values.iter().zip(stored);
        let tiles = all.filter(|(_, stored)| !self.workspace.repeats(stored));
        let bytes = tiles.map(|(value, stored)| {
            self.array.bytes_decoded(task, &[*value], std::slice::from_ref(stored))
        });
        usize::try_from(bytes.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
    }
}

fn payloads_of(stored: &[StoredChunk]) -> impl Iterator<Item = &Payload> {
    stored.iter().flat_map(StoredChunk::payloads)
}

fn locations_of(stored: &[StoredChunk]) -> Vec<Location> {
    payloads_of(stored).map(|payload| payload.at.clone()).collect()
}
