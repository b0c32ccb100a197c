//! [`RepositoryObject`]: the object `repo` of version 2, with all branches, tags and snapshots.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::containers::Containers;
use super::flat::{Buffer, Table};
use super::flex::{flexbuffer, message_pack};
use super::header::{Kind, content};
use super::id::ObjectId;
use gridfusion_core::{Error, Result};

/// The parsed object.
#[derive(Debug, Clone)]
pub(super) struct RepositoryObject {
    /// Branches by name, in order, each with the number of its snapshot.
    pub(super) branches: Vec<(String, usize)>,
    pub(super) tags: Vec<(String, usize)>,
    pub(super) deleted_tags: Vec<String>,
    /// All snapshots, in the order of their ids.
    pub(super) snapshots: Vec<SnapshotFacts>,
    pub(super) containers: Containers,
    /// The bytes of memory that it takes, about.
    pub(super) memory: u64,
}

/// Facts about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// Its id.
    pub id: ObjectId,
    /// The id of the snapshot that it changed; `None` for the first one, and where that was deleted.
    pub parent: Option<ObjectId>,
    /// When it was written, in microseconds since 1970.
    pub time: u64,
    /// The message of the commit.
    pub message: String,
    /// The metadata of the commit as JSON; empty without any.
    pub metadata: String,
}

impl RepositoryObject {
    /// Parses the object, of which the option `metadata_limit` allows `most` bytes.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if it cannot be read; `Usage` for a repository that was set offline.
    pub(super) fn parse(bytes: &Bytes, most: u64) -> Result<Self> {
        let content = content(Kind::Repository, bytes, most)?;
        let buffer = Buffer::new(&content.bytes, Kind::Repository.region());
        let root = buffer.root()?;
        match root.u8(0, 0)? {
            1 | 2 => {}
            other => {
                let message = format!("version {other} of Icechunk; gridfusion reads 1 and 2");
                return Err(Error::unsupported(message));
            }
        }
        check_status(&root)?;
        let snapshots = snapshots(&root)?;
        let deleted = root.vector(3)?.texts().map(|it| it.map(str::to_owned));
        let config = root.bytes(9)?.map(Containers::from_flexbuffer);
        Ok(Self {
            tags: references(&root, 1, snapshots.len())?,
            branches: references(&root, 2, snapshots.len())?,
            deleted_tags: deleted.collect::<Result<_>>()?,
            snapshots,
            containers: config.unwrap_or_default(),
            memory: content.bytes.len() as u64,
        })
    }

    /// Returns a snapshot by its id.
    pub(super) fn snapshot(&self, id: &ObjectId) -> Option<&SnapshotFacts> {
        let at = self.snapshots.binary_search_by(|it| it.id.cmp(id)).ok()?;
        self.snapshots.get(at)
    }

    /// Returns a snapshot and those before it, newest first.
    ///
    /// # Errors
    /// `Corrupt` if one of them comes before itself.
    pub(super) fn history(&self, newest: &ObjectId) -> Result<Vec<&SnapshotFacts>> {
        let (mut all, mut seen) = (vec![], HashSet::new());
        let mut next = self.snapshot(newest);
        while let Some(facts) = next {
            if !seen.insert(facts.id) {
                return Err(comes_before_itself(&facts.id));
            }
            all.push(facts);
            next = facts.parent.and_then(|parent| self.snapshot(&parent));
        }
        Ok(all)
    }
}

/// Returns the error for a snapshot among those before it.
pub(super) fn comes_before_itself(id: &ObjectId) -> Error {
    Error::corrupt_region("history", format!("the snapshot {id} comes before itself"))
}

/// Fails for a repository that was set offline.
fn check_status(root: &Table<'_>) -> Result<()> {
    let Some(status) = root.table(5)? else { return Ok(()) };
    match status.u8(0, 0)? {
        0 | 1 => Ok(()),
        2 => {
            let reason = status.text(2)?.map(|it| format!(": {it}")).unwrap_or_default();
            Err(Error::usage(format!("the Icechunk repository was set offline{reason}")))
        }
        other => Err(Error::unsupported(format!("status {other} of an Icechunk repository"))),
    }
}

/// Returns branches or tags.
fn references(root: &Table<'_>, field: usize, snapshots: usize) -> Result<Vec<(String, usize)>> {
    let mut all = BTreeMap::new();
    for reference in root.vector(field)?.tables() {
        let reference = reference?;
        let name = reference.needed(reference.text(0)?, "name of a branch or tag")?;
        let number = reference.u32(1)? as usize;
        if number >= snapshots {
            let message = format!("\"{name}\" is snapshot {number} of {snapshots}");
            return Err(reference.corrupt(message));
        }
        if all.insert(name.to_owned(), number).is_some() {
            return Err(reference.corrupt(format!("the name \"{name}\" is there twice")));
        }
    }
    Ok(all.into_iter().collect())
}

fn snapshots(root: &Table<'_>) -> Result<Vec<SnapshotFacts>> {
    let (mut all, mut parents): (Vec<SnapshotFacts>, Vec<i32>) = (vec![], vec![]);
    for snapshot in root.vector(4)?.tables() {
        let snapshot = snapshot?;
        let id = ObjectId(snapshot.needed(snapshot.fixed(0)?, "id of a snapshot")?);
        if all.last().is_some_and(|before| before.id >= id) {
            return Err(snapshot.corrupt(format!("the snapshot {id} is out of order")));
        }
        parents.push(snapshot.i32(1)?);
        all.push(SnapshotFacts {
            id,
            parent: None,
            time: snapshot.u64(2)?,
            message: snapshot.text(3)?.unwrap_or_default().to_owned(),
            metadata: metadata(&snapshot, 4, 2)?,
        });
    }
    for (number, parent) in parents.into_iter().enumerate() {
        all[number].parent = match parent {
            -1 => None,
            parent => {
                let known = usize::try_from(parent).ok().and_then(|parent| all.get(parent));
                let message =
                    || root.corrupt(format!("a snapshot whose parent is number {parent}"));
                Some(known.ok_or_else(message)?.id)
            }
        };
    }
    Ok(all)
}

/// Returns the metadata of a commit in this field as JSON. A value that cannot be read is null: it is
/// a note of people.
pub(super) fn metadata(table: &Table<'_>, field: usize, version: u8) -> Result<String> {
    let mut all = Map::new();
    for item in table.vector(field)?.tables() {
        let item = item?;
        let name = item.needed(item.text(0)?, "name of metadata")?;
        let bytes = item.bytes(1)?.unwrap_or_default();
        let value = if version == 1 { message_pack(bytes) } else { flexbuffer(bytes) };
        all.insert(name.to_owned(), value.unwrap_or(Value::Null));
    }
    Ok(if all.is_empty() { String::new() } else { Value::Object(all).to_string() })
}
