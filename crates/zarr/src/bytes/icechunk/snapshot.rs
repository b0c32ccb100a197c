//! [`Snapshot`]: one version of a repository: all groups and arrays, and the manifests that list their chunks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::flat::{Buffer, Table};
use super::header::{Kind, content};
use super::id::{NodeId, ObjectId};
use super::manifest_refs::{ManifestRef, ManifestRefs};
use super::repository::{SnapshotFacts, metadata};
use crate::bytes::json::Object;
use crate::bytes::node;
use gridfusion_core::{Error, Result};

/// The bytes of parsed documents for each byte of a snapshot, which mostly has texts.
const PARSED: u64 = 4;

/// A parsed snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) facts: SnapshotFacts,
    /// The version of the specification in its header.
    pub(super) version: u8,
    /// The documents of groups and arrays, by their paths without a slash at the beginning.
    pub(super) documents: Vec<(String, Result<Object>)>,
    /// The chunks of arrays, by the paths of these.
    pub(super) arrays: HashMap<String, Arc<ArrayChunks>>,
    /// The facts about all manifests.
    pub(super) manifests: HashMap<ObjectId, ManifestFacts>,
    /// The bytes of memory that it takes, about.
    pub(super) memory: u64,
}

/// Where the chunks of an array are listed.
#[derive(Debug)]
pub(super) struct ArrayChunks {
    pub(super) id: NodeId,
    pub(super) manifests: ManifestRefs,
}

/// The facts about a manifest that a snapshot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ManifestFacts {
    /// Its bytes as stored.
    pub(super) bytes: u64,
    /// The number of chunks that it lists.
    pub(super) chunks: u32,
}

impl Snapshot {
    /// Parses the snapshot with this id, of which the option `metadata_limit` allows `most` bytes.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported` if it cannot be read, or is another one.
    pub(super) fn parse(id: &ObjectId, bytes: &Bytes, most: u64) -> Result<Self> {
        let content = content(Kind::Snapshot, bytes, most)?;
        let buffer = Buffer::new(&content.bytes, Kind::Snapshot.region());
        let root = buffer.root()?;
        let mut snapshot = Self {
            facts: facts(&root, id, content.version)?,
            version: content.version,
            documents: vec![],
            arrays: HashMap::new(),
            manifests: manifests(&root)?,
            memory: (content.bytes.len() as u64).saturating_mul(PARSED),
        };
        snapshot.add_nodes(&root)?;
        Ok(snapshot)
    }

    /// Parses only the facts about the snapshot with this id.
    ///
    /// # Errors
    /// As [`Snapshot::parse`].
    pub(super) fn facts(id: &ObjectId, bytes: &Bytes, most: u64) -> Result<SnapshotFacts> {
        let content = content(Kind::Snapshot, bytes, most)?;
        let buffer = Buffer::new(&content.bytes, Kind::Snapshot.region());
        facts(&buffer.root()?, id, content.version)
    }

    /// Adds all groups and arrays. Programs have sorted their paths by bytes, and by parts.
    fn add_nodes(&mut self, root: &Table<'_>) -> Result<()> {
        let mut paths = HashSet::new();
        for node in root.vector(2)?.tables() {
            let node = node?;
            let path = node.needed(node.text(1)?, "path of a group or array")?;
            if !paths.insert(path) {
                return Err(node.corrupt(format!("two nodes have the path \"{path}\"")));
            }
            let relative = path.strip_prefix('/');
            let relative = relative.ok_or_else(|| node.corrupt(format!("the path \"{path}\"")))?;
            let document = node::parse(node.bytes(2)?.unwrap_or_default());
            let document = match node.u8(3, 0)? {
                1 => document.and_then(|document| self.add_array(&node, relative, document)),
                2 => document.and_then(|document| check_kind(document, "group")),
                other => Err(Error::unsupported(format!("a node of type {other}"))),
            };
            self.documents.push((relative.to_owned(), document));
        }
        Ok(())
    }

