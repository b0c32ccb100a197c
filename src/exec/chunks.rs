//! [`ChunkReader`]: reads the chunks of one partition, fetching ahead and decoding them.
//!
//! ```text
//!   tasks ──locate──▶ stored chunks ──fetch──▶ payloads ──decode──▶ a tile per variable
//!          (groups)                (read ahead)           (one at a time)
//!
//!   tasks ─prune─▶ `located` ─reserve─▶ `in_flight` ─▶ `OpenChunk` ─release─▶ `workspace`
//!                  up to 256            read ahead      of the caller          memory for the next tiles
//! ```
//!
//! If a filter changes, `located` and `in_flight` are pruned again before the next chunk is opened. A
//! reader without variables makes no requests: its chunks have tasks and no tiles.
//!
//! CPU work runs where the reader is polled, one chunk at a time. Only fetches that wait run as spawned
//! tasks. Dropping the reader cancels them, except that a local read in progress finishes. Payloads in
//! flight and decoded tiles are accounted to the memory pool.
//!
//! Object stores answer late, and many requests at once. So their chunks are fetched as far ahead as memory
//! allows, in batches whose neighbours share requests. Files need few reads ahead.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

use super::config::GridfusionConfig;
use super::in_flight::{Fetch, InFlight};
use super::metrics::ScanMetrics;
use super::pruning::priority::{Priority, best_first};
use super::pruning::zones::{ReadExtent, worthwhile_zones};
use super::pruning::{DynamicFilters, RuntimePruner};
use crate::array::{GridArray, Workspace};
use crate::format::{Location, Payload, StoredChunk, Zones};
use crate::grid::ChunkTask;
use crate::io::counted;
use crate::plan::{ScanPlan, TaskNumber};
use crate::tile::{Tile, leave_out_absent};

/// The number of chunks to locate at once, and to check against filters at once.
const LOCATE_GROUP: usize = 256;
/// The number of chunks to fetch ahead of the one being decoded from files. Sources in memory and mappings
/// never wait.
const READ_AHEAD: usize = 2;
/// The bytes of the chunks of an object store that are fetched together. Half as many take nearly as long, and
/// with twice as many, fewer requests fit into the memory for reading ahead.
const BATCH_BYTES: usize = 2 << 20;
/// Memory for chunks in flight per scan, in bytes, if neither the file nor the pool sets it.
const DEFAULT_BUDGET: u64 = 1 << 28;

/// An iterator over tasks of a plan.
type TaskNumbers = Box<dyn Iterator<Item = TaskNumber> + Send + Sync>;

/// A reader of the chunks of one partition.
pub(super) struct ChunkReader {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    /// The numbers of the variables to read; empty if only labels are needed.
    values: Vec<usize>,
    /// Per variable, its zone maps if they are worth reading; `None` until they are first needed.
    zones: Option<Vec<Option<Arc<dyn Zones>>>>,
    /// The tasks whose chunks have not been located yet.
    tasks: TaskNumbers,
    filters: DynamicFilters,
    /// Applies the filters to chunks; made before the first chunk.
    pruner: Option<RuntimePruner>,
    /// Sort keys of these tasks, so that the filters become strict early; used before the first chunk.
    priorities: Option<(Vec<Priority>, TaskNumbers)>,
    /// Chunks that are located and not yet requested, with one `StoredChunk` per variable.
    located: VecDeque<(ChunkTask, Vec<StoredChunk>)>,
    /// Chunks whose memory is reserved and whose fetch has started.
    in_flight: InFlight,
    /// Memory of the last tiles, which the next ones reuse.
    workspace: Workspace,
    /// Bytes that chunks in flight may hold; a single chunk may exceed them.
    budget: u64,
    /// Bytes of payloads to fetch ahead from object stores.
    ahead: u64,
    /// Whether the memory pool has a limit.
    is_limited: bool,
    /// Bytes of the chunks that are in flight or open.
    held: usize,
    /// The memory reserved in the pool: at least `held` bytes.
    reservation: MemoryReservation,
}

