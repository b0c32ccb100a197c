//! The objects of a server.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};

/// The time of modification of the first object, in seconds since 1970: 2024-01-01.
const BEGINNING: i64 = 1_704_067_200;

/// The objects by their paths.
#[derive(Default)]
pub(super) struct Objects {
    by_path: BTreeMap<String, Object>,
    /// The number of objects that were put so far.
    puts: u64,
}

/// An object that was put.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) bytes: Bytes,
    /// The number of the put, which is its entity tag.
    pub(super) version: u64,
}

impl Objects {
    pub(super) fn put(&mut self, path: String, bytes: Bytes) {
        self.puts += 1;
        self.by_path.insert(path, Object { bytes, version: self.puts });
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.by_path.remove(path);
    }

    pub(super) fn get(&self, path: &str) -> Option<Object> {
        self.by_path.get(path).cloned()
    }

    /// Returns the objects of a bucket in the order of their keys, without the bucket.
    pub(super) fn keys<'a>(
        &'a self,
        bucket: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Object)> {
        let inside = format!("{bucket}/");
        let skipped = inside.len();
        let from = self.by_path.range(inside.clone()..);
        from.take_while(move |(path, _)| path.starts_with(&inside))
            .map(move |(path, object)| (&path[skipped..], object))
    }
}

impl Object {
    /// Returns the entity tag.
    pub(super) fn e_tag(&self, is_weak: bool) -> String {
        format!("{}\"{}\"", if is_weak { "W/" } else { "" }, self.version)
    }

    /// Returns the time of modification. Each put is a second later than the one before, so that times differ.
    pub(super) fn modified(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(BEGINNING + self.version as i64, 0).unwrap()
    }
}
