//! Names of files and folders, with the times and format version in them.
//!
//! ```text
//!   __1700000000000_1700000000999_0f3b…6c_22
//!     └ first ms    └ last ms     └ uuid  └ format version, of fragments
//! ```

use gridfusion_core::format::{Entry, Location};

/// The only schema of arrays before format 10, in the array's own folder.
pub(in crate::bytes) const OLD_SCHEMA_FILE: &str = "__array_schema.tdb";

/// Times and version in the name of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bytes) struct TimedName {
    /// The time of the earliest write, in milliseconds since 1970.
    pub(in crate::bytes) t1: u64,
    /// The time of the latest write, in milliseconds since 1970.
    pub(in crate::bytes) t2: u64,
    /// The format version; `None` for fragments of format 4 and older, and for schemas and metadata. The
    /// names of group files end in a version, too: that of the file (see crates/tiledb/FORMAT.md, section 6).
    pub(in crate::bytes) version: Option<u32>,
}

/// Hexadecimal digits of a UUID, which is written without dashes.
const UUID_LEN: usize = 32;

impl TimedName {
    /// Parses a name, with or without an extension; `None` if it does not have one of these forms:
    ///
    /// ```text
    ///   __t1_t2_uuid_v    fragments since format 5, and files of groups
    ///   __t1_t2_uuid      schemas and metadata, and fragments of formats 3 and 4
    ///   __uuid_t1_t2      fragments of formats 1 and 2
    ///   __uuid_t          the same, with t1 = t2
    /// ```
    ///
    /// Only a token of [`UUID_LEN`] characters is a UUID; times in milliseconds are far shorter.
    pub(in crate::bytes) fn parse(name: &str) -> Option<Self> {
        let tokens: Vec<&str> = stem(name).strip_prefix("__")?.split('_').collect();
        let is_uuid = |token: &str| token.len() == UUID_LEN;
        let (t1, t2, version) = match tokens[..] {
            [t1, t2, _, version] => (t1, t2, Some(version.parse().ok()?)),
            [t1, t2, uuid] if is_uuid(uuid) => (t1, t2, None),
            [uuid, t1, t2] if is_uuid(uuid) => (t1, t2, None),
            [uuid, t] if is_uuid(uuid) => (t, t, None),
            _ => return None,
        };
        let (t1, t2) = (t1.parse().ok()?, t2.parse().ok()?);
        (t1 <= t2).then_some(Self { t1, t2, version })
    }
}

/// A name without its extension: `__5_5_uuid_22` of `__5_5_uuid_22.wrt`.
pub(in crate::bytes) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// The extension of a name, without the dot.
pub(in crate::bytes) fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

/// The last part of a path or URI: `a` of `file:///x/__fragments/a/`.
pub(in crate::bytes) fn last_part(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

/// The location of a whole file in `folder`; `None` if `entry` is a folder.
pub(in crate::bytes) fn whole_file(folder: &str, entry: &Entry) -> Option<Location> {
    let object = match folder {
        "" => entry.name.clone(),
        folder => format!("{folder}/{}", entry.name),
    };
    Some(Location::new(object, 0..entry.size?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_ages() {
        let uuid = "0123456789abcdef0123456789abcdef";
        let name = |t1, t2, version| Some(TimedName { t1, t2, version });
        for (text, expected) in [
            (format!("__10_20_{uuid}_22"), name(10, 20, Some(22))),
            (format!("__10_20_{uuid}_22.wrt"), name(10, 20, Some(22))),
            (format!("__10_20_{uuid}"), name(10, 20, None)),
            (format!("__{uuid}_7"), name(7, 7, None)),
            (format!("__{uuid}_7_9"), name(7, 9, None)),
            (format!("__20_10_{uuid}_22"), None),
            (format!("__10_20_{uuid}_x"), None),
            (format!("__-1_20_{uuid}_22"), None),
            (format!("10_20_{uuid}_22"), None),
            ("__10_20_short".into(), None),
            ("__enumerations".into(), None),
            ("__".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(TimedName::parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn parts_of_paths() {
        assert_eq!(last_part("/__fragments/a_1/"), "a_1");
        assert_eq!(last_part("a"), "a");
        assert_eq!((stem("a.b.c"), extension("a.b.c"), extension("a")), ("a.b", Some("c"), None));
    }
}
