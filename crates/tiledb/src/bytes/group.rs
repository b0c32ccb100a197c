//! Groups: folders that list arrays and other groups.
//!
//! ```text
//!   group/
//!   ├── __tiledb_group.tdb
//!   └── __group/__t1_t2_uuid_v     version 2: members that were added or removed
//!                                  version 1: all members at that time
//! ```
//!
//! The members are those that remain after all files, oldest first:
//!
//! ```text
//!   time 10, version 1: a, b            a, b
//!   time 20, version 2: + c, - a        b, c
//!   time 30, version 1: d               d
//! ```

use std::collections::BTreeMap;

use super::folder::{FolderKind, OpenOptions, ReadTimedFolder, TimedFile, map_done};
use super::text::{flag, text64};
use gridfusion_core::format::wire::Reader;
use gridfusion_core::format::{Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMember {
    /// Its name in the group, if it has one. A member without a name is identified by its URI.
    pub name: Option<String>,
    /// The path or URL of its folder.
    pub uri: String,
    /// Whether `uri` is a path in the group's folder.
    pub relative: bool,
    /// Whether it is an array or a group.
    pub kind: FolderKind,
}

const REGION: &str = "group";

/// A machine that reads the members of a group, sorted by name. Members without a name sort by URI.
#[derive(Debug)]
pub struct ReadGroup {
    folder: ReadTimedFolder,
}

impl ReadGroup {
    /// Makes a machine that reads the group as it is in the time window of `options`.
    pub fn new(options: OpenOptions) -> Self {
        Self { folder: ReadTimedFolder::new("__group", REGION, options) }
    }
}

impl Machine for ReadGroup {
    type Output = Vec<GroupMember>;

    fn subject(&self) -> &'static str {
        "group"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        map_done(self.folder.step(replies)?, merge)
    }
}

/// Applies all files, which come oldest first, and returns the remaining members. Errors name the file.
fn merge(files: Vec<TimedFile>) -> Result<Vec<GroupMember>> {
    let mut members = BTreeMap::new();
    for file in files {
        apply(&file.content, &mut members).map_err(|error| error.about(&file.object))?;
    }
    Ok(members.into_values().collect())
}

/// Applies one file to `members`: version 1 replaces all of them, version 2 adds and removes some.
fn apply(content: &[u8], members: &mut BTreeMap<String, GroupMember>) -> Result<()> {
    let mut reader = Reader::new(REGION, 0, content);
    match reader.u32()? {
        1 => members.clear(),
        2 => {}
        other => return Err(unknown_version(other)),
    }
    for _ in 0..reader.u64()? {
        let (member, deleted) = GroupMember::parse(&mut reader)?;
        let key = member.name.as_ref().unwrap_or(&member.uri).clone();
        if deleted {
            members.remove(&key);
        } else {
            members.insert(key, member);
        }
    }
    reader.end()
}

fn unknown_version(version: u32) -> Error {
    Error::unsupported(format!("TileDB group version {version}; this reader knows 1 and 2"))
}

impl GroupMember {
    /// Parses a member, and the flag that marks it as removed. `crates/tiledb/FORMAT.md`, section 6, "Group",
    /// has the bytes.
    fn parse(reader: &mut Reader<'_>) -> Result<(Self, bool)> {
        let version = reader.u32()?;
        if !(1..=2).contains(&version) {
            return Err(unknown_version(version));
        }
        let kind = match reader.u8()? {
            1 => FolderKind::Group,
            2 => FolderKind::Array,
            other => {
                let message = format!("a member of type {other}, expected 1 (group) or 2 (array)");
                return Err(reader.corrupt(message));
            }
        };
        let relative = flag(reader, "relative URI")?;
        let uri = text64(reader, "the member's URI")?;
        let has_name = flag(reader, "named")?;
        let name = if has_name { Some(text64(reader, "the member's name")?) } else { None };
        let deleted = version >= 2 && flag(reader, "removed")?;
        Ok((Self { name, uri, relative, kind }, deleted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{Folder, generic_tile};

    const UUID: &str = "0123456789abcdef0123456789abcdef";

    fn member(version: u32, uri: &str, name: Option<&str>, deleted: bool) -> Vec<u8> {
        let mut member = version.to_le_bytes().to_vec();
        member.extend([2, 1]);
        member.extend((uri.len() as u64).to_le_bytes());
        member.extend(uri.bytes());
        member.push(u8::from(name.is_some()));
        if let Some(name) = name {
            member.extend((name.len() as u64).to_le_bytes());
            member.extend(name.bytes());
        }
        if version >= 2 {
            member.push(u8::from(deleted));
        }
        member
    }

    fn details(version: u32, members: &[Vec<u8>]) -> Vec<u8> {
        let mut details = version.to_le_bytes().to_vec();
        details.extend((members.len() as u64).to_le_bytes());
        details.extend(members.concat());
        details
    }

    fn uris(folder: &Folder, end: u64) -> Vec<String> {
        let options = OpenOptions { end: Some(end), ..OpenOptions::default() };
        let members = folder.drive(ReadGroup::new(options)).unwrap();
        members.into_iter().map(|member| member.uri).collect()
    }

    #[test]
    fn members_come_and_go() {
        let mut folder = Folder::default();
        let mut put = |time: u64, version: u32, members: &[Vec<u8>]| {
            let name = format!("__group/__{time}_{time}_{UUID}_{version}");
            folder.put(&name, &generic_tile(&details(version, members)));
        };
        put(10, 1, &[member(1, "x", None, false)]);
        put(20, 1, &[member(1, "y", None, false), member(1, "z", Some("Z"), false)]);
        put(30, 2, &[member(2, "z", Some("Z"), true), member(2, "w", Some("A"), false)]);
        assert_eq!(uris(&folder, 9), [""; 0]);
        assert_eq!(uris(&folder, 10), ["x"]);
        assert_eq!(uris(&folder, 20), ["z", "y"]);
        assert_eq!(uris(&folder, 30), ["w", "y"]);
    }

    #[test]
    fn bad_details_are_errors() {
        let content = details(2, &[member(2, "z", Some("Z"), false)]);
        let parse = |content: &[u8]| apply(content, &mut BTreeMap::new());
        parse(&content).unwrap();
        for len in 0..content.len() {
            assert!(parse(&content[..len]).is_err());
        }
        assert!(parse(&details(3, &[])).is_err());
        assert!(parse(&details(2, &[member(3, "z", None, false)])).is_err());
        let mut unknown = content.clone();
        unknown[16] = 7;
        assert!(parse(&unknown).is_err());
    }
}
