//! The machine that finds the arrays of a store.
//!
//! ```text
//!   the documents of the root ──▶ consolidated: all metadata is in one of them ──▶ done
//!                             └─▶ a group ──▶ list its folders ──▶ their documents ──▶ groups among them, and again
//! ```
//!
//! A store with consolidated metadata opens in one round trip in version 3, and in two in version 2. Any other takes two more for
//! each level of groups. Two or three more follow if lengths differ: see `torn`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::array::ZarrArray;
use super::characters::join_characters;
use super::half::{check_consolidated, record_size};
use super::json::Object;
use super::locate::LocateZarr;
use super::node::{self, Documents, Node};
use crate::journal::{JOURNAL, Journal};
use gridfusion_cf::hierarchy::{Hierarchy, Unreadable};
use gridfusion_core::format::{ByteRange, Entry, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The document of a node of version 3.
const NODE: &str = "zarr.json";
/// The documents of version 2.
const METADATA: &str = ".zmetadata";
const ARRAY: &str = ".zarray";
const GROUP: &str = ".zgroup";
const ATTRIBUTES: &str = ".zattrs";

/// The most groups and arrays that are found by listing folders.
const MAX_NODES: usize = 1 << 16;

/// The most parts of the path of a group or an array.
const MAX_DEPTH: usize = 32;

/// Whether a folder with these entries is a Zarr group or array.
pub fn is_zarr(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.size.is_some() && is_document_of_node(&entry.name))
}

/// Whether an object of this name shows that its folder is a Zarr group or array.
pub(super) fn is_document_of_node(name: &str) -> bool {
    [NODE, METADATA, ARRAY, GROUP].contains(&name)
}

/// The arrays of a store.
#[derive(Debug, Default)]
pub struct ZarrStore {
    pub(super) hierarchy: Hierarchy,
    /// The arrays of `hierarchy.variables`, in the same order.
    pub(super) arrays: Vec<Arc<ZarrArray>>,
    has_version_2: bool,
    has_version_3: bool,
    /// Whether one document has the metadata of all arrays.
    is_consolidated: bool,
    /// The most rows of a table of references, if chunks lie where such tables have them.
    record_size: Option<u64>,
}

impl ZarrStore {
    /// The groups and arrays as variables.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// The arrays, in the order of the variables.
    pub fn arrays(&self) -> &[Arc<ZarrArray>] {
        &self.arrays
    }

    /// Returns the most rows of a table of references in Parquet; `None` if chunks are objects of the store.
    pub fn record_size(&self) -> Option<u64> {
        self.record_size
    }

