//! Options for opening an array or a group, and whether a folder is one of the two.

use super::names::{OLD_SCHEMA_FILE, TimedName};
use crate::bytes::filter::EncryptionKey;
use gridfusion_core::format::Entry;

/// The folder of schemas, which every array since format 10 has.
pub(in crate::bytes) const SCHEMA_FOLDER: &str = "__schema";

/// Options for opening an array or a group. The default reads everything, without a key.
///
/// The window of time has both ends: a write at exactly `start` or `end` is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Leaves out writes before this time, in milliseconds since 1970.
    pub start: u64,
    /// Leaves out writes after this time, in milliseconds since 1970. `None` leaves out nothing, so writes
    /// that are dated in the future are read, too.
    pub end: Option<u64>,
    /// The key of an encrypted array.
    pub key: Option<EncryptionKey>,
}

impl OpenOptions {
    /// Returns options that read writes from `start` to `end`, or all after `start`.
    pub const fn new(start: u64, end: Option<u64>) -> Self {
        Self { start, end, key: None }
    }

    /// Sets the key of an encrypted array.
    pub fn with_key(self, key: Option<EncryptionKey>) -> Self {
        Self { key, ..self }
    }

    /// Whether all times of `name` lie in the window. For a window from 5 to 9, times 5 to 9 do, and times
    /// 4 to 6 do not.
    pub(in crate::bytes) fn contains(&self, name: TimedName) -> bool {
        self.start <= name.t1 && !self.is_after(name.t2)
    }

    /// Whether some time of `name` lies in the window: for a window from 5 to 9, also times 4 to 6.
    pub(in crate::bytes) fn touches(&self, name: TimedName) -> bool {
        self.start <= name.t2 && !self.is_after(name.t1)
    }

    /// Whether the window ends before `time`.
    fn is_after(&self, time: u64) -> bool {
        self.end.is_some_and(|end| time > end)
    }
}

/// The kind of a folder that TileDB wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FolderKind {
    /// An array.
    Array,
    /// A group of arrays and groups.
    Group,
}

/// The kind of a folder with these `entries`; `None` if it is neither an array nor a group.
/// A folder with the marks of both is an array.
pub fn folder_kind(entries: &[Entry]) -> Option<FolderKind> {
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    if has(SCHEMA_FOLDER) || has(OLD_SCHEMA_FILE) {
        Some(FolderKind::Array)
    } else if has("__tiledb_group.tdb") || lists_members(entries) {
        Some(FolderKind::Group)
    } else {
        None
    }
}

/// Whether a group with these `entries` lists its members in files. TileDB before 2.8 wrote only a mark, and the
/// arrays and groups in the folder are the members.
pub fn lists_members(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.name == "__group")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_time() {
        let name = |t1, t2| TimedName { t1, t2, version: None };
        let options = OpenOptions { start: 5, end: Some(9), key: None };
        let contained = [(5, 9), (6, 6), (4, 6), (6, 10), (4, 10), (0, 4), (10, 11)];
        let seen = contained
            .map(|(t1, t2)| (options.contains(name(t1, t2)), options.touches(name(t1, t2))));
        let (both, some, none) = ((true, true), (false, true), (false, false));
        assert_eq!(seen, [both, both, some, some, some, none, none]);
        assert!(OpenOptions::default().contains(name(0, u64::MAX)));
    }

    #[test]
    fn folders_are_known_by_what_is_in_them() {
        let kind = |names: &[&str]| {
            let entry = |name: &&str| Entry::new(*name, None);
            folder_kind(&names.iter().map(entry).collect::<Vec<_>>())
        };
        assert_eq!(kind(&[]), None);
        assert_eq!(kind(&["__meta", "a.tdb"]), None);
        assert_eq!(kind(&["__schema", "__tiledb_group.tdb"]), Some(FolderKind::Array));
        assert_eq!(kind(&["__array_schema.tdb"]), Some(FolderKind::Array));
        assert_eq!(kind(&["a", "__tiledb_group.tdb"]), Some(FolderKind::Group));
        assert_eq!(kind(&["__group"]), Some(FolderKind::Group));
    }
}
