//! [`PeakPool`]: a memory pool with a limit, which records the most bytes that were reserved.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

/// A pool that records the peak of another one.
#[derive(Debug)]
pub(crate) struct PeakPool {
    inner: Arc<dyn MemoryPool>,
    peak: AtomicUsize,
}

impl PeakPool {
    /// Makes a [`GreedyMemoryPool`] of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self::with_inner(Arc::new(GreedyMemoryPool::new(bytes)))
    }

    /// Records the peak of this pool.
    pub(crate) fn with_inner(inner: Arc<dyn MemoryPool>) -> Self {
        Self { inner, peak: AtomicUsize::new(0) }
    }

    /// Returns the most bytes that were reserved at a time.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn record(&self) {
        self.peak.fetch_max(self.inner.reserved(), Ordering::Relaxed);
    }
}

impl fmt::Display for PeakPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl MemoryPool for PeakPool {
    fn name(&self) -> &str {
        "peak"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.inner.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.inner.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
        self.record();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.inner.try_grow(reservation, additional)?;
        self.record();
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}
