//! [`ObjectStamp`]: tells whether an object is still the one that was read.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Numbers that differ if an object was written again. They are small, because a query notes one per chunk.
///
/// Stamps are compared within one process only.
///
/// ```
/// use gridfusion_core::io::ObjectStamp;
///
/// let [a, b] = ["7 bytes, tag a", "7 bytes, tag b"].map(ObjectStamp::from_version);
/// assert!(a.is_same(&a) && !a.is_same(&b));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectStamp {
    /// A digest of the length and, of a file, of its time of the last write and its inode.
    content: u64,
    /// A digest of the entity tag; 0 without one.
    tag: u64,
    /// A digest of the time of the last change of any kind; 0 without one.
    changed: u64,
    /// A digest of what may explain a later time of change.
    explained: u64,
}

impl ObjectStamp {
    /// Returns the stamp of a file.
    pub(super) fn from_file(content: impl Hash, changed: impl Hash, explained: impl Hash) -> Self {
        let (content, changed) = (digest(content), digest(changed));
        Self { content, tag: 0, changed, explained: digest(explained) }
    }

    /// Returns the stamp of an object in a store. Without tags, times decide.
    pub(super) fn from_stored(size: u64, tag: Option<&str>, modified: Option<i64>) -> Self {
        let (tag, changed) = (tag.map_or(0, digest), modified.map_or(0, digest));
        Self { content: digest(size), tag, changed, explained: 0 }
    }

    /// Returns the stamp of an object with this version; see [`ByteSource::version`](super::ByteSource::version).
    pub fn from_version(version: impl AsRef<str>) -> Self {
        Self { content: digest(version.as_ref()), tag: 0, changed: 0, explained: 0 }
    }

    /// Whether two stamps are of the same bytes of one object.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |a: u64, b: u64| a == b || a == 0 || b == 0;
        let is_unchanged = match self.tag != 0 && other.tag != 0 {
            true => self.tag == other.tag,
            false => same(self.changed, other.changed) || self.explained != other.explained,
        };
        self.content == other.content && is_unchanged
    }
}

fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    // 0 stands for nothing.
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_decide_before_times_and_explained_changes_do_not_count() {
        let stored = ObjectStamp::from_stored;
        let (a, b) = (Some("a"), Some("b"));
        assert!(stored(7, a, Some(1)).is_same(&stored(7, a, Some(2))));
        assert!(!stored(7, a, Some(1)).is_same(&stored(7, b, Some(1))));
        assert!(!stored(7, a, Some(1)).is_same(&stored(8, a, Some(1))));
        assert!(stored(7, a, None).is_same(&stored(7, None, Some(1))));
        assert!(!stored(7, None, Some(1)).is_same(&stored(7, None, Some(2))));
        let file =
            |content: u8, changed: u8, names: u8| ObjectStamp::from_file(content, changed, names);
        assert!(file(1, 1, 1).is_same(&file(1, 1, 1)));
        assert!(!file(1, 1, 1).is_same(&file(1, 2, 1)));
        assert!(file(1, 1, 1).is_same(&file(1, 2, 2)));
        assert!(!file(1, 1, 1).is_same(&file(2, 2, 2)));
    }
}
