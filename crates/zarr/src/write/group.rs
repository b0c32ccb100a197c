//! [`ZarrGroup`]: the group of a store that an array is written to, and the documents above it.
//!
//! ```text
//!   forecast/daily/t2m/c/0  forecast/daily/t2m/zarr.json     chunks, labels, arrays
//!   forecast/daily/zarr.json  forecast/zarr.json             groups that are new
//!   zarr.json                  a new store, or one with consolidated metadata: it lists them all     ◀ published
//!   forecast/zarr.json         another store: the outermost new group, which readers look into       ◀ published
//! ```

use std::sync::Arc;

use bytes::Bytes;
use gridfusion_core::format::{ByteRange, Content, Location, Publish};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{Attributes, is_object_name};
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::metadata::{ArrayDocument, bytes_of};
use crate::edited_document::with_members;

const DOCUMENT: &str = "zarr.json";
/// The place of the metadata of all nodes in the root.
const CONSOLIDATED: [&str; 2] = ["consolidated_metadata", "metadata"];

/// The group of a new array, which is the root of a new store unless it has a path.
///
/// ```
/// use gridfusion_zarr::ZarrGroup;
///
/// let group = ZarrGroup::new("forecast/daily")?;
/// assert_eq!(group.path(), "forecast/daily");
/// assert!(ZarrGroup::new("forecast/../daily").is_err());
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ZarrGroup {
    path: String,
    /// The root's document, if there is a store.
    root: Option<Bytes>,
    is_consolidated: bool,
    /// How many groups of the path are there, without the root.
    existing: usize,
}

impl ZarrGroup {
    /// Makes the group of a new store. `path` has the names of groups, with `/` between them.
    ///
    /// # Errors
    /// `Usage` for names that groups cannot have.
    pub fn new(path: &str) -> Result<Self> {
        let path = path.trim_matches('/');
        if let Some(name) = path.split('/').find(|name| !path.is_empty() && !is_object_name(name)) {
            return Err(Error::usage(format!("\"{name}\" cannot be the name of a group")));
        }
        Ok(Self { path: path.to_owned(), ..Self::default() })
    }

    /// Finds the place of a new group in a store, or in one that is yet to come.
    ///
    /// # Errors
    /// `Usage` if the group is there already, an array is above it, or its folder has objects.
    pub async fn open(objects: &Objects, path: &str) -> Result<Self> {
        let new = Self::new(path)?;
        let found = new.read(objects).await;
        found.map_err(|error| objects.named(error))
    }

    async fn read(mut self, objects: &Objects) -> Result<Self> {
        let paths = self.paths();
        let names = std::iter::once(DOCUMENT.to_owned()).chain(paths.iter().map(|it| document(it)));
        let at: Vec<Location> = names.map(|name| Location::new(name, ByteRange::Whole)).collect();
        let mut found = objects.read_if_present(&at).await?.into_iter();
        let Some(root) = found.next().flatten() else {
            return Ok(self);
        };
        let node = group_of(&root, "")?;
        let listed = CONSOLIDATED.iter().try_fold(&node, |node, name| node.get(name));
        let listed = listed.and_then(Value::as_object);
        for (path, own) in paths.iter().zip(found) {
            let is_listed = listed.is_none_or(|listed| listed.contains_key(path));
            let Some(own) = own else { break };
            group_of(&own, path)?;
            if !is_listed {
                return Err(Error::usage(format!(
                    "the root's zarr.json does not list the group \"{path}\", which is there; run zarr.consolidate_metadata"
                )));
            }
            self.existing += 1;
        }
        if self.existing == paths.len() {
            let group = if self.path.is_empty() {
                "root".to_owned()
            } else {
                format!("group \"{}\"", self.path)
            };
            return Err(Error::usage(format!(
                "the store has its {group} already; choose another 'group'"
            )));
        }
        let below = format!("{}/", self.path);
        let is_below = |path: &&String| path.starts_with(&below) || **path == self.path;
        let listed = listed.and_then(|listed| listed.keys().find(is_below));
        let objects = objects.some_below(&self.path, 1).await?;
        if let Some(object) = listed.or(objects.first()) {
            return Err(Error::usage(format!(
                "the store has no group \"{}\", and \"{object}\" is in its folder; remove the folder",
                self.path
            )));
        }
        self.is_consolidated =
            node.pointer("/consolidated_metadata/metadata").is_some_and(Value::is_object);
        self.root = Some(root);
        Ok(self)
    }

