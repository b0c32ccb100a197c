//! [`MetadataCache`]: what a session knows of objects without asking again.
//!
//! ```text
//!   object    store 0, data/a.tet ─▶ identity, when it was last checked, parts of its bytes
//!   listing   store 0, data       ─▶ the entries, or all objects below; when it was made
//! ```
//!
//! Entries are dropped, the least recently used first, when they take more bytes than allowed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::path::Path;

use super::identity::Identity;
use super::listing::Listing;

/// An object or folder: the number of its store, and its path.
pub(super) type Key = (u64, Path);

/// The bytes that an entry is assumed to take besides its path and contents.
const ENTRY_BYTES: usize = 256;

/// The most absent documents to remember.
const MOST_ABSENT: usize = 1 << 16;

/// Objects and listings that are known.
#[derive(Debug, Default)]
pub(super) struct MetadataCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    objects: HashMap<Key, LastUse<Object>>,
    listings: HashMap<Key, LastUse<Arc<Listing>>>,
    /// Documents that were absent when the session asked for them.
    absent: HashSet<Key>,
    /// The entries by the time of their last use, counted in uses; `true` for listings.
    by_use: BTreeMap<u64, (bool, Key)>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct LastUse<T> {
    value: T,
    /// The last use, a key of `by_use`.
    used: u64,
    bytes: usize,
    /// When the store last confirmed it.
    checked: Instant,
}

#[derive(Debug)]
struct Object {
    identity: Identity,
    /// Parts of the object by their start. None lies within another.
    parts: BTreeMap<u64, Bytes>,
    /// The starts of parts in the order in which they came. Some of the parts may be gone.
    oldest: VecDeque<u64>,
}

impl MetadataCache {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the identity of an object, however old.
    pub(super) fn identity(&self, key: &Key) -> Option<Identity> {
        Some(self.lock().objects.get(key)?.value.identity.clone())
    }

    /// Returns the identity of an object that the store has confirmed within `age`.
    pub(super) fn recent(&self, key: &Key, age: Duration) -> Option<Identity> {
        let entries = self.lock();
        let object = entries.objects.get(key)?;
        (object.checked.elapsed() < age).then(|| object.value.identity.clone())
    }

    /// Whether a document was absent when the session asked for it.
    pub(super) fn is_absent(&self, key: &Key) -> bool {
        self.lock().absent.contains(key)
    }

    /// Notes that a document is absent.
    pub(super) fn note_absent(&self, key: Key) {
        let mut entries = self.lock();
        if entries.absent.len() >= MOST_ABSENT {
            entries.absent.clear();
        }
        entries.absent.insert(key);
    }

    /// Forgets which documents below a folder are absent; returns whether any was.
    pub(super) fn forget_absent(&self, folder: &Key) -> bool {
        let mut entries = self.lock();
        let before = entries.absent.len();
        entries.absent.retain(|key| key.0 != folder.0 || !key.1.prefix_matches(&folder.1));
        entries.absent.len() < before
    }

    /// Notes that an object has this identity now. Drops bytes of another one.
    pub(super) fn learn(&self, key: &Key, identity: Identity, most: usize) {
        let mut entries = self.lock();
        entries.absent.remove(key);
        if let Some(object) = entries.objects.get_mut(key)
            && object.value.identity.is_same(&identity)
        {
            object.checked = Instant::now();
            return;
        }
        entries.remove(false, key);
        let object = Object { identity, parts: BTreeMap::new(), oldest: VecDeque::new() };
        entries.insert_object(key, object, most);
    }

    /// Keeps bytes of an object, from `start` on, if it is still known with this identity.
    pub(super) fn keep(
        &self,
        key: &Key,
        identity: &Identity,
        start: u64,
        bytes: Bytes,
        most: usize,
    ) {
        // One object must not displace all others.
        if bytes.len() > most / 4 {
            return;
        }
        let mut entries = self.lock();
        let entries = &mut *entries;
        let Some(object) = entries.objects.get_mut(key) else { return };
        if !object.value.identity.is_same(identity) {
            return;
        }
        let parts = &mut object.value.parts;
        let end = start + bytes.len() as u64;
        if covering(parts, &(start..end)).is_some() {
            return;
        }
        // A large object loses its oldest parts, and not all of them at once.
        while object.bytes + bytes.len() > most - most / 4
            && let Some(oldest) = object.value.oldest.pop_front()
        {
            let freed = parts.remove(&oldest).map_or(0, |part| part.len());
            object.bytes -= freed;
            entries.bytes -= freed;
        }
        let within: Vec<u64> = parts
            .range(start..end)
            .filter(|(at, part)| *at + part.len() as u64 <= end)
            .map(|(at, _)| *at)
            .collect();
        let freed: usize = within.iter().filter_map(|at| parts.remove(at)).map(|it| it.len()).sum();
        object.bytes = object.bytes + bytes.len() - freed;
        entries.bytes = entries.bytes + bytes.len() - freed;
        parts.insert(start, bytes);
        object.value.oldest.push_back(start);
        entries.touch(false, key);
        entries.evict(most);
    }

