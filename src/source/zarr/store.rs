//! An opened Zarr store: its metadata, and the machine that finds chunks.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::format::StoredChunk;
use crate::format::hierarchy::Hierarchy;
use crate::format::zarr::{OpenZarr, ZarrArray, ZarrStore};
use crate::grid::MAX_RANK;
use crate::source::digest::digest;
use crate::source::hierarchy::{StoreFacts, StoredTotals, VariableStore, located_totals};
use crate::source::place::Place;
use crate::source::show::shape_text;
use crate::tile::{ObjectVersion, Objects, drive};

/// An opened store.
#[derive(Debug)]
pub(super) struct ZarrReader {
    store: ZarrStore,
    objects: Arc<Objects>,
    /// The digest of the metadata, once it is needed.
    version: OnceLock<String>,
}

impl ZarrReader {
    /// Reads the metadata of all arrays in the folder at `place`.
    ///
    /// # Errors
    /// `Usage` if it is not a Zarr store; `Corrupt` if its root cannot be parsed.
    pub(super) async fn open(place: &Place) -> Result<Self> {
        let objects = Arc::new(Objects::many(place.folder()?));
        let store = drive(OpenZarr::new(), &objects).await?;
        Ok(Self { store, objects, version: OnceLock::new() })
    }
}

#[async_trait]
impl VariableStore for ZarrReader {
    fn hierarchy(&self) -> &Hierarchy {
        self.store.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        drive(self.store.locate(variable, chunks)?, &self.objects).await
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        let version = self.version.get_or_init(|| metadata_digest(&self.store)).clone();
        vec![ObjectVersion { object: self.objects.name().to_owned(), version }]
    }

    fn facts(&self) -> StoreFacts {
        facts("Zarr store", &self.store)
    }

    fn codec(&self, variable: usize) -> Option<String> {
        codec(&self.store, variable)
    }

    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        let array = self.store.arrays().get(variable);
        let array = array.ok_or_else(|| Error::internal("a variable that does not exist"))?;
        match (self.objects.is_remote(), array.shard_shape()) {
            (true, _) => Ok(None),
            (false, Some(_)) => located_totals(self, variable).await,
            (false, None) => listed_totals(&self.objects, array).await,
        }
    }
}

/// Returns the digest of the metadata of all arrays: shapes, types, attributes and encodings.
fn metadata_digest(store: &ZarrStore) -> String {
    let variables = store.hierarchy().variables.iter().map(|variable| format!("{variable:?}"));
    let groups = store.hierarchy().groups.iter().map(|group| format!("{group:?}"));
    let encodings = store.arrays().iter().map(|array| array.encoding());
    digest(variables.chain(groups).chain(encodings))
}

/// The facts about a store; `noun` tells what its metadata is read from.
pub(super) fn facts(noun: &str, store: &ZarrStore) -> StoreFacts {
    let version = store.version();
    StoreFacts {
        format: "zarr",
        version: version.to_owned(),
        noun: format!("{noun}, version {version}"),
        size: None,
        more: vec![],
        warnings: vec![],
    }
}

/// Returns the encoding of the chunks of an array: `zstd, in shards of 100 × 90`.
pub(super) fn codec(store: &ZarrStore, variable: usize) -> Option<String> {
    let array = store.arrays().get(variable)?;
    let codec = Some(array.encoding()).filter(|it| !it.is_empty());
    let codec = codec.unwrap_or_else(|| "raw".to_owned());
    Some(match array.shard_shape() {
        Some(shape) => format!("{codec}, in shards of {}", shape_text(shape)),
        None => codec,
    })
}

/// The most folders with chunks to list.
const MOST_FOLDERS: usize = 1 << 16;

/// Adds up the chunks that lie in the folder of an array and the folders in it; `None` if there are too many folders.
async fn listed_totals(objects: &Objects, array: &ZarrArray) -> Result<Option<StoredTotals>> {
    let mut totals = StoredTotals::default();
    let mut folders = vec![array.variable().path.clone()];
    let mut listed = 0;
    // A key has a folder per axis, and before them `c`.
    for _ in 0..MAX_RANK + 2 {
        listed += folders.len();
        if listed > MOST_FOLDERS {
            return Ok(None);
        }
        let entries = objects.list(folders.clone()).await?;
        let mut inner = Vec::new();
        for (folder, entry) in folders
            .iter()
            .zip(entries)
            .flat_map(|(folder, entries)| entries.into_iter().map(move |entry| (folder, entry)))
        {
            let is_metadata = entry.name.starts_with('.') || entry.name == "zarr.json";
            match entry.size {
                Some(_) if is_metadata => {}
                Some(size) => {
                    totals.chunks += 1;
                    totals.bytes = totals.bytes.saturating_add(size);
                }
                None if folder.is_empty() => inner.push(entry.name),
                None => inner.push(format!("{folder}/{}", entry.name)),
            }
        }
        folders = inner;
    }
    let raw_bytes = array.chunk_bytes().map(|bytes| bytes.saturating_mul(totals.chunks));
    Ok(Some(StoredTotals { raw_bytes, ..totals }))
}
