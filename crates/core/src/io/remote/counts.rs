//! [`RequestCounts`]: requests and bytes, counted for the session and for the operation that waits for them.
//!
//! Reads pass through formats that know nothing of requests. So an operation runs its reads in
//! [`counted`], and each request below it adds to the counts of that task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Numbers of requests to object stores, and of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Requests, also those that were tried again.
    pub requests: u64,
    /// Requests that were tried again after a fault.
    pub retries: u64,
    /// Bytes of objects that arrived.
    pub bytes_fetched: u64,
    /// Bytes that arrived only because they lie between wanted ones.
    pub bytes_wasted: u64,
    /// Bytes that needed no request, because an earlier one had fetched them.
    pub bytes_cached: u64,
    /// The time of all requests together. Requests in flight at the same time count each.
    pub time: Duration,
}

impl RequestCounts {
    /// Returns the counts since `earlier` counts of the same session.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            retries: self.retries.saturating_sub(earlier.retries),
            bytes_fetched: self.bytes_fetched.saturating_sub(earlier.bytes_fetched),
            bytes_wasted: self.bytes_wasted.saturating_sub(earlier.bytes_wasted),
            bytes_cached: self.bytes_cached.saturating_sub(earlier.bytes_cached),
            time: self.time.saturating_sub(earlier.time),
        }
    }
}

/// Counts that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts([AtomicU64; 6]);

impl SharedCounts {
    /// Adds to these counts.
    pub(super) fn add(&self, more: &RequestCounts) {
        let RequestCounts { requests, retries, bytes_fetched, bytes_wasted, bytes_cached, time } =
            *more;
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let all = [requests, retries, bytes_fetched, bytes_wasted, bytes_cached, nanos];
        for (count, more) in self.0.iter().zip(all) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Returns the counts so far.
    pub(super) fn get(&self) -> RequestCounts {
        let [requests, retries, bytes_fetched, bytes_wasted, bytes_cached, nanos] =
            self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        let time = Duration::from_nanos(nanos);
        RequestCounts { requests, retries, bytes_fetched, bytes_wasted, bytes_cached, time }
    }
}

tokio::task_local! {
    static CURRENT: Arc<SharedCounts>;
}

/// Runs `work`. Returns its result and the counts of its requests.
pub async fn counted<T>(work: impl Future<Output = T>) -> (T, RequestCounts) {
    let counts = Arc::<SharedCounts>::default();
    let done = CURRENT.scope(Arc::clone(&counts), work).await;
    (done, counts.get())
}

/// Returns `work` so that another task can do it for the operation of this task.
pub(super) fn inherited<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let counts = CURRENT.try_with(Arc::clone).unwrap_or_default();
    CURRENT.scope(counts, work)
}

/// Adds to the counts of the operation that this task works for, if it counts.
pub(super) fn add_to_current(more: &RequestCounts) {
    // Without an operation there is nothing to add to.
    _ = CURRENT.try_with(|counts| counts.add(more));
}
