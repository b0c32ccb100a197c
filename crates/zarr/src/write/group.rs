//! [`ZarrGroup`]: the place of a new group in a store, and the documents that tell of it.
//!
//! ```text
//!   store                       ocean/deep is written                        readers find it by
//!   nothing                     ocean/ and ocean/deep/zarr.json              zarr.json, which is created with the metadata of all
//!   consolidated metadata       the same, as far as they are not there       zarr.json, which gets the metadata of the new arrays
//!   without it                  the same                                     ocean/deep/zarr.json, which is created
//! ```

use gridfusion_core::format::{ByteRange, Content, Location, Publish, Write};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::Attributes;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::metadata::{ArrayDocument, bytes_of, consolidated, group};
use crate::document_text::with_members;

/// The document of a group, or of an array.
const DOCUMENT: &str = "zarr.json";
/// The place of the metadata of all nodes in the root's document.
const ALL: [&str; 2] = ["consolidated_metadata", "metadata"];
/// The objects by which a store of version 2 is found.
const VERSION_2: [&str; 3] = [".zgroup", ".zmetadata", ".zarray"];

/// The place of a new group in a store of version 3, which may be there already.
///
/// ```
/// use std::sync::Arc;
///
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::Objects;
/// use gridfusion_zarr::ZarrGroup;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let store = Objects::many_rewritten(Arc::new(LocalFolder::open(folder.path(), false)?));
/// let group = ZarrGroup::open(&store, "ocean/deep").await?;
/// assert_eq!(group.path(), "ocean/deep");
/// assert!(ZarrGroup::open(&store, "ocean//deep").await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZarrGroup {
    path: String,
    /// The groups above it, the outermost first.
    above: Vec<GroupAbove>,
    root: Root,
}

/// A group above a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupAbove {
    name: String,
    /// Its own document, if it is there.
    document: Option<Value>,
    /// Whether the root's document has it.
    is_listed: bool,
}

/// The root of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    /// It is not there.
    New,
    /// It has the metadata of all nodes.
    Consolidated {
        document: bytes::Bytes,
        /// Whether it has each of the groups above the new one.
        listed: Vec<bool>,
    },
    /// Nodes have their own metadata only.
    Plain,
}

impl ZarrGroup {
    /// Finds the place of a new group, whose path has `/` between names. Nothing needs to be there, not even the store.
    ///
    /// # Errors
    /// `Usage` if the path is none, if something is there already, or the folder is no store. `Unsupported` for a store of version 2, and for
    /// metadata that would not tell of the group.
    pub async fn open(objects: &Objects, path: &str) -> Result<Self> {
        check_path(path)?;
        let opened = Self::find(objects, path).await;
        opened.map_err(|error| objects.named(error))
    }

