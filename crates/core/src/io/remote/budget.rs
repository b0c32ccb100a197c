//! [`Budget`]: requests and bytes in flight, in the order in which they were wanted.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::limits::RemoteLimits;

/// Bytes are admitted in units of this many, so that they fit the numbers of a semaphore.
const UNIT: u64 = 1 << 10;

/// The requests and bytes that may be in flight. Who waits first is served first.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) limits: RemoteLimits,
    requests: Semaphore,
    units: Semaphore,
    most_units: u32,
}

/// A request that is in flight until this is dropped.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    _units: Option<SemaphorePermit<'a>>,
    _request: Option<SemaphorePermit<'a>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(RemoteLimits::default())
    }
}

impl Budget {
    pub(super) fn new(limits: RemoteLimits) -> Self {
        let most_units = u32::try_from(limits.bytes as u64 / UNIT).unwrap_or(u32::MAX).max(1);
        let requests = Semaphore::new(limits.requests.clamp(1, Semaphore::MAX_PERMITS));
        Self { limits, requests, units: Semaphore::new(most_units as usize), most_units }
    }

    /// Waits until a request for this many bytes may start.
    pub(super) async fn admit(&self, bytes: u64) -> Admission<'_> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.most_units);
        // Neither semaphore is ever closed, so both waits end with a permit.
        let units = self.units.acquire_many(units).await.ok();
        Admission { _units: units, _request: self.requests.acquire().await.ok() }
    }
}