    /// Returns the version of the metadata, or both if the store has both.
    pub fn version(&self) -> &'static str {
        match (self.has_version_2, self.has_version_3) {
            (true, true) => "2 and 3",
            (_, true) => "3",
            _ => "2",
        }
    }

    /// Returns the places of the arrays' own documents, if one document has the metadata of all; empty otherwise.
    pub fn own_documents(&self) -> Vec<Location> {
        let name = if self.has_version_3 { NODE } else { ARRAY };
        let at = |array: &Arc<ZarrArray>| {
            Location::new(object(&array.variable().path, name), ByteRange::Whole)
        };
        self.arrays.iter().filter(|_| self.is_consolidated).map(at).collect()
    }

    /// Compares the arrays with their [`ZarrStore::own_documents`]. Returns a warning for each that differs, with the number of
    /// its variable.
    pub fn stale(&self, own: &[Option<Bytes>]) -> Vec<(usize, String)> {
        let differs = |(number, (array, own)): (usize, (&Arc<ZarrArray>, &Option<Bytes>))| {
            let path = &array.variable().path;
            let document = node::parse(own.as_ref()?).ok()?;
            let node = match self.has_version_3 {
                true => node::version3(path, &document),
                false => {
                    let array = Some(document);
                    node::version2(path, &Documents { array, attributes: None })
                }
            };
            let Ok(Node::Array(mut own)) = node else { return None };
            if array.has_characters() {
                own.join_characters();
            }
            let shapes = [array.variable().shape(), own.variable().shape()];
            let facts = |array: &ZarrArray| {
                let variable = array.variable();
                let chunk =
                    (variable.chunk_shape.clone(), array.shard_shape().map(<[u64]>::to_vec));
                (chunk, variable.cell.clone(), variable.fill.clone(), array.encoding())
            };
            let what = match shapes[0] == shapes[1] {
                false => format!("the shape {:?}, and its own {:?}", shapes[0], shapes[1]),
                true if facts(array) != facts(&own) => {
                    "other chunks, types, fill values or codecs than its own".to_owned()
                }
                true => return None,
            };
            let message = format!(
                "the consolidated metadata of \"{path}\" has {what}; consolidate the metadata again"
            );
            Some((number, message))
        };
        self.arrays.iter().zip(own).enumerate().filter_map(differs).collect()
    }

    /// Returns a machine that finds chunks of a variable, by their coordinates.
    ///
    /// # Errors
    /// `Internal` if there is no such variable.
    pub fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<LocateZarr> {
        let array = self.arrays.get(variable);
        let array = array.ok_or_else(|| Error::internal("a variable that does not exist"))?;
        Ok(LocateZarr::new(Arc::clone(array), chunks))
    }

    /// Makes a store of all its documents, by their paths.
    ///
    /// # Errors
    /// `Corrupt` if a path leads out of the store.
    pub(crate) fn from_documents(documents: Object) -> Result<Self> {
        let mut store = Self::default();
        let mut nodes: BTreeMap<String, Documents> = BTreeMap::new();
        for (object, content) in documents {
            let (path, name) = object.rsplit_once('/').unwrap_or(("", &object));
            let path = checked(path)?;
            let Value::Object(content) = content else { continue };
            if name == NODE {
                store.add(path, NODE, node::version3(path, &content));
                continue;
            }
            let documents = nodes.entry(path.to_owned()).or_default();
            match name {
                ARRAY => documents.array = Some(content),
                ATTRIBUTES => documents.attributes = Some(content),
                _ => {}
            }
        }
        for (path, documents) in nodes {
            store.add(&path, ARRAY, node::version2(&path, &documents));
        }
        store.finish();
        Ok(store)
    }

    /// Makes a store of version 3 of the documents of its groups and arrays, by their paths.
    ///
    /// # Errors
    /// `Corrupt` if a path leads out of the store.
    pub(super) fn from_nodes(nodes: Vec<(String, Result<Object>)>) -> Result<Self> {
        let mut store = Self::default();
        for (path, document) in nodes {
            let path = checked(&path)?;
            store.add(path, NODE, document.and_then(|it| node::version3(path, &it)));
        }
        store.finish();
        Ok(store)
    }

    /// Does what needs all arrays.
    fn finish(&mut self) {
        let groups = &self.hierarchy.groups;
        // References count from the root, also where a store is opened from a group on.
        let is_elsewhere = |labels: &String| {
            let group = labels.rsplit_once('/').map_or("", |(group, _)| group);
            !group.is_empty() && !groups.contains_key(group)
        };
        for axis in self.hierarchy.variables.iter_mut().flat_map(|it| &mut it.axes) {
            axis.labels = axis.labels.take().filter(|labels| !is_elsewhere(labels));
        }
        join_characters(&mut self.hierarchy, &mut self.arrays);
    }

    /// Adds what a path holds; an array that cannot be read keeps its error. Returns whether it is a group.
    fn add(&mut self, path: &str, document: &str, node: Result<Node>) -> bool {
        let object = object(path, document);
        *(if document == NODE { &mut self.has_version_3 } else { &mut self.has_version_2 }) = true;
        match node {
            Ok(Node::Group(attributes)) => {
                self.hierarchy.groups.insert(path.to_owned(), attributes.into());
                true
            }
            Ok(Node::Array(array)) => {
                self.hierarchy.variables.push(array.variable().clone());
                self.arrays.push(Arc::new(*array));
                false
            }
            Err(error) => {
                let error = error.in_file(&object);
                self.hierarchy.unreadable.push(Unreadable::new(path.to_owned(), error));
                false
            }
        }
    }
}