    /// Adds an array, and returns its document.
    fn add_array(&mut self, node: &Table<'_>, path: &str, document: Object) -> Result<Object> {
        let document = check_kind(document, "array")?;
        let id = node.needed(node.fixed(0)?, "id of an array")?;
        let array = node.needed(node.table(4)?, "facts about an array")?;
        let lens: Vec<u64> = match array.vector(3)?.len() {
            // Version 1: pairs of lengths.
            0 => {
                let pairs = array.records(0, 16)?.unwrap_or_default().chunks_exact(16);
                pairs.map(|it| number(it, 0)).collect()
            }
            _ => array.vector(3)?.tables().map(|axis| axis?.u64(0)).collect::<Result<_>>()?,
        };
        let declared = document.get("shape").and_then(|it| it.as_array());
        let declared = declared.map(|it| it.iter().map(|len| len.as_u64()).collect::<Vec<_>>());
        if declared != Some(lens.iter().copied().map(Some).collect()) {
            let shape = document.get("shape");
            let shape = shape.map(ToString::to_string).unwrap_or_default();
            return Err(node.corrupt(format!(
                "the array \"{path}\" has the shape {lens:?}, and its document has {shape}"
            )));
        }
        let mut all = vec![];
        for manifest in array.vector(2)?.tables() {
            let manifest = manifest?;
            let id = ObjectId(manifest.needed(manifest.fixed(0)?, "id of a manifest")?);
            let extents = manifest.records(1, 8)?.unwrap_or_default().chunks_exact(8);
            let range = |it: &[u8]| number(&it[..4], 0)..number(&it[4..], 0);
            all.push(ManifestRef { id, extents: extents.map(range).collect() });
        }
        let manifests = ManifestRefs::new(all, lens.len())
            .map_err(|message| node.corrupt(format!("the array \"{path}\" {message}")))?;
        self.arrays.insert(path.to_owned(), Arc::new(ArrayChunks { id, manifests }));
        Ok(document)
    }
}

/// Returns the facts about the snapshot with this id.
fn facts(root: &Table<'_>, id: &ObjectId, version: u8) -> Result<SnapshotFacts> {
    let own = ObjectId(root.needed(root.fixed(0)?, "id of the snapshot")?);
    if own != *id {
        return Err(root.corrupt(format!("it is the snapshot {own}, expected {id}")));
    }
    Ok(SnapshotFacts {
        id: own,
        parent: root.fixed(1)?.map(ObjectId),
        time: root.u64(3)?,
        message: root.text(4)?.unwrap_or_default().to_owned(),
        metadata: metadata(root, 5, version)?,
    })
}

/// Returns the number that begins at `at` and has up to eight bytes.
fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).unwrap_or_default().iter().take(8);
    bytes.rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Fails for a document of another kind of node than the snapshot has.
fn check_kind(document: Object, kind: &str) -> Result<Object> {
    match document.get("node_type").and_then(|it| it.as_str()) {
        Some(own) if own == kind => Ok(document),
        other => {
            let other = other.unwrap_or("nothing");
            let message = format!("a document of type \"{other}\", expected \"{kind}\"");
            Err(Error::corrupt_region("metadata", message))
        }
    }
}

/// Returns what a snapshot tells of all manifests: in a list of structs in version 1, and of tables in version 2.
fn manifests(root: &Table<'_>) -> Result<HashMap<ObjectId, ManifestFacts>> {
    /// Twelve bytes, and a gap of four; the bytes; the chunks, and a gap of four.
    const WIDTH: usize = 32;
    let mut all = HashMap::new();
    for manifest in root.records(6, WIDTH)?.unwrap_or_default().chunks_exact(WIDTH) {
        let id = ObjectId(manifest.first_chunk().copied().unwrap_or_default());
        let chunks = number(&manifest[24..28], 0) as u32;
        all.insert(id, ManifestFacts { bytes: number(manifest, 16), chunks });
    }
    for manifest in root.vector(7)?.tables() {
        let manifest = manifest?;
        let id = ObjectId(manifest.needed(manifest.fixed(0)?, "id of a manifest")?);
        all.insert(id, ManifestFacts { bytes: manifest.u64(1)?, chunks: manifest.u32(2)? });
    }
    Ok(all)
}
