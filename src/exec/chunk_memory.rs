//! [`ChunkMemory`]: the memory of the chunks that one partition fetches and holds.
//!
//! ```text
//!   pool's limit ─▶ budget of a scan ─▶ share of a partition   chunks in flight and open: `held`
//!                                          └─ `ahead`: what may be fetched ahead from object stores
//! ```
//!
//! Memory of earlier chunks stays reserved for later ones, because operators that hold rows would take it in
//! between.

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};

use crate::array::GridArray;

/// Memory for chunks in flight per scan, in bytes, if neither the file nor the pool sets it.
const DEFAULT_BUDGET: u64 = 1 << 28;

/// The memory of the chunks of one partition.
pub(super) struct ChunkMemory {
    /// Bytes that chunks may hold; a single chunk may exceed them.
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

impl ChunkMemory {
    /// Divides the memory for chunks, and the bytes `ahead`, among so many partitions.
    pub(super) fn new(
        array: &GridArray,
        partitions: usize,
        ahead: usize,
        consumer: String,
        context: &TaskContext,
    ) -> Self {
        let pool = context.memory_pool();
        let partitions = partitions.max(1) as u64;
        Self {
            budget: budget(array, &pool.memory_limit()) / partitions,
            ahead: ahead as u64 / partitions,
            is_limited: matches!(pool.memory_limit(), MemoryLimit::Finite(_)),
            held: 0,
            reservation: MemoryConsumer::new(consumer).register(pool),
        }
    }

    /// Whether the memory pool has a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// The bytes that payloads of one more chunk may take, and of all that are fetched ahead.
    fn most(&self) -> u64 {
        self.budget.min(self.ahead)
    }

    /// The bytes that more chunks in flight may hold.
    pub(super) fn room(&self) -> usize {
        (self.most() as usize).saturating_sub(self.held)
    }

    /// Returns `wanted` bytes for a batch of chunks: fewer if memory for a few batches is not there.
    pub(super) fn batch(&self, wanted: usize) -> usize {
        wanted.min(self.most() as usize / 4)
    }

    /// Reserves memory for one more chunk.
    ///
    /// A scan needs one chunk to make progress, and cannot spill it. So the `first` chunk takes the scan's
    /// share even from an exhausted pool: other operators notice and spill.
    pub(super) fn reserve(&mut self, bytes: usize, first: bool) -> Result<()> {
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

    /// Reserves memory for a chunk that is to be fetched, with as much as decoding it will need. Returns false if
    /// there is none; only the `first` may exceed the budget, and fails instead.
    pub(super) fn reserve_ahead(
        &mut self,
        fetched: usize,
        decoded: usize,
        first: bool,
    ) -> Result<bool> {
        let held = self.held.saturating_add(fetched);
        let is_within =
            held.saturating_add(decoded) as u64 <= self.budget && held as u64 <= self.ahead;
        if !first && !is_within {
            return Ok(false);
        }
        match self.reserve(fetched.saturating_add(decoded), first) {
            Ok(()) => self.held -= decoded, // until the chunk is opened
            Err(_) if !first => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Gives back the memory of chunks, for later ones.
    pub(super) fn release(&mut self, bytes: usize) {
        self.held -= bytes;
    }

    /// At the end, memory that was kept for later chunks goes back to the pool.
    pub(super) fn finish(&mut self) {
        self.reservation.shrink(self.reservation.size() - self.held);
    }
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
