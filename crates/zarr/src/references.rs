//! An opened reference file: a Zarr store whose chunks lie in other objects.
//!
//! The locations of the store are replaced by URLs. Values within the file are payloads that need no read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::store::{codec, facts};
use crate::bytes::{OpenReferences, ReferencedStore};
use gridfusion_cf::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use gridfusion_cf::hierarchy::Hierarchy;
use gridfusion_core::Result;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::io::{ByteSource, Folder, FolderEntry};
use gridfusion_core::source::Place;
use gridfusion_core::tile::{ObjectVersion, Objects, drive, drive_documents};

/// An opened reference file.
#[derive(Debug)]
pub(super) struct ReferenceFile {
    references: ReferencedStore,
    objects: Arc<Objects>,
    /// The version of the reference file, if anything tells versions apart.
    file: Option<ObjectVersion>,
}

impl ReferenceFile {
    /// Reads the reference file at `place`. The objects that it names are opened when they are first read.
    ///
    /// # Errors
    /// `Corrupt` if it is no reference file, `Unsupported` for references that formulas generate.
    pub(super) async fn open(place: &Place) -> Result<Self> {
        let file = Objects::one(place.object().await?);
        let version = file.versions().pop();
        let references = drive_documents(OpenReferences, &file, &place.documents()).await?;
        let is_remote = place.is_remote() || references.names_stores();
        let is_remote = Arc::new(AtomicBool::new(is_remote));
        let referenced = ReferencedObjects::new(place.clone(), is_remote);
        let objects = Arc::new(Objects::many(Arc::new(referenced)));
        Ok(Self { references, objects, file: version })
    }
}

#[async_trait]
impl VariableStore for ReferenceFile {
    fn hierarchy(&self) -> &Hierarchy {
        self.references.store().hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        drive(self.references.locate(variable, chunks)?, &self.objects).await
    }

    /// The references are the metadata and the places of all chunks.
    fn versions(&self) -> Vec<ObjectVersion> {
        self.file.clone().into_iter().collect()
    }

    fn facts(&self) -> StoreFacts {
        facts("reference file of a Zarr store", self.references.store())
    }

    fn codec(&self, variable: usize) -> Option<String> {
        codec(self.references.store(), variable)
    }

    /// The references are in memory, wherever the chunks are.
    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        located_totals(self, variable).await
    }
}

/// The objects that a reference file names, by URL, or by a path relative to the file. References in Parquet are a folder, and
/// its paths are relative to it in the same way.
#[derive(Debug)]
pub(super) struct ReferencedObjects {
    file: Place,
    /// Whether objects are in a store. References may tell it when they are read.
    is_remote: Arc<AtomicBool>,
}

#[async_trait]
impl Folder for ReferencedObjects {
    fn name(&self) -> &str {
        self.file.location()
    }

    fn location_of(&self, url: &str) -> String {
        self.place(url).map_or_else(|_| url.to_owned(), |place| place.location().to_owned())
    }

    fn is_remote(&self) -> bool {
        self.is_remote.load(Ordering::Relaxed)
    }

    async fn list(&self, _: &str) -> Result<Vec<FolderEntry>> {
        Ok(vec![])
    }

    async fn open(&self, url: &str) -> Result<Arc<dyn ByteSource>> {
        self.place(url)?.object().await
    }
}

impl ReferencedObjects {
    pub(super) fn new(file: Place, is_remote: Arc<AtomicBool>) -> Self {
        Self { file, is_remote }
    }

    /// Returns the place of a referenced object.
    ///
    /// # Errors
    /// As [`Place::referenced`].
    fn place(&self, url: &str) -> Result<Place> {
        match url.contains("://") || url.starts_with('/') {
            true => self.file.referenced(url),
            false => self.file.beside(url),
        }
    }
}
