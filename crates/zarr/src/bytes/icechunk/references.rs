//! Branches and tags of version 1, which are objects of their own, and the history of a snapshot.
//!
//! ```text
//!   refs/branch.main/ref.json        {"snapshot": "VY76P925PRY57WFEK410"}
//!   refs/tag.v1/ref.json             the same
//!   refs/tag.v0/ref.json.deleted     a tag that was deleted, and keeps its other object
//! ```

use std::collections::HashSet;

use bytes::Bytes;

use super::id::ObjectId;
use super::repository::{SnapshotFacts, comes_before_itself};
use super::snapshot::Snapshot;
use super::version::VersionChoice;
use crate::bytes::json::document;
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// A branch or a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSnapshot {
    /// `branch` or `tag`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The snapshot that it names.
    pub id: ObjectId,
}

/// The branches and tags of a repository, and the tags that were deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownReferences {
    /// Branches, then tags, each in the order of their names.
    pub named: Vec<NamedSnapshot>,
    /// The names of tags that were deleted.
    pub deleted: Vec<String>,
}

impl KnownReferences {
    /// Divides a dataset such as `main/forecast/t2m` into the version that it begins with and the rest. `None` without a version.
    ///
    /// # Errors
    /// `Usage` for the name of a branch and a tag.
    pub fn split<'a>(&self, dataset: &'a str) -> Result<Option<(VersionChoice, Option<&'a str>)>> {
        let fits = self.named.iter().filter_map(|it| Some((it, behind(&it.name, dataset)?)));
        // A name may have parts itself.
        let longest = fits.clone().map(|(it, _)| it.name.len()).max();
        let mut fits = fits.filter(|(it, _)| Some(it.name.len()) == longest);
        match (fits.next(), fits.next()) {
            (Some((it, _)), Some(_)) => Err(Error::usage(format!(
                "\"{}\" is a branch and a tag; choose with an option: branch => '{}' or tag => '{}'",
                it.name, it.name, it.name
            ))),
            (Some((it, rest)), None) => {
                let choice = match it.kind {
                    "tag" => VersionChoice::Tag(it.name.clone()),
                    _ => VersionChoice::Branch(it.name.clone()),
                };
                Ok(Some((choice, rest)))
            }
            (None, _) => {
                let first = dataset.split('/').next().unwrap_or_default();
                let id = ObjectId::parse(first).ok();
                let split = id.zip(behind(first, dataset));
                Ok(split.map(|(id, rest)| (VersionChoice::Snapshot(id), rest)))
            }
        }
    }
}

/// Returns the rest of a dataset that begins with a name; `None` if it does not.
fn behind<'a>(name: &str, dataset: &'a str) -> Option<Option<&'a str>> {
    match dataset.strip_prefix(name)? {
        "" | "/" => Some(None),
        rest => rest.strip_prefix('/').map(Some),
    }
}

impl VersionChoice {
    /// Returns the rest of a dataset that begins with this version; `None` if it does not.
    pub fn behind<'a>(&self, dataset: &'a str) -> Option<Option<&'a str>> {
        let first = dataset.split('/').next().unwrap_or_default();
        match self {
            Self::Snapshot(id) if ObjectId::parse(first).is_ok_and(|it| it == *id) => {
                behind(first, dataset)
            }
            Self::Snapshot(_) => None,
            Self::Branch(name) | Self::AsOf(name, _) | Self::Tag(name) => behind(name, dataset),
        }
    }
}

/// The most bytes of a name with escapes: a file of this name has a longer one.
const LONGEST_ESCAPED: usize = 200;

/// Returns the objects that a branch or tag may be; none for a name that version 1 cannot have. Object stores have them
/// under its name, whose escapes their paths add. In local folders, the escapes are in the names of files.
pub(super) fn reference_objects(kind: &str, name: &str) -> Vec<String> {
    let is_name = !name.is_empty() && !name.contains(['/', '\\', '\0']);
    let escaped = Some(escaped(name)).filter(|it| it != name && it.len() <= LONGEST_ESCAPED);
    let names = [name.to_owned()].into_iter().chain(escaped).filter(|_| is_name);
    names.map(|name| format!("refs/{kind}.{name}/ref.json")).collect()
}