/// A chunk that is fetched and decoded.
pub(super) struct OpenChunk {
    pub(super) task: ChunkTask,
    /// One per variable of the reader.
    tiles: Vec<OpenTile>,
    /// The locations of the payloads.
    locations: Vec<Location>,
    /// The bytes of `ChunkReader::held` that belong to this chunk, until it is released.
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
    /// the same share of the memory for chunks in flight.
    pub(super) fn new(
        array: Arc<GridArray>,
        plan: Arc<ScanPlan>,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
        partitions: usize,
        values: Vec<usize>,
        consumer: String,
        context: &TaskContext,
    ) -> Self {
        let pool = context.memory_pool();
        let limits = GridfusionConfig::of(context.session_config().options()).remote.limits();
        let partitions = partitions.max(1) as u64;
        Self {
            tasks: Box::new(tasks),
            filters: DynamicFilters::default(),
            pruner: None,
            priorities: None,
            budget: budget(&array, &pool.memory_limit()) / partitions,
            ahead: limits.bytes as u64 / partitions,
            is_limited: matches!(pool.memory_limit(), MemoryLimit::Finite(_)),
            held: 0,
            reservation: MemoryConsumer::new(consumer).register(pool),
            located: VecDeque::new(),
            in_flight: InFlight::new(Arc::clone(&array), limits.gap),
            workspace: Workspace::default(),
            zones: None,
            array,
            plan,
            values,
        }
    }

    /// Skips chunks and rows that `filters` exclude at the time a chunk is read.
    pub(super) fn filtered(mut self, filters: DynamicFilters) -> Self {
        self.filters = filters;
        self
    }

    /// Reads the most promising chunks first if there are filters, which good rows make stricter. `tasks`
    /// must be all tasks of the reader.
    pub(super) fn prioritized(
        mut self,
        priorities: Vec<Priority>,
        tasks: impl IntoIterator<Item = TaskNumber, IntoIter: Send + Sync + 'static>,
    ) -> Self {
        let tasks = (!priorities.is_empty()).then(|| Box::new(tasks.into_iter()) as _);
        self.priorities = tasks.map(|tasks| (priorities, tasks));
        self
    }

    /// Before the first chunk, makes the pruner and sorts the tasks; both may read zone maps.
    async fn prepare(&mut self) -> Result<()> {
        if self.filters.is_empty() {
            return Ok(());
        }
        // Taken, so that the second call returns above.
        let filters = std::mem::take(&mut self.filters);
        self.pruner = Some(RuntimePruner::new(&self.array, &self.plan, filters).await?);
        if let Some((priorities, tasks)) = self.priorities.take() {
            let tasks = best_first(&priorities, &self.array, &self.plan, tasks.collect()).await?;
            self.tasks = Box::new(tasks.into_iter());
        }
        Ok(())
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
        self.prepare().await?;
        self.prune_fetched(metrics)?;
        if self.values.is_empty() {
            return Ok(self.next_task(metrics).await?.map(|task| {
                metrics.cells_skipped.add((task.cells() - task.rows) as usize);
                OpenChunk { task, tiles: vec![], locations: vec![], reserved: 0 }
            }));
        }
        self.start_fetches(metrics).await?;
        let timer = metrics.time_fetch.timer();
        let next = self.in_flight.next(&metrics.requests).await?;
        timer.done();
        let Some((fetch, payloads)) = next else {
            // At the end, memory that was kept for later chunks goes back to the pool.
            self.reservation.shrink(self.reservation.size() - self.held);
            return Ok(None);
        };
        if self.pruner.is_some() {
            metrics.chunks_examined.add_matched(1);
        }
        self.open(fetch, payloads, metrics).await.map(Some)
    }

    /// Decodes the payloads of a chunk.
    async fn open(
        &mut self,
        fetch: Fetch,
        payloads: Vec<Option<Bytes>>,
        metrics: &ScanMetrics,
    ) -> Result<OpenChunk> {
        let left_out = fetch.left_out();
        let Fetch { task, mut stored, reserved, .. } = fetch;
        // This was checked when the fetch began, so only several open chunks may be too many.
        let decoded = self.bytes_decoded(&task, &stored);
        self.reserve(decoded, true)?;
        let reserved = reserved + decoded;
        let payloads = leave_out_absent(&mut stored, payloads);
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        metrics.chunks_read.add(1);
        metrics.bytes_read.add(bytes - left_out);

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
        self.pruner.as_ref().is_some_and(RuntimePruner::may_change)
    }

