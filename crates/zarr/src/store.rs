//! An opened Zarr store: its metadata, and the machine that finds chunks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;

use crate::bytes::{OpenZarr, ZarrArray, ZarrStore};
use gridfusion_cf::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use gridfusion_cf::hierarchy::Hierarchy;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::grid::MAX_RANK;
use gridfusion_core::io::last_part;
use gridfusion_core::source::digest;
use gridfusion_core::source::show::shape_text;
use gridfusion_core::tile::{Documents, ObjectVersion, Objects, drive, drive_documents};
use gridfusion_core::{Error, ErrorKind, Result};

/// An opened store.
#[derive(Debug)]
pub(super) struct ZarrReader {
    store: ZarrStore,
    objects: Arc<Objects>,
    /// The digest of the metadata, once it is needed.
    version: OnceLock<String>,
    /// Warnings about consolidated metadata that is older than an array, by the numbers of variables.
    stale: Vec<(usize, String)>,
    /// Why queries found no chunk of some variables, by their numbers.
    absences: Mutex<HashMap<usize, Option<String>>>,
    /// The digests of the objects with the chunks of some variables, by their numbers.
    contents: Mutex<HashMap<usize, Vec<ObjectVersion>>>,
}

impl ZarrReader {
    /// Reads the metadata of all arrays of the store with these objects.
    ///
    /// # Errors
    /// `Usage` if it is not a Zarr store; `Corrupt` if its root cannot be parsed; `Unsupported` for references in Parquet.
    pub(super) async fn read(objects: Arc<Objects>, documents: &Documents) -> Result<Self> {
        let store = read_metadata(&objects, documents).await?;
        if store.record_size().is_some() {
            let message =
                "references in Parquet, whose chunks lie in other files, can only be read";
            return Err(Error::unsupported(message).in_file(objects.name()));
        }
        Self::try_new(store, objects).await
    }

    /// Makes a reader of metadata that was read, of chunks in the same folder.
    ///
    /// # Errors
    /// `Io` if an array's own metadata cannot be read.
    pub(super) async fn try_new(store: ZarrStore, objects: Arc<Objects>) -> Result<Self> {
        let stale = match objects.is_remote() {
            // Comparing would take a request for each array.
            true => vec![],
            false => store.stale(&objects.read_if_present(&store.own_documents()).await?),
        };
        for (_, warning) in &stale {
            log::warn!("{}: {warning}", objects.name());
        }
        Ok(Self { stale, ..Self::new(store, objects) })
    }

    /// Makes the reader of a store whose metadata is known.
    pub(super) fn new(store: ZarrStore, objects: Arc<Objects>) -> Self {
        let (version, absences, contents) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self { store, objects, version, stale: vec![], absences, contents }
    }
}

impl ZarrReader {
    /// Returns the arrays.
    pub(super) fn arrays(&self) -> &[Arc<ZarrArray>] {
        self.store.arrays()
    }

    /// Returns the groups and arrays.
    pub(super) fn store(&self) -> &ZarrStore {
        &self.store
    }

    /// Returns the paths of all arrays, also of those that cannot be read.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let hierarchy = self.store.hierarchy();
        let readable = hierarchy.variables.iter().map(|it| it.path.as_str());
        readable.chain(hierarchy.unreadable.iter().map(|it| it.path.as_str()))
    }

    /// Whether it is known why chunks of a variable are absent.
    fn is_explained(&self, variable: usize) -> bool {
        let known = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains_key(&variable)
    }
}

/// Reads the metadata of all arrays of the store with these objects.
///
/// # Errors
/// `Usage` if it is not a Zarr store; `Corrupt` if its root cannot be parsed.
pub(super) async fn read_metadata(objects: &Objects, documents: &Documents) -> Result<ZarrStore> {
    match drive_documents(OpenZarr::new(), objects, documents).await {
        // A store may have been written since the session found nothing there.
        Err(error) if error.kind() == ErrorKind::Usage && objects.forget_absent() => {
            drive_documents(OpenZarr::new(), objects, documents).await
        }
        opened => opened,
    }
}

/// The most objects with chunks of which the versions travel.
const MOST_CONTENTS: usize = 1 << 20;

/// Returns a digest of the versions of the objects of a variable, and of all variables that may be its labels. The
/// objects are chunks, or tables of references to them. `None` for too many objects, or those of an object store.
pub(super) fn digest_below(
    objects: &Objects,
    store: &ZarrStore,
    variable: usize,
) -> Result<Option<ObjectVersion>> {
    let variables = &store.hierarchy().variables;
    let are_read = variables
        .iter()
        .enumerate()
        .filter(|(number, it)| *number == variable || it.axes.len() <= 1);
    let (mut texts, mut chunks) = (vec![], 0);
    for (_, it) in are_read {
        let left = MOST_CONTENTS - chunks;
        let Some(found) = objects.versions_below(&it.path, left)? else { return Ok(None) };
        let found = found.into_iter().filter(|below| !is_document(last_part(&below.path)));
        for below in found {
            texts.extend([below.path, below.version]);
            chunks += 1;
        }
    }
    let path = variables.get(variable).map_or("", |it| it.path.as_str());
    Ok(Some(ObjectVersion {
        object: format!("{}/{path}", objects.name()),
        version: format!("{chunks} chunks with the digest {}", digest(texts)),
    }))
}

/// Whether an object has metadata rather than a chunk.
fn is_document(name: &str) -> bool {
    name.starts_with('.') || name == "zarr.json"
}

/// The objects of a variable's folder that show how chunks are named: so many take one request to a store.
const SOME_OBJECTS: usize = 1000;

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

    fn contents(&self, variable: usize) -> Result<Vec<ObjectVersion>> {
        let known = || self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(contents) = known().get(&variable) {
            return Ok(contents.clone());
        }
        let contents: Vec<ObjectVersion> =
            digest_below(&self.objects, &self.store, variable)?.into_iter().collect();
        known().insert(variable, contents.clone());
        Ok(contents)
    }

    /// Lists the folder of a variable once. Returns a warning the first time only.
    async fn explain_absence(&self, variable: usize) -> Result<Option<String>> {
        let array = self.store.arrays().get(variable);
        let array = array.ok_or_else(|| Error::internal("a variable that does not exist"))?;
        if let Some((_, warning)) = self.stale.iter().find(|(number, _)| *number == variable) {
            return Ok(Some(warning.clone()));
        }
        if array.variable().axes.iter().any(|axis| axis.len == 0) || self.is_explained(variable) {
            return Ok(None);
        }
        let path = &array.variable().path;
        let explained = match self.objects.some_below(path, SOME_OBJECTS).await {
            Ok(found) => array.explain_absence(&found)?,
            // Web servers cannot list.
            Err(error) if self.objects.is_remote() => {
                log::debug!("cannot be listed: {error}");
                Some(format!("no chunk that a query needed of \"{path}\" is there"))
            }
            Err(error) => return Err(error),
        };
        let mut known = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(variable, explained.clone());
        Ok(explained)
    }

    fn facts(&self) -> StoreFacts {
        let warnings = self.stale.iter().map(|(_, warning)| warning.clone()).collect();
        StoreFacts { warnings, ..facts("Zarr store", &self.store) }
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
pub(super) fn metadata_digest(store: &ZarrStore) -> String {
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
            match entry.size {
                Some(_) if is_document(&entry.name) => {}
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
