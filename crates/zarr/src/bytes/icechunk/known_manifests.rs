//! [`KnownManifests`]: manifests that were read, within a bound of memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::id::ObjectId;
use super::manifest::Manifest;

/// The most bytes of manifests that are kept.
const MOST_BYTES: usize = 128 << 20;

/// The bytes of an entry beside the manifest itself.
const ENTRY: usize = 128;

/// Manifests by their ids. The ones that were used last are kept.
#[derive(Debug)]
pub(super) struct KnownManifests {
    most: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// Each manifest, with the number of its last use.
    all: HashMap<ObjectId, (Arc<Manifest>, u64)>,
    uses: u64,
    bytes: usize,
}

impl Default for KnownManifests {
    fn default() -> Self {
        Self::new(MOST_BYTES)
    }
}

impl KnownManifests {
    fn new(most: usize) -> Self {
        Self { most, entries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<Arc<Manifest>> {
        let mut entries = self.lock();
        entries.uses += 1;
        let now = entries.uses;
        let (manifest, used) = entries.all.get_mut(id)?;
        *used = now;
        Some(Arc::clone(manifest))
    }

    pub(super) fn insert(&self, id: ObjectId, manifest: &Arc<Manifest>) {
        let mut entries = self.lock();
        entries.uses += 1;
        let now = entries.uses;
        if entries.all.insert(id, (Arc::clone(manifest), now)).is_none() {
            entries.bytes += manifest.memory() + ENTRY;
        }
        if entries.bytes > self.most {
            entries.forget_down_to(self.most / 4 * 3);
        }
    }
}

impl Entries {
    /// Forgets those whose last use is longest ago. Forgetting several at once costs less than one each time.
    fn forget_down_to(&mut self, most: usize) {
        let mut uses: Vec<_> = self.all.iter().map(|(id, (_, used))| (*used, *id)).collect();
        uses.sort_unstable();
        for (_, id) in uses {
            if self.bytes <= most {
                break;
            }
            if let Some((manifest, _)) = self.all.remove(&id) {
                self.bytes -= manifest.memory() + ENTRY;
            }
        }
    }
}
