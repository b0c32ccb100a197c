//! The metadata of a group's arrays in the document of a store above the group.
//!
//! ```text
//!   x.zarr/zarr.json              lists ocean/t2m with its shape: changes last, for readers of the whole store
//!   x.zarr/ocean/zarr.json        the group, to which rows are appended as to a store of its own
//!   x.zarr/ocean/t2m/zarr.json
//! ```
//!
//! The listing repeats the arrays' own documents. If a program is stopped before it has changed, readers of the whole store see the old array,
//! or no group yet. The next append to the group brings the listing in line.

use std::collections::BTreeSet;

use bytes::Bytes;
use gridfusion_core::format::{ByteRange, Content, Entry, Location, Publish};
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value, json};

use super::metadata::{are_same, parse};
use crate::bytes::may_be_node;
use crate::document_text::{with_members, with_value, without_members};
use crate::write::{ALL, DOCUMENT, groups_above};

/// Returns the write by which the document of a store lists a group and its arrays as their own documents are. `None` if it does so, or if it
/// lists no nodes. `may_create` makes a document if there is none, and no other nodes that it would have to list.
///
/// # Errors
/// `Usage` if the store lists other metadata than that of the arrays, or arrays that are not there.
///
/// ```
/// use std::sync::Arc;
///
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::Objects;
/// use gridfusion_zarr::listing_update;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let document = r#"{"zarr_format": 3, "node_type": "group"}"#;
/// std::fs::write(folder.path().join("zarr.json"), document).unwrap();
/// let store = Objects::many_rewritten(Arc::new(LocalFolder::open(folder.path(), false)?));
/// assert!(listing_update(&store, "ocean", false).await?.is_none());
/// # Ok(())
/// # }
/// ```
pub async fn listing_update(
    store: &Objects,
    group: &str,
    may_create: bool,
) -> Result<Option<Publish>> {
    let updated = updated(store, group, may_create).await;
    updated.map_err(|error| store.named(error))
}

/// Returns the write by which the document of a store lists a group and what is below it no more. `None` if it lists nothing of these.
///
/// # Errors
/// `Unsupported` if the document is no plain JSON.
///
/// ```
/// use std::sync::Arc;
///
/// use gridfusion_core::format::Publish;
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::Objects;
/// use gridfusion_zarr::listing_removal;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let listed = r#"{"consolidated_metadata": {"metadata": {"a": {}, "b": {}, "b/v": {}}}}"#;
/// std::fs::write(folder.path().join("zarr.json"), listed).unwrap();
/// let store = Objects::many_rewritten(Arc::new(LocalFolder::open(folder.path(), false)?));
/// let Some(Publish::Update { content, .. }) = listing_removal(&store, "b").await? else { panic!() };
/// assert_eq!(content.bytes, r#"{"consolidated_metadata": {"metadata": {"a": {}}}}"#);
/// # Ok(())
/// # }
/// ```
pub async fn listing_removal(store: &Objects, group: &str) -> Result<Option<Publish>> {
    let removed = async {
        let old = documents(store, &[DOCUMENT.to_owned()]).await?.into_iter().flatten().next();
        let Some(old) = old else { return Ok(None) };
        let root = parse(&old)?;
        let below = format!("{group}/");
        let listed = root[ALL[0]][ALL[1]].as_object().into_iter().flat_map(Map::keys);
        let is_of_group = |path: &&str| *path == group || path.starts_with(&below);
        let names: Vec<&str> = listed.map(String::as_str).filter(is_of_group).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let content = Content::new(DOCUMENT, without_members(&old, &ALL, &names)?);
        Ok(Some(Publish::Update { content, old }))
    };
    removed.await.map_err(|error: Error| store.named(error))
}

