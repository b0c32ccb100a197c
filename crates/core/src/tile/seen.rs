//! [`Seen`]: the stamps of the objects that a table has read, so that no query mixes two versions of them.
//!
//! ```text
//!   read a ─▶ note its stamp ─── read b ─▶ note ─── all are read ─▶ check a and b and the metadata
//!                                                   └ now each object still is what was read
//! ```
//!
//! A stamp is taken before the bytes are read. If it is the same after the last read, then all bytes are those of that
//! moment. So the order in which a program writes its objects does not matter.
//!
//! There is also no need to hold folders open. For plans that travel, `ChunkSource::contents` is a digest of all chunks.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::version::ObjectVersion;
use crate::error::Result;
use crate::io::{Folder, ObjectStamp};

/// The most objects of which a table notes stamps: 64 MiB of them.
const MOST: usize = 1 << 21;

/// The stamps of objects, and the names of those with metadata.
#[derive(Debug)]
pub(super) struct Seen {
    /// Tells stores apart in this process. No two have the same.
    number: u64,
    hasher: RandomState,
    noted: Mutex<SeenObject>,
}

#[derive(Debug, Default)]
struct SeenObject {
    /// The stamps by the hashes of names; `None` for an absent object.
    stamps: HashMap<u64, Option<ObjectStamp>>,
    /// The objects with metadata, which all queries rely on.
    metadata: HashSet<Arc<str>>,
}

impl Default for Seen {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, hasher: RandomState::default(), noted: Mutex::default() }
    }
}

impl Seen {
    /// Returns the number of the store.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn lock(&self) -> MutexGuard<'_, SeenObject> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the stamp of an object that is about to be read, or was read; `None` if it is absent.
    ///
    /// # Errors
    /// `Io` if the object had another stamp before.
    pub(super) fn note(
        &self,
        object: &Arc<str>,
        stamp: Option<ObjectStamp>,
        is_metadata: bool,
    ) -> Result<()> {
        let key = self.hasher.hash_one(object);
        let mut noted = self.lock();
        if is_metadata && noted.metadata.len() < MOST {
            noted.metadata.insert(Arc::clone(object));
        }
        match noted.stamps.get(&key) {
            Some(before) => compare(object, *before, stamp),
            None => {
                if noted.stamps.len() < MOST {
                    noted.stamps.insert(key, stamp);
                }
                Ok(())
            }
        }
    }

    /// Whether the object has a stamp.
    pub(super) fn has(&self, object: &str) -> bool {
        self.lock().stamps.contains_key(&self.hasher.hash_one(object))
    }

    /// Returns the objects with metadata. In an object store, leaves out absent ones, because each takes a request.
    fn metadata(&self, is_remote: bool) -> Vec<Arc<str>> {
        let noted = self.lock();
        let is_there = |object: &&Arc<str>| {
            let stamp = noted.stamps.get(&self.hasher.hash_one(*object));
            !is_remote || stamp.is_some_and(Option::is_some)
        };
        noted.metadata.iter().filter(is_there).cloned().collect()
    }

    /// Checks that all metadata and the objects that a query has `read` still have the stamps that they had.
    ///
    /// # Errors
    /// `Io` if one of them was written, added or deleted since, or if the folder was replaced.
    pub(super) async fn check(&self, folder: &dyn Folder, read: &[Arc<str>]) -> Result<()> {
        let metadata = self.metadata(folder.is_remote());
        for objects in [&metadata, read] {
            let Some(now) = folder.stamps(objects).await? else { continue };
            let noted = self.lock();
            for (object, now) in objects.iter().zip(now) {
                if let Some(before) = noted.stamps.get(&self.hasher.hash_one(object)) {
                    compare(object, *before, now)?;
                }
            }
        }
        Ok(())
    }
}

/// Fails unless two stamps are of the same bytes of `object`.
fn compare(object: &str, before: Option<ObjectStamp>, now: Option<ObjectStamp>) -> Result<()> {
    let reason = match (before, now) {
        (None, None) => return Ok(()),
        (Some(before), Some(now)) if before.is_same(&now) => return Ok(()),
        (Some(_), Some(_)) => "it was written after it was first read",
        (Some(_), None) => "it was deleted after it was first read",
        (None, Some(_)) => "it was absent, and was written meanwhile",
    };
    Err(ObjectVersion::changed(object, reason))
}
