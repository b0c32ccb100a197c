//! A bounded cache, which drops the least recently used entry first.
//!
//! It holds open files and objects. Each use gets the next number. The least number is the entry to evict:
//!
//! ```text
//!   values   a → (file a, 4), b → (file b, 3)        by_use   3 → b, 4 → a
//!   get(b)   a → (file a, 4), b → (file b, 5)                 4 → a, 5 → b
//! ```
//!
//! A use costs a hash and a search in a tree of at most `capacity` keys.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A map from keys to a limited number of values. Callers get clones, so a value may be evicted while it is
/// in use.
pub struct LruCache<K, V> {
    capacity: usize,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    /// Each value, and the time of its last use, counted in uses.
    values: HashMap<K, (V, u64)>,
    /// The keys by the time of their last use, the least recently used first.
    by_use: BTreeMap<u64, K>,
    /// The number of uses so far.
    now: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> LruCache<K, V> {
    /// Creates a cache of at most `capacity` values; a capacity of 0 becomes 1.
    pub fn new(capacity: usize) -> Self {
        let entries = Entries { values: HashMap::new(), by_use: BTreeMap::new(), now: 0 };
        Self { capacity: capacity.max(1), entries: Mutex::new(entries) }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of values held.
    pub(crate) fn len(&self) -> usize {
        self.lock().values.len()
    }

    /// Returns the value of `key`, and marks it as the most recently used.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut entries = self.lock();
        let Entries { values, by_use, now } = &mut *entries;
        let (value, used) = values.get_mut(key)?;
        *now += 1;
        if let Some(key) = by_use.remove(used) {
            by_use.insert(*now, key);
        }
        *used = *now;
        Some(value.clone())
    }

    /// Stores `value` under `key`, replacing the old one. A full cache evicts the least recently used value.
    pub fn insert(&self, key: K, value: V) {
        let mut entries = self.lock();
        entries.now += 1;
        let now = entries.now;
        let replaced = entries.values.insert(key.clone(), (value, now));
        if let Some((_, used)) = &replaced {
            entries.by_use.remove(used);
        }
        entries.by_use.insert(now, key);
        let evicted = match entries.values.len() > self.capacity {
            true => entries.by_use.pop_first().and_then(|(_, key)| entries.values.remove(&key)),
            false => None,
        };
        // Dropping a value may close a file, so the lock is released first.
        drop(entries);
        drop((replaced, evicted));
    }
}

impl<K: Hash + Eq + Clone, V: Clone> fmt::Debug for LruCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LruCache({} of {})", self.len(), self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = LruCache::new(2);
        cache.insert("a", 1);
        cache.insert("b", 2);
        assert_eq!(cache.get("a"), Some(1));
        cache.insert("c", 3);
        assert_eq!([cache.get("a"), cache.get("b"), cache.get("c")], [Some(1), None, Some(3)]);
        cache.insert("a", 4);
        assert_eq!((cache.get("a"), cache.len()), (Some(4), 2));
        let single = LruCache::new(0);
        single.insert(1, 1);
        assert_eq!(single.get(&1), Some(1));
    }

    #[test]
    fn it_holds_what_a_list_in_order_of_use_holds() {
        let mut rng = StdRng::seed_from_u64(1);
        for capacity in 1..5 {
            let (cache, mut used) = (LruCache::new(capacity), Vec::<(u32, u32)>::new());
            for value in 0..2_000 {
                let key = rng.random_range(0..8);
                let at = used.iter().position(|(held, _)| *held == key);
                let held = at.map(|at| used.remove(at));
                if rng.random() {
                    assert_eq!(cache.get(&key), held.map(|(_, value)| value));
                    used.extend(held);
                } else {
                    cache.insert(key, value);
                    used.push((key, value));
                    used.drain(..used.len().saturating_sub(capacity));
                }
                assert_eq!(cache.len(), used.len());
            }
        }
    }
}
