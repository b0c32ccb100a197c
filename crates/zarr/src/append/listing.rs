//! The metadata of a group's arrays in the document of a store above the group.
//!
//! ```text
//!   x.zarr/zarr.json              lists ocean/t2m with its shape: changes last, for readers of the whole store
//!   x.zarr/ocean/zarr.json        the group, to which rows are appended as to a store of its own
//!   x.zarr/ocean/t2m/zarr.json
//! ```
//!
//! The listing repeats the arrays' own documents. If a program is stopped before it has changed, readers of the whole store see the old array,
//! and the next append to the group brings it in line.

use gridfusion_core::format::{ByteRange, Content, Location, Publish};
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};

use super::metadata::{are_same, consolidated, parse};
use super::target::DOCUMENT;
use crate::document_text::with_shape;

/// Returns the write that gives the arrays of a group the shapes of their own documents in that of a store above it. `None` if the store
/// does not list arrays, or the shapes are equal.
///
/// # Errors
/// `Usage` if the store lists other metadata than that of the arrays, or lacks some of them.
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
/// std::fs::write(folder.path().join("zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#)?;
/// let store = Objects::many_rewritten(Arc::new(LocalFolder::open(folder.path(), false)?));
/// assert!(listing_update(&store, "ocean").await?.is_none());
/// # Ok(())
/// # }
/// ```
pub async fn listing_update(store: &Objects, group: &str) -> Result<Option<Publish>> {
    let updated = updated(store, group).await;
    updated.map_err(|error| store.named(error))
}

async fn updated(store: &Objects, group: &str) -> Result<Option<Publish>> {
    let at = |object: String| Location::new(object, ByteRange::Whole);
    let found = store.read_if_present(&[at(DOCUMENT.to_owned())]).await?;
    let Some(old) = found.into_iter().flatten().next() else { return Ok(None) };
    let Some(listed) = consolidated(&old)? else { return Ok(None) };
    let below = format!("{group}/");
    let is_of_group =
        |name: &&String| name.strip_prefix(&below).is_some_and(|name| !name.contains('/'));
    let names: Vec<&String> = listed.keys().filter(is_of_group).collect();
    if names.is_empty() {
        return Err(not_consolidated(group));
    }
    let own = names.iter().map(|name| at(format!("{name}/{DOCUMENT}"))).collect::<Vec<_>>();
    let mut new = old.clone();
    for (name, own) in names.into_iter().zip(store.read_if_present(&own).await?) {
        let own = own.map(|own| parse(&own)).transpose()?.unwrap_or_default();
        let shape = own["shape"].clone();
        let mut same = listed[name].clone();
        same["shape"] = shape.clone();
        if !are_same(&own, &same) {
            return Err(not_consolidated(name));
        }
        if shape != listed[name]["shape"] {
            new = with_shape(&new, &["consolidated_metadata", "metadata", name], &shape)?;
        }
    }
    let content = Content::new(DOCUMENT, new);
    Ok((content.bytes != old).then_some(Publish::Update { content, old }))
}

fn not_consolidated(name: &str) -> Error {
    Error::usage(format!(
        "the consolidated metadata of the store is not that of {name}: another program has written without consolidating; run \
         zarr.consolidate_metadata"
    ))
    .in_file(DOCUMENT)
}
