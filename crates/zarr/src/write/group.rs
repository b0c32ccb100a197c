//! [`ZarrGroup`]: the place of a new group in a store.
//!
//! ```text
//!   ocean/zarr.json               a group above, if it is not there
//!   ocean/deep/t2m/c/…            the arrays of the group
//!   ocean/deep/zarr.json          the group: readers of the group find it from here on     ◀ published
//!   zarr.json                     lists the group, if it lists all: see [`listing_update`](crate::listing_update)
//! ```

use gridfusion_core::format::{ByteRange, Content, Location, Publish, Write};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::Attributes;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::metadata::{ArrayDocument, bytes_of, group};
use crate::bytes::may_be_node;

/// The document of a group, or of an array.
pub(crate) const DOCUMENT: &str = "zarr.json";
/// The place of the metadata of all nodes in the root's document.
pub(crate) const ALL: [&str; 2] = ["consolidated_metadata", "metadata"];
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
    /// The groups above it that are not there, the outermost first.
    missing: Vec<String>,
    /// Whether the root does not list all nodes, so that the group lists its own.
    lists_own: bool,
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

    /// Finds a group that another one replaces. Its writer writes what the folder of the group has then: its path is empty.
    ///
    /// # Errors
    /// `Usage` if there is no group, or if it has groups of its own.
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
    /// let document = r#"{"zarr_format": 3, "node_type": "group"}"#;
    /// std::fs::create_dir(folder.path().join("ocean")).unwrap();
    /// std::fs::write(folder.path().join("ocean/zarr.json"), document).unwrap();
    /// let store = Objects::many_rewritten(Arc::new(LocalFolder::open(folder.path(), false)?));
    /// assert_eq!(ZarrGroup::replacing(&store, "ocean").await?.path(), "");
    /// assert!(ZarrGroup::replacing(&store, "air").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replacing(objects: &Objects, path: &str) -> Result<Self> {
        check_path(path)?;
        let found = Self::find_old(objects, path).await;
        found.map_err(|error| objects.named(error))
    }

    async fn find_old(objects: &Objects, path: &str) -> Result<Self> {
        let there = objects.list(vec![path.to_owned()]).await?.into_iter().flatten();
        let there = there.filter(|it| it.size.is_none() && may_be_node(&it.name));
        let folders = there.map(|it| format!("{path}/{}", it.name));
        let nodes: Vec<String> = folders.chain([path.to_owned(), String::new()]).collect();
        let at = |node: &String| Location::new(document_of(node), ByteRange::Whole);
        let found = objects.read_if_present(&nodes.iter().map(at).collect::<Vec<_>>()).await?;
        let mut documents = vec![];
        for (node, bytes) in nodes.iter().zip(&found) {
            let parsed = bytes.as_ref().map(|bytes| parsed(bytes)).transpose();
            documents.push(parsed.map_err(|error| error.in_file(&document_of(node)))?);
        }
        let root = documents.pop().flatten();
        let own = documents.pop().flatten();
        if own.is_none_or(|own| own["node_type"] != "group") {
            return Err(Error::usage(format!(
                "{path} is no group of version 3, and only a group is replaced"
            )));
        }
        let below = nodes.iter().zip(&documents);
        let mut groups =
            below.filter(|(_, it)| it.as_ref().is_none_or(|it| it["node_type"] != "array"));
        if let Some((below, _)) = groups.next() {
            return Err(Error::usage(format!(
                "the group {path} has {below}, which is no array and would be deleted; delete it first, or choose another group"
            )));
        }
        let lists_own = root.is_none_or(|root| !root[ALL[0]][ALL[1]].is_object());
        Ok(Self { path: String::new(), missing: vec![], lists_own })
    }

    /// Returns the path of an object of the group in the folder that is written to.
    pub(super) fn object(&self, object: &str) -> String {
        match self.path.is_empty() {
            true => object.to_owned(),
            false => format!("{}/{object}", self.path),
        }
    }

    async fn find(objects: &Objects, path: &str) -> Result<Self> {
        if let Some(there) = objects.some_below(path, 1).await?.into_iter().next() {
            return Err(Error::usage(format!(
                "the group {path} has '{there}' already; delete it first, or choose another group"
            )));
        }
        let above = groups_above(path);
        let named = above.iter().map(|group| document_of(group));
        let named: Vec<String> = std::iter::once(DOCUMENT.to_owned()).chain(named).collect();
        let at = |name: &String| Location::new(name.as_str(), ByteRange::Whole);
        let found = objects.read_if_present(&named.iter().map(at).collect::<Vec<_>>()).await?;
        let mut documents = vec![];
        for (name, bytes) in named.iter().zip(&found) {
            let parsed = bytes.as_ref().map(|bytes| group_of(bytes)).transpose();
            documents.push(parsed.map_err(|error| error.in_file(name))?);
        }
        let mut documents = documents.into_iter();
        let lists_own = match documents.next().flatten() {
            Some(root) => {
                let all = &root[ALL[0]][ALL[1]];
                check_not_listed(all, path)?;
                !all.is_object()
            }
            None => {
                check_no_store(objects).await?;
                false
            }
        };
        let mut missing = vec![];
        for (name, document) in above.into_iter().zip(documents) {
            match document {
                None => missing.push(name),
                Some(document) if document[ALL[0]].is_object() => {
                    return Err(Error::unsupported(
                        "a new group below one with consolidated metadata of its own, which would not tell of it; remove the member \
                         \"consolidated_metadata\", and consolidate that of the store",
                    )
                    .in_file(&format!("{name}/{DOCUMENT}")));
                }
                Some(_) => {}
            }
        }
        Ok(Self { path: path.to_owned(), missing, lists_own })
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
        let node = |attributes: Value| {
            bytes_of(&json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
        };
        let above = self.missing.iter();
        let above = above.map(|it| Ok(Content::new(document_of(it), node(json!({}))?)));
        let above = above.collect::<Result<_>>()?;
        let own = match self.lists_own {
            true => group(attributes, arrays)?,
            false => node(json!(attributes))?,
        };
        Ok((Write::Put(above), Publish::Create(Content::new(document_of(&self.path), own))))
    }
}

/// Returns the paths of the groups above one, the outermost first.
pub(crate) fn groups_above(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
}

/// Fails for a path that names no group, or one that stores escape.
fn check_path(path: &str) -> Result<()> {
    let is_name = |name: &str| {
        may_be_node(name)
            && !name.starts_with("__")
            && name != DOCUMENT
            && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_.+=@".contains(it))
    };
    match path.split('/').all(is_name) {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "'{path}' is no path of a group: names of letters, digits, '-', '_' and '.' with '/' between them, as in 'ocean/deep'"
        ))),
    }
}

/// Returns the path of the document of a node; that of the root is empty.
pub(crate) fn document_of(path: &str) -> String {
    if path.is_empty() { DOCUMENT.to_owned() } else { format!("{path}/{DOCUMENT}") }
}

fn parsed(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::unsupported(format!("a new group in a store whose metadata is no JSON: {error}"))
    })
}

/// Reads the document of a group.
fn group_of(bytes: &[u8]) -> Result<Value> {
    let document = parsed(bytes)?;
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