    /// Takes a chunk back to reuse its memory. Fails if a file of the chunk was written since it was
    /// opened.
    pub(super) fn release(&mut self, chunk: OpenChunk) -> Result<()> {
        self.held -= chunk.reserved;
        self.workspace.reclaim(chunk.tiles.into_iter().map(|open| open.tile));
        // Pages of a mapping count as memory of the process. With a memory limit they are given back.
        Ok(self.array.objects().used(&chunk.locations, self.is_limited)?)
    }

    /// Whether the memory pool has a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Reserves memory for one more chunk. Memory of earlier chunks stays reserved for later ones, because
    /// operators that hold rows would take it in between.
    ///
    /// A scan needs one chunk to make progress, and cannot spill it. So the `first` chunk takes the scan's
    /// share even from an exhausted pool: other operators notice and spill.
    fn reserve(&mut self, bytes: usize, first: bool) -> Result<()> {
        // `held` is what chunks need now; the reservation may still be larger from earlier ones.
        let held = self.held.saturating_add(bytes);
        let more = held.saturating_sub(self.reservation.size());
        match self.reservation.try_grow(more) {
            Ok(()) => {}
            Err(_) if first && held as u64 <= self.budget => self.reservation.grow(more),
            Err(error) => return Err(error),
        }
        self.held = held;
        Ok(())
    }