/// Returns the object that tells that a tag was deleted.
pub(super) fn deleted(object: &str) -> String {
    format!("{object}.deleted")
}

/// Returns a name with the escapes that the crate `object_store` puts into paths.
fn escaped(name: &str) -> String {
    let is_plain =
        |byte: u8| (b' '..=b'~').contains(&byte) && !b"\\{^}%`]\">[~<#|*?/".contains(&byte);
    let mut escaped = String::new();
    for byte in name.bytes() {
        match is_plain(byte) {
            true => escaped.push(byte.into()),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Returns the name without its escapes; the same one if it has none.
fn unescaped(name: &str) -> String {
    let (mut bytes, mut rest) = (vec![], name.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *byte == b'%');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        let escape = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(escape.unwrap_or(*byte));
        rest = if escape.is_some() { &behind[2..] } else { behind };
    }
    let plain = String::from_utf8(bytes).ok().filter(|it| escaped(it) == name);
    plain.unwrap_or_else(|| name.to_owned())
}

/// Parses the object of a branch or tag.
pub(super) fn reference(bytes: &[u8]) -> Result<ObjectId> {
    const REGION: &str = "branch or tag";
    let document = document(REGION, bytes)?;
    let id = document.get("snapshot").and_then(|it| it.as_str()).unwrap_or_default();
    ObjectId::parse(id).map_err(|error| Error::corrupt_region(REGION, error.to_string()))
}

pub(super) fn whole(object: impl Into<std::sync::Arc<str>>) -> Location {
    Location::new(object, ByteRange::Whole)
}

/// A machine that finds all branches and tags of version 1.
#[derive(Debug, Default)]
pub struct ListReferences {
    /// The kinds and names whose objects were requested, and these.
    requested: Option<Vec<(&'static str, String, Vec<String>)>>,
}

impl Machine for ListReferences {
    type Output = KnownReferences;

    fn step(&mut self, replies: Replies) -> Result<Step<KnownReferences>> {
        let Some(requested) = self.requested.take() else {
            let Replies::Listings(listings) = replies else {
                return Ok(Step::List(vec!["refs".to_owned()]));
            };
            let named = |folder: &str| {
                let (kind, name) = folder.split_once('.')?;
                let kind = ["branch", "tag"].into_iter().find(|it| *it == kind)?;
                let name = unescaped(name);
                let objects = reference_objects(kind, &name);
                Some((kind, name, objects)).filter(|(.., objects)| !objects.is_empty())
            };
            let mut all: Vec<_> =
                listings.into_iter().flatten().filter_map(|it| named(&it.name)).collect();
            all.sort_unstable();
            all.dedup();
            let objects = all.iter().flat_map(|(.., objects)| objects);
            let both = |object: &String| [whole(deleted(object)), whole(object.clone())];
            let locations: Vec<Location> = objects.flat_map(both).collect();
            self.requested = Some(all);
            return Ok(Step::ReadIfPresent(locations));
        };
        let mut known = KnownReferences::default();
        let mut replies = replies.into_present().into_iter();
        for (kind, name, objects) in requested {
            let (mut found, mut is_deleted) = (None, false);
            for object in &objects {
                is_deleted |= replies.next().flatten().is_some();
                found = found.or(replies.next().flatten().map(|bytes| (object, bytes)));
            }
            match found {
                _ if is_deleted && kind == "tag" => known.deleted.push(name),
                Some((object, bytes)) => {
                    let id = reference(&bytes).map_err(|error| error.in_file(object))?;
                    known.named.push(NamedSnapshot { kind, name, id });
                }
                None => {}
            }
        }
        Ok(Step::Done(known))
    }
}

/// A machine that reads the facts about snapshots of version 1, each of which names the one before it.
#[derive(Debug)]
pub struct ReadHistory {
    most: u64,
    next: ObjectId,
    /// Ends at the first snapshot that is not later, in microseconds since 1970.
    until: u64,
    all: Vec<SnapshotFacts>,
    seen: HashSet<ObjectId>,
}

impl ReadHistory {
    /// Makes a machine that begins with the snapshot `newest`. The option `metadata_limit` allows snapshots of `most`
    /// bytes.
    pub fn new(newest: ObjectId, most: u64) -> Self {
        Self { most, next: newest, until: 0, all: vec![], seen: HashSet::new() }
    }

    /// Makes a machine that reads only the facts about one snapshot.
    pub fn only(id: ObjectId, most: u64) -> Self {
        Self::new(id, most).until(u64::MAX)
    }

    /// Ends at the first snapshot that is not later, in microseconds since 1970.
    pub(super) fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }
}

impl Machine for ReadHistory {
    type Output = Vec<SnapshotFacts>;

    fn subject(&self) -> &'static str {
        "history"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        if let Some(bytes) = replies.into_bytes().into_iter().next() {
            let facts = facts(&self.next, &bytes, self.most)?;
            let (parent, time) = (facts.parent, facts.time);
            self.all.push(facts);
            match parent {
                Some(parent) if time > self.until => self.next = parent,
                _ => return Ok(Step::Done(std::mem::take(&mut self.all))),
            }
        }
        if !self.seen.insert(self.next) {
            return Err(comes_before_itself(&self.next));
        }
        Ok(Step::Read(vec![whole(snapshot_object(&self.next))]))
    }
}

pub(super) fn snapshot_object(id: &ObjectId) -> String {
    format!("snapshots/{id}")
}

fn facts(id: &ObjectId, bytes: &Bytes, most: u64) -> Result<SnapshotFacts> {
    let facts = Snapshot::facts(id, bytes, most);
    facts.map_err(|error| error.in_file(&snapshot_object(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_object_stores_do() {
        for (name, expected) in [
            ("v1.0-rc_2 (a+b)!", "v1.0-rc_2 (a+b)!"),
            ("größe", "gr%C3%B6%C3%9Fe"),
            ("a%20b", "a%2520b"),
            ("issue#7?", "issue%237%3F"),
            ("~{x}*", "%7E%7Bx%7D%2A"),
        ] {
            assert_eq!(escaped(name), expected);
            assert_eq!(object_store::path::PathPart::from(name).as_ref(), expected);
            assert_eq!(unescaped(expected), name);
        }
        for name in ["100%", "a%2", "a%zz", "%ff", "größe", "%41", "%c3%b6", "%+1"] {
            assert_eq!(unescaped(name), name);
        }
        assert_eq!(reference_objects("tag", "ä").len(), 2);
        assert_eq!(reference_objects("tag", &"ä".repeat(60)).len(), 1);
        assert!(reference_objects("tag", "a/b").is_empty());
    }

    #[test]
    fn datasets_begin_with_versions() {
        let id = ObjectId::parse("VY76P925PRY57WFEK410").unwrap();
        let named = |kind, name: &str| NamedSnapshot { kind, name: name.into(), id };
        let named = vec![
            named("branch", "main"),
            named("branch", "both"),
            named("branch", "main/new"),
            named("tag", "both"),
            named("tag", "v1"),
        ];
        let known = KnownReferences { named, deleted: vec![] };
        let branch = |name: &str| VersionChoice::Branch(name.into());
        for (dataset, expected) in [
            ("main", Some((branch("main"), None))),
            ("main/", Some((branch("main"), None))),
            ("main/a/b, c", Some((branch("main"), Some("a/b, c")))),
            ("main/new/a", Some((branch("main/new"), Some("a")))),
            ("main/news/a", Some((branch("main"), Some("news/a")))),
            ("v1/a", Some((VersionChoice::Tag("v1".into()), Some("a")))),
            ("VY76P925PRY57WFEK410/a", Some((VersionChoice::Snapshot(id), Some("a")))),
            ("a/main", None),
            ("mainland", None),
            ("", None),
        ] {
            assert_eq!(known.split(dataset).unwrap(), expected, "{dataset}");
        }
        assert!(known.split("both/a").unwrap_err().to_string().contains("a branch and a tag"));
    }
}
