//! [`Remote`]: the access of a session to object stores, which all its queries share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use object_store::ObjectStore;

use super::budget::Budget;
use super::counts::{RequestCounts, SharedCounts, add_to_current};
use super::limits::RemoteLimits;
use super::metadata_cache::MetadataCache;
use super::under_way::UnderWay;

/// The access of a session to object stores. Clones share everything.
///
/// ```
/// use std::sync::Arc;
///
/// use gridfusion_core::io::{Remote, RemoteLimits};
/// use object_store::memory::InMemory;
///
/// let remote = Remote::default();
/// remote.set_limits(RemoteLimits::default().with_requests(16));
/// let store = remote.store(Arc::new(InMemory::new()));
/// assert_eq!(remote.counts().requests, 0);
/// # let _ = store;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Remote(Arc<SharedAccess>);

/// Two sessions have equal access if their limits are equal.
impl PartialEq for Remote {
    fn eq(&self, other: &Self) -> bool {
        self.limits() == other.limits()
    }
}

impl Eq for Remote {}

#[derive(Debug, Default)]
struct SharedAccess {
    /// Replaced when the limits change. Requests in flight then keep the old one.
    budget: Mutex<Arc<Budget>>,
    known: MetadataCache,
    under_way: UnderWay,
    counts: SharedCounts,
    stores: Mutex<Stores>,
}

/// The stores so far, each with a number. Entries of the cache have this number.
#[derive(Debug, Default)]
struct Stores {
    numbered: Vec<(Weak<dyn ObjectStore>, u64)>,
    next: u64,
}

impl Remote {
    /// Returns the number of a store. Clones of one `Arc` have the same number.
    pub(super) fn number(&self, store: &Arc<dyn ObjectStore>) -> u64 {
        self.0.stores.lock().unwrap_or_else(PoisonError::into_inner).number(store)
    }

    /// Returns the numbers of requests and bytes of the session so far.
    pub fn counts(&self) -> RequestCounts {
        self.0.counts.get()
    }

    /// Returns the limits of all requests.
    pub fn limits(&self) -> RemoteLimits {
        self.budget().limits
    }

    /// Sets the limits of all requests that start from now on.
    pub fn set_limits(&self, limits: RemoteLimits) {
        *self.lock_budget() = Arc::new(Budget::new(limits));
    }

    pub(super) fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.lock_budget())
    }

    fn lock_budget(&self) -> MutexGuard<'_, Arc<Budget>> {
        self.0.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self) -> &MetadataCache {
        &self.0.known
    }

    pub(super) fn under_way(&self) -> &UnderWay {
        &self.0.under_way
    }

    pub(super) fn count(&self, more: &RequestCounts) {
        self.0.counts.add(more);
        add_to_current(more);
    }
}

impl Stores {
    fn number(&mut self, store: &Arc<dyn ObjectStore>) -> u64 {
        self.numbered.retain(|(known, _)| known.strong_count() > 0);
        let is_same = |known: &Weak<dyn ObjectStore>| {
            known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, store))
        };
        if let Some((_, number)) = self.numbered.iter().find(|(known, _)| is_same(known)) {
            return *number;
        }
        self.next += 1;
        self.numbered.push((Arc::downgrade(store), self.next));
        self.next
    }
}