/// A machine that reads the metadata of a store.
#[derive(Debug, Default)]
pub struct OpenZarr {
    store: ZarrStore,
    state: OpenStoreState,
}

#[derive(Debug, Default)]
enum OpenStoreState {
    /// The document of version 3 of the root was requested.
    #[default]
    Root,
    /// The documents of version 2 of the root were requested.
    Root2,
    /// The folders of these groups were requested.
    Listing { version: u32, groups: Vec<String> },
    /// The documents of these folders were requested.
    Reading { version: u32, folders: Vec<String> },
    /// The root was listed, because the lengths of these arrays differ.
    Torn { arrays: Vec<String> },
    /// The journal of an append was requested.
    Journal { arrays: Vec<String> },
    /// The documents of these arrays were requested again.
    Again { journal: Option<Journal>, arrays: Vec<String> },
}

impl OpenZarr {
    /// Makes a machine for the store in a folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the documents of version 2 only if there is none of version 3: each absent one costs a request.
    fn root(&mut self, replies: Replies) -> Result<Step<ZarrStore>> {
        match parsed(NODE, replies.into_present().into_iter().next().flatten())? {
            Some(node) => self.root3(&node),
            None => {
                self.state = OpenStoreState::Root2;
                Ok(whole(&[METADATA, ARRAY, GROUP, ATTRIBUTES]))
            }
        }
    }

    fn root2(&mut self, replies: Replies) -> Result<Step<ZarrStore>> {
        let mut replies = replies.into_present().into_iter();
        let mut next = |name: &str| parsed(name, replies.next().flatten());
        if let Some(metadata) = next(METADATA)? {
            check_consolidated(&metadata).map_err(|error| error.in_file(METADATA))?;
            let documents = match metadata.get("metadata") {
                Some(Value::Object(documents)) => Ok(documents.clone()),
                _ => Err(Error::corrupt_region("metadata", "no object \"metadata\"")),
            };
            let record_size = record_size(&metadata).map_err(|error| error.in_file(METADATA))?;
            let store = documents.and_then(ZarrStore::from_documents);
            let store =
                store.map(|store| ZarrStore { is_consolidated: true, record_size, ..store });
            return store.map(Step::Done).map_err(|error| error.in_file(METADATA));
        }
        let array = next(ARRAY)?;
        let group = next(GROUP)?;
        if array.is_none() && group.is_none() {
            return Err(Error::usage(
                "there is no Zarr array or group: none of zarr.json, .zgroup, .zarray and .zmetadata exists",
            ));
        }
        let documents = Documents { array, attributes: next(ATTRIBUTES)? };
        let is_group = self.store.add("", ARRAY, node::version2("", &documents));
        self.below(2, if is_group { vec![String::new()] } else { vec![] })
    }

    fn root3(&mut self, node: &Object) -> Result<Step<ZarrStore>> {
        let consolidated = node.get("consolidated_metadata").filter(|it| !it.is_null());
        let kind = consolidated.and_then(|it| it.get("kind"));
        if let Some(kind) = kind.filter(|kind| kind.as_str() != Some("inline")) {
            let message = format!("consolidated metadata of the kind {kind}");
            return Err(Error::unsupported(message).in_file(NODE));
        }
        let consolidated = consolidated.and_then(|it| it.get("metadata"));
        let is_group = self.store.add("", NODE, node::version3("", node));
        if !is_group {
            return self.below(3, vec![]);
        }
        let Some(Value::Object(nodes)) = consolidated else {
            return self.below(3, vec![String::new()]);
        };
        self.store.is_consolidated = true;
        for (path, node) in nodes {
            let nothing = Object::new();
            let node = node.as_object().unwrap_or(&nothing);
            let path = checked(path).map_err(|error| error.in_file(NODE))?;
            self.store.add(path, NODE, node::version3(path, node));
        }
        Ok(self.done())
    }