    /// Returns bytes of an object that are kept.
    pub(super) fn bytes(
        &self,
        key: &Key,
        identity: &Identity,
        range: &Range<u64>,
    ) -> Option<Bytes> {
        let mut entries = self.lock();
        let object = &entries.objects.get(key)?.value;
        if !object.identity.is_same(identity) {
            return None;
        }
        let bytes = covering(&object.parts, range)?;
        entries.touch(false, key);
        Some(bytes)
    }

    /// Returns the parts of a range that are kept, ascending and without overlaps, with their places in the object.
    pub(super) fn pieces(
        &self,
        key: &Key,
        identity: &Identity,
        range: &Range<u64>,
    ) -> Vec<(Range<u64>, Bytes)> {
        let mut entries = self.lock();
        let object = entries.objects.get(key).map(|object| &object.value);
        let Some(object) = object.filter(|object| object.identity.is_same(identity)) else {
            return vec![];
        };
        let pieces = pieces(&object.parts, range);
        if !pieces.is_empty() {
            entries.touch(false, key);
        }
        pieces
    }

    /// Forgets an object, and the listings of all folders above it.
    pub(super) fn forget(&self, key: &Key) {
        let mut entries = self.lock();
        entries.remove(false, key);
        entries.absent.remove(key);
        let above = |other: &Key| other.0 == key.0 && key.1.prefix_matches(&other.1);
        let listings: Vec<Key> = entries.listings.keys().filter(|it| above(it)).cloned().collect();
        listings.iter().for_each(|key| entries.remove(true, key));
    }

    /// Returns a listing that was made within `age`.
    pub(super) fn listing(&self, key: &Key, age: Duration) -> Option<Arc<Listing>> {
        let mut entries = self.lock();
        let listing = entries.listings.get(key)?;
        if listing.checked.elapsed() >= age {
            return None;
        }
        let listing = Arc::clone(&listing.value);
        entries.touch(true, key);
        Some(listing)
    }

    /// Keeps a listing.
    pub(super) fn keep_listing(&self, key: &Key, listing: Arc<Listing>, most: usize) {
        let mut entries = self.lock();
        entries.remove(true, key);
        let bytes = ENTRY_BYTES + listing.bytes();
        let used = entries.next_use(true, key);
        let listing = LastUse { value: listing, used, bytes, checked: Instant::now() };
        entries.listings.insert(key.clone(), listing);
        entries.bytes += bytes;
        entries.evict(most);
    }
}

impl Entries {
    fn next_use(&mut self, is_listing: bool, key: &Key) -> u64 {
        self.uses += 1;
        self.by_use.insert(self.uses, (is_listing, key.clone()));
        self.uses
    }

    /// Marks an entry as the most recently used.
    fn touch(&mut self, is_listing: bool, key: &Key) {
        let next = self.uses + 1;
        let used = match is_listing {
            true => self.listings.get_mut(key).map(|it| std::mem::replace(&mut it.used, next)),
            false => self.objects.get_mut(key).map(|it| std::mem::replace(&mut it.used, next)),
        };
        if let Some(entry) = used.and_then(|used| self.by_use.remove(&used)) {
            self.uses = next;
            self.by_use.insert(next, entry);
        }
    }

    fn insert_object(&mut self, key: &Key, object: Object, most: usize) {
        let bytes = ENTRY_BYTES + key.1.as_ref().len();
        let used = self.next_use(false, key);
        let object = LastUse { value: object, used, bytes, checked: Instant::now() };
        self.objects.insert(key.clone(), object);
        self.bytes += bytes;
        self.evict(most);
    }

    fn remove(&mut self, is_listing: bool, key: &Key) {
        let removed = match is_listing {
            true => self.listings.remove(key).map(|it| (it.used, it.bytes)),
            false => self.objects.remove(key).map(|it| (it.used, it.bytes)),
        };
        if let Some((used, bytes)) = removed {
            self.by_use.remove(&used);
            self.bytes -= bytes;
        }
    }

    fn evict(&mut self, most: usize) {
        while self.bytes > most
            && let Some((_, (is_listing, key))) = self.by_use.first_key_value()
        {
            let (is_listing, key) = (*is_listing, key.clone());
            self.remove(is_listing, &key);
        }
    }
}

/// Returns the bytes of `range`, if one part has them all.
fn covering(parts: &BTreeMap<u64, Bytes>, range: &Range<u64>) -> Option<Bytes> {
    let (start, part) = parts.range(..=range.start).next_back()?;
    let (from, to) = ((range.start - start) as usize, (range.end - start) as usize);
    (to <= part.len()).then(|| part.slice(from..to))
}