async fn updated(store: &Objects, group: &str, may_create: bool) -> Result<Option<Publish>> {
    let old = documents(store, &[DOCUMENT.to_owned()]).await?.into_iter().flatten().next();
    let root = old.as_ref().map(|old| parse(old)).transpose()?;
    let none = Map::new();
    let listed = match &root {
        Some(root) => match root[ALL[0]][ALL[1]].as_object() {
            Some(listed) => listed,
            None => return Ok(None),
        },
        None if may_create && has_only(store, group).await? => &none,
        None => return Ok(None),
    };
    let (mut new, mut added) = (old.clone().unwrap_or_default(), Map::new());
    let below = format!("{group}/");
    let is_listed_with = |path: &str| path == group || below.starts_with(&format!("{path}/"));
    let mut has_groups = false;
    for (path, own) in nodes(store, group, listed).await? {
        match (own, listed.get(&path)) {
            // A store that lists a group lists its arrays, too.
            (Some(own), None) if own["node_type"] == "group" && !is_listed_with(&path) => {
                has_groups |= path.starts_with(&below);
            }
            (Some(own), None) => drop(added.insert(path, as_listed(own))),
            (Some(own), Some(node)) if own["node_type"] == "array" && node.is_object() => {
                let mut same = node.clone();
                same["shape"] = own["shape"].clone();
                if !are_same(&own, &same) {
                    return Err(not_consolidated(&path));
                }
                if own["shape"] != node["shape"] {
                    new = with_value(&new, &[ALL[0], ALL[1], &path, "shape"], &own["shape"])?;
                }
            }
            // Attributes of a group tell nothing of its arrays.
            (Some(own), Some(node)) if own["node_type"] == node["node_type"] => {}
            (_, Some(_)) => return Err(not_consolidated(&path)),
            (None, None) => {}
        }
    }
    let Some(old) = old else {
        if has_groups {
            return Ok(None);
        }
        let root = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": {
            "kind": "inline", "must_understand": false, "metadata": added,
        }});
        return Ok(Some(Publish::Create(Content::new(DOCUMENT, root.to_string()))));
    };
    if !added.is_empty() {
        new = with_members(&new, &ALL, &added)?;
    }
    let content = Content::new(DOCUMENT, new);
    Ok((content.bytes != old).then_some(Publish::Update { content, old }))
}

/// Returns the paths and documents of a group, of those above it and of its arrays. A node without a document is listed, or has just gone.
async fn nodes(
    store: &Objects,
    group: &str,
    listed: &Map<String, Value>,
) -> Result<Vec<(String, Option<Value>)>> {
    let below = format!("{group}/");
    let is_child =
        |path: &&String| path.strip_prefix(&below).is_some_and(|name| !name.contains('/'));
    let mut paths: BTreeSet<String> = listed.keys().filter(is_child).cloned().collect();
    // A group above that becomes listed has arrays, too.
    let mut groups = groups_above(group);
    groups.retain(|above| !listed.contains_key(above));
    groups.push(group.to_owned());
    for (group, there) in groups.iter().zip(store.list(groups.clone()).await?) {
        let folders = there.into_iter().filter(|it| it.size.is_none() && may_be_node(&it.name));
        paths.extend(folders.map(|it| format!("{group}/{}", it.name)));
    }
    paths.extend(groups_above(group));
    paths.insert(group.to_owned());
    let objects: Vec<String> = paths.iter().map(|path| format!("{path}/{DOCUMENT}")).collect();
    let mut nodes = vec![];
    for (path, own) in paths.into_iter().zip(documents(store, &objects).await?) {
        nodes.push((path, own.map(|own| parse(&own)).transpose()?));
    }
    Ok(nodes)
}

/// Whether a store has no nodes but a group with its arrays, and the groups above.
async fn has_only(store: &Objects, group: &str) -> Result<bool> {
    let mut folders = vec![String::new()];
    folders.extend(groups_above(group));
    let names = group.split('/');
    let lists = store.list(folders).await?;
    let is_other = |entry: &Entry, name: &str| {
        entry.size.is_none() && entry.name != name && may_be_node(&entry.name)
    };
    Ok(lists.iter().zip(names).all(|(entries, name)| !entries.iter().any(|it| is_other(it, name))))
}

async fn documents(store: &Objects, objects: &[String]) -> Result<Vec<Option<Bytes>>> {
    let at = |object: &String| Location::new(object.as_str(), ByteRange::Whole);
    store.read_if_present(&objects.iter().map(at).collect::<Vec<_>>()).await
}

/// Returns a document as zarr-python lists it: that of a group has no nodes of its own.
fn as_listed(mut own: Value) -> Value {
    if own["node_type"] == "group" {
        own[ALL[0]] = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    }
    own
}

fn not_consolidated(name: &str) -> Error {
    Error::usage(format!(
        "the consolidated metadata of the store is not that of {name}: another program has written without consolidating; run \
         zarr.consolidate_metadata"
    ))
    .in_file(DOCUMENT)
}
