//! An opened archive of a Zarr store: its metadata and its chunks are members of one object.
//!
//! ```text
//!   directory ──▶ ZipFolder: metadata, read like those of a store in a folder
//!            └──▶ ZipPlaces: chunks, read as ranges of the object
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `folder` | the members as objects of a folder, and which folder is the store |
//! | `check` | the headers and the checksums of chunks |

mod check;
mod folder;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;

use super::store::{ZarrReader, facts};
use crate::bytes::{OpenZip, ZarrArray, ZipDirectory, ZipPlaces, is_zip};
use folder::{ZipFolder, store_folder};
use gridfusion_cf::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use gridfusion_cf::hierarchy::Hierarchy;
use gridfusion_core::format::StoredChunk;
use gridfusion_core::io::ByteSource;
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Documents, Objects, drive, drive_documents};
use gridfusion_core::{Error, ErrorKind, Result};

/// An opened archive.
#[derive(Debug)]
pub(super) struct ZippedStore {
    /// The metadata, which the reader takes for those of a folder.
    reader: ZarrReader,
    directory: Arc<ZipDirectory>,
    /// The folder in the archive that is the store; empty for the archive itself.
    folder: String,
    places: ZipPlaces,
    /// The archive.
    objects: Arc<Objects>,
}

/// Whether the file at a place is an archive of a Zarr store, as its directory tells.
///
/// # Errors
/// `Io` if it cannot be read; `Corrupt` and `Unsupported` for a file that begins as an archive, and whose directory cannot be
/// read.
pub(super) async fn is_zipped_store(place: &Place) -> Result<bool> {
    let source = place.object().await?;
    let (objects, documents) = (Objects::one(Arc::clone(&source)), place.documents());
    let machine = OpenZip::new(source.size(), documents.most);
    match drive_documents(machine, &objects, &documents).await {
        Ok(directory) => Ok(directory.is_zipped_zarr() || store_folder(&directory).is_ok()),
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let first = 0..source.size().min(4);
            let head = source.read(std::slice::from_ref(&first)).await?.concat();
            if is_zip(&head) { Err(error.in_file(place.location())) } else { Ok(false) }
        }
        Err(error) => Err(error.in_file(place.location())),
    }
}

impl ZippedStore {
    /// Reads the directory of the archive at `place`, and the metadata of the store in it.
    ///
    /// # Errors
    /// `Usage` if it holds no Zarr store; `Corrupt` if it contradicts itself; `Unsupported` for archives of several parts, and for
    /// metadata that cannot be unpacked.
    pub(super) async fn open(place: &Place) -> Result<Self> {
        let opened = Self::read(place.object().await?, &place.documents()).await;
        opened.map_err(|error| error.in_folder(place.location()))
    }

    /// As [`ZippedStore::open`], for an open archive.
    async fn read(source: Arc<dyn ByteSource>, documents: &Documents) -> Result<Self> {
        let objects = Arc::new(Objects::one(Arc::clone(&source)));
        let machine = OpenZip::new(source.size(), documents.most);
        let directory = drive_documents(machine, &objects, documents).await?;
        documents.check_memory(directory.memory())?;
        let folder = match store_folder(&directory) {
            Ok(folder) => folder,
            Err(error) => {
                // Names with backslashes may be all of the store.
                let odd = directory.check_names("").err().map(|odd| odd.to_string());
                return Err(odd.map_or(error.clone(), |odd| error.followed_by(&odd)));
            }
        };
        directory.check_names(&folder)?;
        let members = ZipFolder::new(source, Arc::clone(&directory), &folder);
        let reader =
            ZarrReader::read(Arc::new(Objects::many(Arc::new(members))), documents).await?;
        // The headers of a file on this machine are cheap to read. Then parts of its chunks are, too.
        let places = ZipPlaces::new(Arc::clone(&directory), &folder, !objects.is_remote());
        Ok(Self { reader, directory, folder, places, objects })
    }

    fn array(&self, variable: usize) -> Result<&Arc<ZarrArray>> {
        let array = self.reader.arrays().get(variable);
        array.ok_or_else(|| Error::internal("a variable that does not exist"))
    }

    /// Returns the path of an array in the archive.
    fn path_of(&self, array: &ZarrArray) -> String {
        let parts = [self.folder.as_str(), array.variable().path.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }
}

#[async_trait]
impl VariableStore for ZippedStore {
    fn hierarchy(&self) -> &Hierarchy {
        self.reader.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let places = Arc::new(self.places.clone());
        let machine = self.reader.store().locate(variable, chunks)?.with_places(places);
        drive(machine, &self.objects).await
    }

    async fn explain_absence(&self, variable: usize) -> Result<Option<String>> {
        self.reader.explain_absence(variable).await
    }

    fn facts(&self) -> StoreFacts {
        let warnings = self.reader.facts().warnings;
        let size = self.objects.size();
        StoreFacts { warnings, size, ..facts("zipped Zarr store", self.reader.store()) }
    }

    fn codec(&self, variable: usize) -> Option<String> {
        self.reader.codec(variable)
    }

    /// Only the indexes of shards tell which chunks are in them.
    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        let array = self.array(variable)?;
        let path = self.path_of(array);
        let is_chunk = |(name, _): &(&str, _)| array.is_object(name);
        let mut members = self.directory.below(&path).filter(is_chunk).map(|(_, member)| member);
        if array.shard_shape().is_some() {
            let are_stored = members.all(|member| member.is_stored());
            return match are_stored && !self.objects.is_remote() {
                true => located_totals(self, variable).await,
                false => Ok(None),
            };
        }
        let mut totals = StoredTotals::default();
        for member in members {
            totals.chunks += 1;
            totals.bytes = totals.bytes.saturating_add(member.stored_len());
        }
        let raw_bytes = array.chunk_bytes().map(|bytes| bytes.saturating_mul(totals.chunks));
        Ok(Some(StoredTotals { raw_bytes, ..totals }))
    }

    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        self.check_headers(variable).await.map(Some)
    }

    async fn check_checksums(&self, variable: usize) -> Result<Option<u64>> {
        self.check_stored(variable).await.map(Some)
    }
}