/// Returns what parts have of `range`, in order.
fn pieces(parts: &BTreeMap<u64, Bytes>, range: &Range<u64>) -> Vec<(Range<u64>, Bytes)> {
    let first = parts.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
    let (mut pieces, mut at) = (vec![], range.start);
    for (&start, part) in parts.range(first..range.end.max(first)) {
        let (from, to) = (start.max(at), (start + part.len() as u64).min(range.end));
        if from < to {
            let bytes = part.slice((from - start) as usize..(to - start) as usize);
            pieces.push((from..to, bytes));
            at = to;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use object_store::ObjectMeta;

    use super::*;

    fn identity(size: u64, tag: &str) -> Identity {
        Identity::from_object(&ObjectMeta {
            location: Path::from("a"),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size,
            e_tag: Some(tag.to_owned()),
            version: None,
        })
    }

    #[test]
    fn bytes_are_kept_while_the_object_is_the_same() {
        let (known, most) = (MetadataCache::default(), 1 << 20);
        let (key, one, two) = ((0, Path::from("a")), identity(9, "1"), identity(9, "2"));
        known.keep(&key, &one, 0, Bytes::from("lost"), most);
        assert_eq!(known.bytes(&key, &one, &(0..1)), None);
        known.learn(&key, one.clone(), most);
        known.keep(&key, &one, 2, Bytes::from("cde"), most);
        known.keep(&key, &one, 6, Bytes::from("gh"), most);
        assert_eq!(known.bytes(&key, &one, &(3..5)), Some(Bytes::from("de")));
        assert_eq!(known.bytes(&key, &one, &(4..7)), None);
        known.keep(&key, &one, 0, Bytes::from("abcdefgh"), most);
        assert_eq!(known.bytes(&key, &one, &(4..7)), Some(Bytes::from("efg")));
        assert_eq!(known.lock().bytes, ENTRY_BYTES + 1 + 8);
        assert_eq!(known.bytes(&key, &two, &(4..7)), None);
        known.learn(&key, two.clone(), most);
        assert_eq!(known.bytes(&key, &two, &(4..7)), None);
        assert_eq!(known.recent(&key, Duration::from_secs(60)), Some(two));
        assert_eq!(known.recent(&key, Duration::ZERO), None);
        known.forget(&key);
        assert_eq!((known.identity(&key), known.lock().bytes), (None, 0));
    }

    #[test]
    fn pieces_of_a_range_are_those_of_the_parts() {
        let parts = [(2, "cde"), (5, "f"), (8, "ijk")].map(|(at, it)| (at, Bytes::from(it)));
        let parts = BTreeMap::from(parts);
        let found = |range| {
            let all = pieces(&parts, &range).into_iter();
            all.map(|(at, bytes)| (at, String::from_utf8(bytes.to_vec()).unwrap()))
                .collect::<Vec<_>>()
        };
        let piece = |at, text: &str| (at, text.to_owned());
        assert_eq!(found(0..20), [piece(2..5, "cde"), piece(5..6, "f"), piece(8..11, "ijk")]);
        assert_eq!(found(4..9), [piece(4..5, "e"), piece(5..6, "f"), piece(8..9, "i")]);
        assert_eq!(found(3..5), [piece(3..5, "de")]);
        assert_eq!((found(6..8), found(11..20), found(4..4)), (vec![], vec![], vec![]));
    }

    #[test]
    fn an_object_that_is_too_large_keeps_its_last_parts() {
        let (known, most) = (MetadataCache::default(), 4 * ENTRY_BYTES);
        let (key, same) = ((0, Path::from("a")), identity(9, "1"));
        known.learn(&key, same.clone(), most);
        for start in (0..1000).step_by(50) {
            known.keep(&key, &same, start, Bytes::from(vec![7; 50]), most);
        }
        let is_kept = |start: u64| known.bytes(&key, &same, &(start..start + 50)).is_some();
        assert!(!is_kept(0) && !is_kept(50) && is_kept(900) && is_kept(950));
        assert!(known.lock().bytes <= most - most / 4);
    }

    #[test]
    fn the_least_recently_used_object_goes_first() {
        let (known, most) = (MetadataCache::default(), 3 * (ENTRY_BYTES + 20));
        let key = |name: &str| (0, Path::from(name));
        let same = identity(20, "1");
        for name in ["a", "b", "c"] {
            known.learn(&key(name), same.clone(), most);
            known.keep(&key(name), &same, 0, Bytes::from("0123456789"), most);
        }
        assert!(known.bytes(&key("a"), &same, &(0..9)).is_some());
        known.learn(&key("d"), same.clone(), most);
        let left = ["a", "b", "c", "d"].map(|name| known.identity(&key(name)).is_some());
        assert_eq!(left, [true, false, true, true]);
        let entries = known.lock();
        assert!(entries.bytes <= most && entries.by_use.len() == 3);
    }
}