    /// Requests the folders of `groups`, or ends if there are none.
    fn below(&mut self, version: u32, groups: Vec<String>) -> Result<Step<ZarrStore>> {
        let is_deep = |group: &String| group.split('/').count() > MAX_DEPTH;
        if let Some(group) = groups.iter().find(|group| is_deep(group)) {
            return Err(Error::unsupported(format!("groups as deep as {group}")));
        }
        if groups.is_empty() {
            if let Some(arrays) = self.store.torn().filter(|_| version == 3) {
                self.state = OpenStoreState::Torn { arrays };
                return Ok(Step::List(vec![String::new()]));
            }
            return Ok(self.done());
        }
        let step = Step::List(groups.clone());
        self.state = OpenStoreState::Listing { version, groups };
        Ok(step)
    }

    /// Requests the documents of the folders of groups.
    fn listed(
        &mut self,
        version: u32,
        groups: &[String],
        replies: Replies,
    ) -> Result<Step<ZarrStore>> {
        let mut folders = Vec::new();
        for (group, entries) in groups.iter().zip(replies.into_listings()) {
            let inner = entries.iter().filter(|it| it.size.is_none() && may_be_node(&it.name));
            folders.extend(inner.map(|entry| object(group, &entry.name)));
        }
        let nodes = self.store.arrays.len() + self.store.hierarchy.groups.len() + folders.len();
        if nodes > MAX_NODES {
            let message =
                format!("more than {MAX_NODES} groups and arrays without consolidated metadata");
            return Err(Error::unsupported(message));
        }
        if folders.is_empty() {
            return Ok(self.done());
        }
        folders.sort_unstable();
        let names = documents(version);
        let at =
            |folder: &String, name: &str| Location::new(object(folder, name), ByteRange::Whole);
        let locations =
            folders.iter().flat_map(|folder| names.iter().map(move |name| at(folder, name)));
        let step = Step::ReadIfPresent(locations.collect());
        self.state = OpenStoreState::Reading { version, folders };
        Ok(step)
    }

    /// Adds the nodes of folders, and goes on with the groups among them.
    fn read(
        &mut self,
        version: u32,
        folders: Vec<String>,
        replies: Replies,
    ) -> Result<Step<ZarrStore>> {
        let mut replies = replies.into_present().into_iter();
        let mut groups = Vec::new();
        for path in folders {
            let contents: Vec<Option<Bytes>> =
                replies.by_ref().take(documents(version).len()).collect();
            if contents.iter().all(Option::is_none) {
                continue; // a folder that is no node
            }
            let node = match version {
                2 => node2(&path, contents),
                _ => node3(&path, contents),
            };
            if self.store.add(&path, documents(version)[0], node) {
                groups.push(path);
            }
        }
        self.below(version, groups)
    }

    /// Requests the journal if it is there. Sessions remember that documents are absent, so only the list tells that it is not.
    fn root_listed(&mut self, arrays: Vec<String>, replies: Replies) -> Step<ZarrStore> {
        let entries = replies.into_listings().into_iter().flatten();
        if !entries.into_iter().any(|entry| entry.name == JOURNAL) {
            return self.again(arrays, None);
        }
        self.state = OpenStoreState::Journal { arrays };
        whole(&[JOURNAL])
    }

