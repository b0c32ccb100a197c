//! [`StoreDocuments`]: the metadata of all arrays of a store, from the root's document or from the arrays' own ones.
//!
//! ```text
//!   consolidated   zarr.json ──────────────────────────▶ metadata of all arrays, which changes at once
//!   otherwise      t2m/zarr.json  time/zarr.json  …  ──▶ the same; the first one that changes decides
//!                        5             3 ──▶ 5           a program was stopped between the two: its journal
//!                                                        tells that both have 5
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gridfusion_core::format::{ByteRange, Location};
use gridfusion_core::tile::{Documents, Objects};
use gridfusion_core::{Error, Result};
use serde_json::Value;

use super::metadata::{axis_of, consolidated, is_apart, parse};
use crate::bytes::ZarrStore;
use crate::journal::Journal;
use crate::store::ZarrReader;
use crate::write::{DOCUMENT, document_of};

/// The metadata of a store, as if an append that was stopped while it became visible had ended.
pub(super) struct StoreDocuments {
    /// The root's document, if it has the metadata of all arrays.
    pub(super) root: Option<Bytes>,
    /// The metadata of each array, by path.
    pub(super) metadata: BTreeMap<String, Value>,
    /// The arrays' own documents, by path, if the root does not have them.
    own: BTreeMap<String, Bytes>,
    /// The store with this metadata.
    pub(super) reader: ZarrReader,
}

impl StoreDocuments {
    /// Reads the metadata of the store whose root has this document.
    ///
    /// # Errors
    /// `Usage` if the root repeats what a program that was stopped had made visible in part. `Unsupported` for documents that are no JSON.
    pub(super) async fn read(
        objects: &Arc<Objects>,
        root: Bytes,
        left: Option<&Journal>,
    ) -> Result<Self> {
        let reader = ZarrReader::read(Arc::clone(objects), &Documents::default()).await?;
        if let Some(metadata) = consolidated(&root)? {
            if let Some(left) = left {
                check_consolidated(&metadata, left)?;
            }
            return Ok(Self { root: Some(root), metadata, own: BTreeMap::new(), reader });
        }
        let paths: Vec<String> = reader.paths().map(str::to_owned).collect();
        let at = paths.iter().map(|path| Location::new(document_of(path), ByteRange::Whole));
        let found = objects.read_if_present(&at.collect::<Vec<_>>()).await?;
        let (mut metadata, mut own) = (BTreeMap::new(), BTreeMap::new());
        for (path, bytes) in paths.into_iter().zip(found) {
            // An array of version 2 among others is none that rows have columns for.
            let Some(bytes) = bytes else { continue };
            let document = parse(&bytes).map_err(|error| error.in_file(&document_of(&path)))?;
            metadata.insert(path.clone(), document);
            own.insert(path, bytes);
        }
        if let Some(left) = left {
            left.settle(&mut metadata);
        }
        let named = |(path, document): (&String, &Value)| (document_of(path), document.clone());
        let all = metadata.iter().map(named).chain([(DOCUMENT.to_owned(), parse(&root)?)]);
        let store = ZarrStore::from_documents(all.collect())?;
        let reader = ZarrReader::new(store, Arc::clone(objects));
        Ok(Self { root: None, metadata, own, reader })
    }

    /// Returns the arrays' own documents.
    pub(super) async fn documents(
        &self,
        objects: &Objects,
        names: &[&String],
    ) -> Result<Vec<Bytes>> {
        if self.root.is_none() {
            let own = names.iter().map(|name| self.own.get(*name).cloned());
            let own = own.collect::<Option<Vec<_>>>();
            return own.ok_or_else(|| Error::internal("an array without a document"));
        }
        let at = names.iter().map(|name| Location::new(document_of(name), ByteRange::Whole));
        objects.read(&at.collect::<Vec<_>>()).await
    }

    /// Returns the own documents of arrays that become longer with one of these dimensions, besides those that are known.
    pub(super) async fn documents_beside(
        &self,
        objects: &Objects,
        dimensions: &[&str],
        known: &[&String],
    ) -> Result<Vec<(String, Bytes)>> {
        let is_beside = |(name, metadata): &(&String, &Value)| {
            let becomes_longer = |dimension: &&str| {
                axis_of(metadata, dimension).is_some() && !is_apart(&self.metadata, name, dimension)
            };
            !known.contains(name) && dimensions.iter().any(becomes_longer)
        };
        let names: Vec<&String> = self.metadata.iter().filter(is_beside).map(|it| it.0).collect();
        if names.is_empty() {
            return Ok(vec![]);
        }
        let documents = self.documents(objects, &names).await?;
        Ok(names.into_iter().cloned().zip(documents).collect())
    }

    /// Fails for arrays whose lengths along a dimension differ from that of its labels.
    ///
    /// # Errors
    /// `Usage` for those of a store without consolidated metadata, which may change one by one.
    pub(super) fn check_lengths(&self, names: &[&String], dimensions: &[String]) -> Result<()> {
        let len = |name: &String, dimension: &String| {
            let metadata = self.metadata.get(name)?;
            metadata["shape"][axis_of(metadata, dimension)?].as_u64()
        };
        for dimension in dimensions.iter().filter(|_| self.root.is_none()) {
            let labels = len(dimension, dimension);
            let differs =
                |name: &&&String| len(name, dimension).is_some_and(|it| Some(it) != labels);
            let Some(other) = names.iter().find(differs) else { continue };
            let (labels, other_len) = (labels.unwrap_or(0), len(other, dimension).unwrap_or(0));
            return Err(Error::usage(format!(
                "\"{other}\" has {other_len} places along {dimension}, which has {labels} labels: another program is writing, or was \
                 stopped while it wrote"
            )));
        }
        Ok(())
    }
}

/// Fails if the root repeats the lengths of arrays of which a part was visible.
fn check_consolidated(metadata: &BTreeMap<String, Value>, left: &Journal) -> Result<()> {
    let all_have = |len| {
        let mut arrays = left.arrays.iter().filter_map(|name| metadata.get(name));
        arrays.all(|it| left.len(it) == Some(len))
    };
    if !left.adds() || all_have(left.from) || all_have(left.to) {
        return Ok(());
    }
    Err(Error::usage(
        "the metadata was consolidated after a program was stopped while its rows became visible; remove the member \
         \"consolidated_metadata\", append, and consolidate again",
    )
    .in_file(DOCUMENT))
}
