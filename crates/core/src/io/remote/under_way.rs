//! [`UnderWay`]: requests for metadata whose replies have not come. A reader that needs the same bytes waits for them.
//!
//! Partitions of a query begin with the same nodes of an index. Without this, each of them would request the nodes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::metadata_cache::Key;
use super::threads;

/// How long a reader waits before it requests the bytes itself. The task that requested them may stand still, because
/// this reader blocks its thread.
const PATIENCE: Duration = Duration::from_secs(2);

/// The requests for metadata of a session.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    all: Vec<Request>,
    next: u64,
}

#[derive(Debug)]
struct Request {
    number: u64,
    key: Key,
    ranges: Vec<Range<u64>>,
    /// Closed when the request has ended.
    ended: watch::Receiver<()>,
}

/// A request that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Began<'a> {
    requests: &'a UnderWay,
    number: u64,
    _ended: watch::Sender<()>,
}

impl UnderWay {
    /// Begins a request for ranges of an object. Fails if another one for some of the same bytes is under way, and returns
    /// its end.
    pub(super) fn begin(
        &self,
        key: &Key,
        ranges: &[Range<u64>],
    ) -> Result<Began<'_>, watch::Receiver<()>> {
        let mut requests = self.lock();
        let is_same = |one: &Range<u64>| {
            ranges.iter().any(|other| one.start < other.end && other.start < one.end)
        };
        let same = requests.all.iter().find(|it| it.key == *key && it.ranges.iter().any(is_same));
        if let Some(same) = same {
            return Err(same.ended.clone());
        }
        let (sender, ended) = watch::channel(());
        let number = requests.next;
        requests.next += 1;
        let (key, ranges) = (key.clone(), ranges.to_vec());
        requests.all.push(Request { number, key, ranges, ended });
        Ok(Began { requests: self, number, _ended: sender })
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Began<'_> {
    fn drop(&mut self) {
        self.requests.lock().all.retain(|request| request.number != self.number);
    }
}

/// Waits for the end of a request. Returns whether it came.
pub(super) async fn ended(mut request: watch::Receiver<()>) -> bool {
    let wait = async move { tokio::time::timeout(PATIENCE, request.changed()).await.is_ok() };
    threads::run(wait).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    #[tokio::test]
    #[expect(clippy::single_range_in_vec_init)] // Ranges are meant, not their elements.
    async fn requests_for_the_same_bytes_wait_for_each_other() {
        let under_way = UnderWay::default();
        let key = |name: &str| (0, Path::from(name));
        let first = under_way.begin(&key("a"), &[0..10, 20..30]).unwrap();
        let waits = under_way.begin(&key("a"), &[12..15, 29..40]).unwrap_err();
        for (name, range) in [("a", 10..20), ("b", 0..10), ("a", 30..40)] {
            drop(under_way.begin(&key(name), &[range]).unwrap());
        }
        let waiting = tokio::spawn(ended(waits));
        drop(first);
        assert!(waiting.await.unwrap());
        assert!(under_way.begin(&key("a"), &[0..10]).is_ok() && under_way.lock().all.is_empty());
    }
}