    async fn find(objects: &Objects, path: &str) -> Result<Self> {
        if let Some(there) = objects.some_below(path, 1).await?.into_iter().next() {
            return Err(Error::usage(format!(
                "the group {path} has '{there}' already; delete it first, or choose another group"
            )));
        }
        let names: Vec<String> =
            path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect();
        let named = names.iter().map(|group| format!("{group}/{DOCUMENT}"));
        let named: Vec<String> = std::iter::once(DOCUMENT.to_owned()).chain(named).collect();
        let at = |name: &String| Location::new(name.as_str(), ByteRange::Whole);
        let found = objects.read_if_present(&named.iter().map(at).collect::<Vec<_>>()).await?;
        let mut documents = vec![];
        for (name, bytes) in named.iter().zip(&found) {
            let parsed = bytes.as_ref().map(|bytes| group_of(bytes)).transpose();
            documents.push(parsed.map_err(|error| error.in_file(name))?);
        }
        let mut documents = documents.into_iter();
        let root = match (documents.next().flatten(), found.into_iter().next().flatten()) {
            (Some(root), Some(bytes)) if root[ALL[0]][ALL[1]].is_object() => {
                let is_listed = |name: &str| root[ALL[0]][ALL[1]].get(name).is_some();
                let listed = names.iter().map(|name| is_listed(name)).collect();
                check_not_listed(&root[ALL[0]][ALL[1]], path)?;
                Root::Consolidated { document: bytes, listed }
            }
            (Some(_), _) => Root::Plain,
            _ => {
                check_no_store(objects).await?;
                Root::New
            }
        };
        let above = names.into_iter().zip(documents).enumerate().map(|(at, (name, document))| {
            let is_listed =
                matches!(&root, Root::Consolidated { listed, .. } if listed[at]);
            match &document {
                None if is_listed => Err(not_consolidated(&name)),
                Some(document) if document[ALL[0]].is_object() => Err(Error::unsupported(
                    "a new group below one with consolidated metadata of its own, which would not tell of it; remove the member \
                     \"consolidated_metadata\", and consolidate that of the store",
                )
                .in_file(&format!("{name}/{DOCUMENT}"))),
                _ => Ok(GroupAbove { name, document, is_listed }),
            }
        });
        let above = above.collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), above, root })
    }

    /// Returns the path of the group, without `/` at its ends.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the last writes of the group with these arrays, and the one that makes it visible.
    pub(super) fn finish(
        &self,
        attributes: &Attributes,
        arrays: &[ArrayDocument],
    ) -> Result<(Write, Publish)> {
        let node = |attributes: Value| json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        let (none, own) = (|| node(json!({})), node(json!(attributes)));
        let object = format!("{}/{DOCUMENT}", self.path);
        let mut above = vec![];
        for group in self.above.iter().filter(|it| it.document.is_none()) {
            above.push(Content::new(format!("{}/{DOCUMENT}", group.name), bytes_of(&none())?));
        }
        if self.root == Root::Plain {
            let own = Content::new(object, group(attributes, arrays)?);
            return Ok((Write::Put(above), Publish::Create(own)));
        }
        above.push(Content::new(object, bytes_of(&own)?));
        let listed = |mut node: Value| {
            node[ALL[0]] = consolidated(&Map::new());
            node
        };
        // A group that is there and not listed may be what a program has left.
        let groups =
            self.above.iter().filter(|it| !it.is_listed).map(|group| {
                (group.name.clone(), listed(group.document.clone().unwrap_or_else(none)))
            });
        let mut all: Map<String, Value> = groups.collect();
        all.insert(self.path.clone(), listed(own));
        let name = |it: &ArrayDocument| format!("{}/{}", self.path, it.name);
        all.extend(arrays.iter().map(|it| (name(it), it.document().clone())));
        let publish = match &self.root {
            Root::Consolidated { document: old, .. } => {
                let content = Content::new(DOCUMENT, with_members(old, &ALL, &all)?);
                Publish::Update { content, old: old.clone() }
            }
            Root::New | Root::Plain => {
                let mut root = none();
                root[ALL[0]] = consolidated(&all);
                Publish::Create(Content::new(DOCUMENT, bytes_of(&root)?))
            }
        };
        Ok((Write::Put(above), publish))
    }
}

/// Fails for a path that names no group, or one that stores escape.
fn check_path(path: &str) -> Result<()> {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && !name.starts_with("__")
            && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_.+=@".contains(it))
    };
    match path.split('/').all(is_name) {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "'{path}' is no path of a group: names of letters, digits, '-', '_' and '.' with '/' between them, as in 'ocean/deep'"
        ))),
    }
}

/// Reads the document of a group.
fn group_of(bytes: &[u8]) -> Result<Value> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        Error::unsupported(format!("a new group in a store whose metadata is no JSON: {error}"))
    })?;
    match document["node_type"].as_str() {
        Some("group") => Ok(document),
        Some("array") => Err(Error::usage("this is an array, and only a group has groups")),
        _ => {
            Err(Error::unsupported("a new group below a node that is neither a group nor an array"))
        }
    }
}

/// Fails if the metadata of all nodes lists a group, or what is below it, although nothing is there.
fn check_not_listed(all: &Value, path: &str) -> Result<()> {
    let below = format!("{path}/");
    let is_listed = |name: &&String| *name == path || name.starts_with(&below);
    match all.as_object().into_iter().flat_map(Map::keys).find(is_listed) {
        Some(name) => Err(not_consolidated(name)),
        None => Ok(()),
    }
}

fn not_consolidated(name: &str) -> Error {
    Error::usage(format!(
        "the consolidated metadata has {name}, which is not there: another program has changed the store without consolidating; run \
         zarr.consolidate_metadata"
    ))
    .in_file(DOCUMENT)
}

/// Fails if a folder without the document of a root has something else.
async fn check_no_store(objects: &Objects) -> Result<()> {
    let version_2 = VERSION_2.map(|mark| Location::new(mark, ByteRange::Whole));
    if objects.read_if_present(&version_2).await?.iter().any(Option::is_some) {
        return Err(Error::unsupported("a new group in a store of version 2"));
    }
    let there = objects.some_below("", 2).await?;
    // A lock is the writer's own.
    match there.into_iter().find(|name| !name.starts_with(".gridfusion-")) {
        None => Ok(()),
        Some(found) => Err(Error::usage(format!(
            "the folder has '{found}', and is no Zarr store of version 3, because it has no {DOCUMENT}"
        ))),
    }
}