    /// Returns the path of the group; empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the group is in a store that is there.
    pub fn is_in_store(&self) -> bool {
        self.root.is_some()
    }

    /// Returns the path of an array or an object in the group.
    pub(super) fn object(&self, name: &str) -> Arc<str> {
        match self.path.is_empty() {
            true => name.into(),
            false => format!("{}/{name}", self.path).into(),
        }
    }

    /// Returns the paths of all groups down to this one, without the root.
    fn paths(&self) -> Vec<String> {
        let ends = self.path.match_indices('/').map(|(at, _)| at).chain([self.path.len()]);
        ends.filter(|end| *end > 0).map(|end| self.path[..end].to_owned()).collect()
    }

    /// Returns the documents of arrays and groups that are written first, and the write that makes them visible.
    pub(super) fn published(
        &self,
        attributes: &Attributes,
        arrays: &[ArrayDocument],
    ) -> Result<(Vec<Content>, Publish)> {
        let mut contents = vec![];
        let mut listed: Vec<(String, Value)> = vec![];
        for array in arrays {
            let path = self.object(&array.name);
            contents.push(Content::new(document(&path), array.bytes()?));
            listed.push((path.to_string(), array.document.clone()));
        }
        let new = self.paths().split_off(self.existing);
        let mut groups = vec![];
        for path in &new {
            let own = if *path == self.path { json!(attributes) } else { json!({}) };
            let group = json!({"zarr_format": 3, "node_type": "group", "attributes": own});
            groups.push(Content::new(document(path), bytes_of(&group)?));
            let mut group = group;
            group["consolidated_metadata"] = consolidated(&Map::new());
            listed.push((path.clone(), group));
        }
        let publish = match &self.root {
            None => {
                let own = if self.path.is_empty() { json!(attributes) } else { json!({}) };
                let root = json!({
                    "zarr_format": 3,
                    "node_type": "group",
                    "attributes": own,
                    "consolidated_metadata": consolidated(&listed.into_iter().collect()),
                });
                Publish::Create(Content::new(DOCUMENT, bytes_of(&root)?))
            }
            Some(root) if self.is_consolidated => {
                let bytes = with_members(root, &CONSOLIDATED, &listed)?;
                Publish::Update { content: Content::new(DOCUMENT, bytes), old: root.clone() }
            }
            Some(_) if groups.is_empty() => return Err(Error::internal("a group that is there")),
            Some(_) => Publish::Create(groups.remove(0)),
        };
        contents.append(&mut groups);
        Ok((contents, publish))
    }
}

fn document(path: &str) -> String {
    format!("{path}/{DOCUMENT}")
}

fn consolidated(metadata: &Map<String, Value>) -> Value {
    json!({"kind": "inline", "must_understand": false, "metadata": metadata})
}

/// Reads the document of a group.
fn group_of(bytes: &[u8], path: &str) -> Result<Value> {
    let node: Value = serde_json::from_slice(bytes).map_err(|error| {
        Error::unsupported(format!("a group in a store whose {DOCUMENT} is no JSON: {error}"))
    })?;
    match node["node_type"] == "group" && node["zarr_format"] == 3 {
        true => Ok(node),
        false => Err(Error::usage(format!(
            "\"{path}\" is no group of Zarr version 3, and cannot have groups"
        ))),
    }
}