    /// Whether the variable at position `at` may hold NULL in this chunk, by its type and zone map.
    async fn may_hold_nulls(&mut self, at: usize, task: &ChunkTask) -> bool {
        let Self { array, plan, values, .. } = self;
        if !array.value(values[at]).is_nullable() {
            return false;
        }
        let zones = match &self.zones {
            Some(zones) => zones,
            None => {
                let chunks = ReadExtent::of_plan(plan);
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
            objects if objects.is_remote() => (usize::MAX, self.batch_bytes()),
            _ => (READ_AHEAD, 0),
        };
        // One batch to open next, and `ahead` more. A batch waits until there is memory for all of it, because small
        // ones would be many requests.
        while self.in_flight.batches() <= ahead
            && (self.in_flight.is_empty() || self.room() >= batch)
        {
            let mut chunks = vec![];
            let mut bytes = 0;
            while chunks.is_empty() || bytes < batch {
                if self.located.is_empty() && chunks.is_empty() {
                    self.locate_group(metrics).await?;
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

    /// The bytes that more chunks in flight may hold.
    fn room(&self) -> usize {
        (self.budget.min(self.ahead) as usize).saturating_sub(self.held)
    }

    /// The bytes of chunks to fetch together: fewer if memory for a few batches is not there.
    fn batch_bytes(&self) -> usize {
        BATCH_BYTES.min(self.budget.min(self.ahead) as usize / 4)
    }

    /// Reserves memory for the payloads of the next chunk; `None` if there is none, or no memory. Only the
    /// first may exceed the budget.
    fn reserve_next(&mut self, first: bool) -> Result<Option<Fetch>> {
        let Some((task, stored)) = self.located.front() else { return Ok(None) };
        let (fetched, decoded) = (self.bytes_fetched(stored), self.bytes_decoded(task, stored));
        let held = self.held.saturating_add(fetched);
        // Decoding the chunk needs memory too, once it is opened.
        let is_within =
            held.saturating_add(decoded) as u64 <= self.budget && held as u64 <= self.ahead;
        if !first && !is_within {
            return Ok(None);
        }
        match self.reserve(fetched.saturating_add(decoded), first) {
            Ok(()) => self.held -= decoded,
            Err(_) if !first => return Ok(None),
            Err(error) => return Err(error),
        }
        let next = self.located.pop_front();
        Ok(next.map(|(task, stored)| Fetch::new(task, stored, fetched)))
    }

    /// Locates the next chunks that filters keep; none at the end.
    async fn locate_group(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let timer = metrics.time_locate.timer();
        let group = self.next_group(metrics).await?;
        if !group.is_empty() {
            let stored = self.array.locate(&group, &self.values).await?;
            self.located = group.into_iter().zip(stored).collect();
        }
        timer.done();
        Ok(())
    }

    /// Returns the next task that filters keep, if only labels are needed.
    async fn next_task(&mut self, metrics: &ScanMetrics) -> Result<Option<ChunkTask>> {
        if self.pruner.is_none() {
            return Ok(self.tasks.next().map(|task| self.plan.task(task)));
        }
        if self.located.is_empty() {
            let group = self.next_group(metrics).await?;
            self.located = group.into_iter().map(|task| (task, vec![])).collect();
        }
        let next = self.located.pop_front();
        metrics.chunks_examined.add_matched(usize::from(next.is_some()));
        Ok(next.map(|(task, _)| task))
    }

    /// Returns the tasks that filters keep of the next group with any; an empty vector at the end.
    async fn next_group(&mut self, metrics: &ScanMetrics) -> Result<Vec<ChunkTask>> {
        loop {
            let group: Vec<ChunkTask> =
                self.tasks.by_ref().take(LOCATE_GROUP).map(|task| self.plan.task(task)).collect();
            if group.is_empty() {
                return Ok(group);
            }
            let left: Vec<ChunkTask> = self.prune(group, metrics)?.into_iter().flatten().collect();
            if !left.is_empty() {
                return Ok(left);
            }
            // The whole group was pruned. A query that prunes thousands of groups must not block its
            // thread.
            tokio::task::yield_now().await;
        }
    }

    /// Returns each task, restricted by the current filters; `None` if it is pruned.
    fn prune(
        &mut self,
        tasks: Vec<ChunkTask>,
        metrics: &ScanMetrics,
    ) -> Result<Vec<Option<ChunkTask>>> {
        let Some(pruner) = &mut self.pruner else {
            return Ok(tasks.into_iter().map(Some).collect());
        };
        restrict(pruner, tasks, metrics)
    }

    /// If a filter has changed, drops located and fetched chunks that it now excludes.
    fn prune_fetched(&mut self, metrics: &ScanMetrics) -> Result<()> {
        if !self.pruner.as_mut().is_some_and(RuntimePruner::refresh) {
            return Ok(());
        }
        let Self { in_flight, pruner, .. } = self;
        if let Some(pruner) = pruner {
            self.held -= in_flight.prune(|tasks| restrict(pruner, tasks, metrics))?;
        }
        let located: Vec<ChunkTask> = self.located.iter().map(|(task, _)| task.clone()).collect();
        let left = self.prune(located, metrics)?;
        let stored = std::mem::take(&mut self.located).into_iter().map(|(_, stored)| stored);
        let located =
            left.into_iter().zip(stored).filter_map(|(task, stored)| Some((task?, stored)));
        self.located = located.collect();
        Ok(())
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
        let decoded = self.array.bytes_decoded(task, &self.values, stored);
        usize::try_from(decoded).unwrap_or(usize::MAX)
    }
}

/// Returns each task, restricted by the current filters; `None` if it is pruned.
fn restrict(
    pruner: &mut RuntimePruner,
    tasks: Vec<ChunkTask>,
    metrics: &ScanMetrics,
) -> Result<Vec<Option<ChunkTask>>> {
    let left = pruner.prune(tasks)?;
    metrics.chunks_examined.add_pruned(left.iter().filter(|task| task.is_none()).count());
    Ok(left)
}

fn payloads_of(stored: &[StoredChunk]) -> impl Iterator<Item = &Payload> {
    stored.iter().flat_map(|chunk| &chunk.layers).flat_map(|layer| layer.payloads())
}

fn locations_of(stored: &[StoredChunk]) -> Vec<Location> {
    payloads_of(stored).map(|payload| payload.at.clone()).collect()
}

/// Returns the bytes for chunks in flight. A limited pool gives a quarter, and otherwise the default applies. The
/// budget that a file suggests may be smaller. It is never larger, because the first chunk of a scan takes
/// memory up to the budget even from an exhausted pool.
pub(super) fn budget(array: &GridArray, pool: &MemoryLimit) -> u64 {
    /// A quarter, the format's default.
    const DEFAULT_BASIS_POINTS: u64 = 2_500;
    let suggested = array.memory_budget();
    let share = match suggested.basis_points {
        0 => DEFAULT_BASIS_POINTS,
        points => u64::from(points).min(DEFAULT_BASIS_POINTS),
    };
    let most = match pool {
        MemoryLimit::Finite(limit) => (*limit as u64 / 10_000).saturating_mul(share),
        _ => DEFAULT_BUDGET,
    };
    if suggested.bytes > 0 { most.min(suggested.bytes.into()) } else { most }
}