    /// Requests documents again, whose lengths the journal explains.
    fn again(&mut self, arrays: Vec<String>, journal: Option<Bytes>) -> Step<ZarrStore> {
        // One that is no journal explains none.
        let journal = journal.and_then(|bytes| Journal::parse(&bytes).ok());
        let names: Vec<String> = arrays.iter().map(|path| object(path, NODE)).collect();
        self.state = OpenStoreState::Again { journal, arrays };
        whole(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn done(&mut self) -> Step<ZarrStore> {
        self.store.finish();
        Step::Done(std::mem::take(&mut self.store))
    }
}

/// Requests documents of the root.
fn whole(names: &[&str]) -> Step<ZarrStore> {
    let at = |name: &&str| Location::new(*name, ByteRange::Whole);
    Step::ReadIfPresent(names.iter().map(at).collect())
}

/// The documents of a node that may be in a folder.
fn documents(version: u32) -> &'static [&'static str] {
    if version == 2 { &[ARRAY, GROUP, ATTRIBUTES] } else { &[NODE] }
}

fn node2(path: &str, contents: Vec<Option<Bytes>>) -> Result<Node> {
    let mut contents = contents.into_iter();
    let mut next = |name: &str| parsed(name, contents.next().flatten());
    let (array, _, attributes) = (next(ARRAY)?, next(GROUP)?, next(ATTRIBUTES)?);
    node::version2(path, &Documents { array, attributes })
}

fn node3(path: &str, contents: Vec<Option<Bytes>>) -> Result<Node> {
    let document = parsed(NODE, contents.into_iter().next().flatten())?;
    node::version3(path, &document.unwrap_or_default())
}

fn parsed(name: &str, bytes: Option<Bytes>) -> Result<Option<Object>> {
    bytes.map(|bytes| node::parse(&bytes)).transpose().map_err(|error| error.in_file(name))
}

/// Returns the path of something in a group.
fn object(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// Returns a path within the store; fails for one that leads out of it.
fn checked(path: &str) -> Result<&str> {
    let path = path.trim_matches('/');
    let is_name =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\\');
    let parts = path.split('/').take(MAX_DEPTH + 1);
    if parts.clone().count() > MAX_DEPTH {
        let start: String = path.chars().take(60).collect();
        return Err(Error::unsupported(format!("groups as deep as \"{start}…\"")));
    }
    match path.is_empty() || parts.into_iter().all(is_name) {
        true => Ok(path),
        false => Err(Error::corrupt_region("metadata", format!("a node at the path \"{path}\""))),
    }
}

impl Machine for OpenZarr {
    type Output = ZarrStore;

    fn step(&mut self, replies: Replies) -> Result<Step<ZarrStore>> {
        if matches!(replies, Replies::Start) {
            return Ok(whole(&[NODE]));
        }
        match std::mem::take(&mut self.state) {
            OpenStoreState::Root => self.root(replies),
            OpenStoreState::Root2 => self.root2(replies),
            OpenStoreState::Listing { version, groups } => self.listed(version, &groups, replies),
            OpenStoreState::Reading { version, folders } => self.read(version, folders, replies),
            OpenStoreState::Torn { arrays } => Ok(self.root_listed(arrays, replies)),
            OpenStoreState::Journal { arrays } => {
                let journal = replies.into_present().into_iter().next().flatten();
                Ok(self.again(arrays, journal))
            }
            OpenStoreState::Again { journal, arrays } => {
                self.store.read_again(&arrays, replies.into_present(), journal.as_ref());
                Ok(self.done())
            }
        }
    }
}

/// Whether a folder of a group may be one of its nodes. Hidden ones are not, nor those that a writer is about to rename. A folder without a
/// name would be its own parent.
pub(crate) fn may_be_node(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(".gridfusion-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_name_is_no_node() {
        let mut machine = OpenZarr::new();
        machine.step(Replies::Start).unwrap();
        machine.step(Replies::IfPresent(vec![None])).unwrap();
        let group = Bytes::from_static(br#"{"zarr_format": 2}"#);
        let root = vec![None, None, Some(group), None];
        let step = machine.step(Replies::IfPresent(root)).unwrap();
        assert!(matches!(step, Step::List(folders) if folders == [""]));
        let nameless = Entry::new(String::new(), None);
        let step = machine.step(Replies::Listings(vec![vec![nameless]])).unwrap();
        assert!(matches!(step, Step::Done(store) if store.arrays().is_empty()));
    }
}
