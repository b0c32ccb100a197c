//! [`IcechunkStore`]: an opened version of a repository.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::id::ObjectId;
use super::manifest::{ChunkPlace, Manifest};
use super::places::{ChunksAt, SearchedManifests, manifest_object};
use super::references::{KnownReferences, NamedSnapshot};
use super::repository::{RepositoryObject, SnapshotFacts};
use super::version::VersionChoice;
use crate::bytes::array::ZarrArray;
use crate::bytes::locate::LocateZarr;
use crate::bytes::open_store::ZarrStore;
use gridfusion_core::{Error, Result};

/// An opened version of a repository.
#[derive(Debug)]
pub struct IcechunkStore {
    store: ZarrStore,
    chunks: Arc<ChunksAt>,
    choice: VersionChoice,
    /// The object `repo` of version 2.
    repository: Option<RepositoryObject>,
}

impl IcechunkStore {
    pub(super) fn new(
        store: ZarrStore,
        chunks: Arc<ChunksAt>,
        choice: VersionChoice,
        repository: Option<RepositoryObject>,
    ) -> Self {
        Self { store, chunks, choice, repository }
    }

    /// The groups and arrays.
    pub fn store(&self) -> &ZarrStore {
        &self.store
    }

    /// The facts about the snapshot.
    pub fn snapshot(&self) -> &SnapshotFacts {
        &self.chunks.snapshot.facts
    }

    /// The version of the specification: 1, or 2 for 2.0 and 2.1.
    pub fn version(&self) -> u8 {
        if self.repository.is_some() { 2 } else { self.chunks.snapshot.version }
    }

    /// The choice that led to the snapshot.
    pub fn choice(&self) -> &VersionChoice {
        &self.choice
    }

    /// Returns the bytes of memory that metadata takes which was parsed since the last call.
    pub fn take_parsed(&self) -> u64 {
        self.chunks.parsed.swap(0, Ordering::Relaxed)
    }

    /// Returns remarks about servers of virtual chunks.
    pub fn remarks(&self) -> Vec<String> {
        self.chunks.containers.remarks()
    }

    /// Whether virtual chunks may be in object stores.
    pub fn names_stores(&self) -> bool {
        self.chunks.containers.names_stores()
    }

    /// Returns all branches and tags; `None` for version 1, where they are objects of their own.
    pub fn references(&self) -> Option<KnownReferences> {
        self.repository.as_ref().map(RepositoryObject::references)
    }

    /// Returns the facts about a snapshot; `None` if only the snapshot itself has them.
    pub fn facts_of(&self, id: &ObjectId) -> Option<&SnapshotFacts> {
        self.repository.as_ref()?.snapshot(id)
    }

    /// Returns the snapshot and those before it, newest first; `None` for version 1, where each names the one before
    /// it.
    ///
    /// # Errors
    /// `Corrupt` if one of them comes before itself.
    pub fn history(&self) -> Result<Option<Vec<SnapshotFacts>>> {
        let Some(repository) = &self.repository else { return Ok(None) };
        let history = repository.history(&self.snapshot().id)?;
        Ok(Some(history.into_iter().cloned().collect()))
    }

    /// Returns a machine that finds chunks of a variable.
    ///
    /// # Errors
    /// `Internal` if there is no such variable.
    pub fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<LocateZarr> {
        let places = SearchedManifests::new(Arc::clone(&self.chunks));
        Ok(self.store.locate(variable, chunks)?.with_places(Arc::new(places)))
    }

    fn array(&self, variable: usize) -> Result<&Arc<ZarrArray>> {
        let array = self.store.arrays().get(variable);
        array.ok_or_else(|| Error::internal("a variable that does not exist"))
    }

    /// Returns the manifests that list chunks of a variable.
    ///
    /// # Errors
    /// `Internal` if there is no such variable.
    pub fn manifests(&self, variable: usize) -> Result<Vec<ListedManifest>> {
        let chunks = self.chunks.chunks_of(self.array(variable)?)?;
        let listed = |id: ObjectId| ListedManifest {
            object: manifest_object(&id),
            bytes: self.chunks.snapshot.manifests.get(&id).map(|it| it.bytes),
            id,
        };
        Ok(chunks.manifests.all().iter().map(|it| listed(it.id)).collect())
    }

    /// Returns the chunks of a variable that a manifest lists. `bytes` are those of the manifest.
    ///
    /// # Errors
    /// `Corrupt` if the manifest cannot be parsed, or contradicts the snapshot.
    pub fn listed(
        &self,
        variable: usize,
        manifest: &ListedManifest,
        bytes: &Bytes,
    ) -> Result<Vec<ListedChunk>> {
        let parsed = self.chunks.parse(&manifest.id, bytes)?;
        let in_file = |error: Error| error.in_file(&manifest.object);
        self.check_count(manifest, &parsed).map_err(in_file)?;
        let array = self.array(variable)?;
        let chunks = self.chunks.chunks_of(array)?;
        let all = parsed.chunks_of(&chunks.id).map_err(in_file)?;
        let listed = |(index, place): (Vec<u64>, ChunkPlace)| {
            if chunks.manifests.of_chunk(&index).all(|it| it.id != manifest.id) {
                let path = &array.variable().path;
                let message = format!(
                    "it lists the chunk {index:?} of \"{path}\", which is outside of its extents"
                );
                return Err(Error::corrupt_region("manifest", message));
            }
            let (native, len) = match place {
                ChunkPlace::Inline(bytes) => (None, bytes.len() as u64),
                ChunkPlace::Native { id, offset, len } => (Some((id, offset)), len),
                ChunkPlace::Virtual { len, .. } => (None, len),
            };
            let native = native.map(|(id, offset)| (id.to_string(), offset));
            Ok(ListedChunk { index, native, len })
        };
        all.into_iter().map(listed).collect::<Result<_>>().map_err(in_file)
    }

    /// Adds up the chunks of a variable that a manifest lists: their number, and their bytes. `bytes` are those of the
    /// manifest; without them, the result is `None` for a manifest that was not read before.
    ///
    /// # Errors
    /// `Corrupt` if the manifest cannot be parsed.
    pub fn totals(
        &self,
        variable: usize,
        manifest: &ListedManifest,
        bytes: Option<&Bytes>,
    ) -> Result<Option<(u64, u64)>> {
        let array = self.array(variable)?;
        let parsed = match bytes {
            Some(bytes) => Some(self.chunks.parse(&manifest.id, bytes)?),
            None => self.chunks.known.get(&manifest.id),
        };
        let Some(parsed) = parsed else { return Ok(None) };
        let mut totals = (0, 0_u64);
        parsed.each_length(&self.chunks.chunks_of(array)?.id, |index, len| {
            if array.has_object(index) {
                totals.0 += 1;
                totals.1 = totals.1.saturating_add(len);
            }
        })?;
        Ok(Some(totals))
    }

    /// Returns the manifests that the snapshot lists, and no array.
    pub fn other_manifests(&self) -> Vec<ListedManifest> {
        let snapshot = &self.chunks.snapshot;
        let of_arrays = snapshot.arrays.values().flat_map(|it| it.manifests.all());
        let of_arrays: HashSet<ObjectId> = of_arrays.map(|it| it.id).collect();
        let others = snapshot.manifests.iter().filter(|(id, _)| !of_arrays.contains(id));
        let mut others: Vec<ListedManifest> = others
            .map(|(id, facts)| ListedManifest {
                object: manifest_object(id),
                bytes: Some(facts.bytes),
                id: *id,
            })
            .collect();
        others.sort_unstable_by(|a, b| a.object.cmp(&b.object));
        others
    }

    /// Parses a manifest that no array has, and compares its count.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be parsed, or lists more or fewer chunks than the snapshot tells.
    pub fn check_other(&self, manifest: &ListedManifest, bytes: &Bytes) -> Result<()> {
        let parsed = self.chunks.parse(&manifest.id, bytes)?;
        self.check_count(manifest, &parsed).map_err(|error| error.in_file(&manifest.object))
    }

    /// Whether the objects of a variable are shards.
    pub fn is_sharded(&self, variable: usize) -> bool {
        self.array(variable).is_ok_and(|array| array.shard_shape().is_some())
    }

    /// Returns the coordinates of the first chunk in an object of a variable. `None` for an object outside of the array, as is left
    /// when an array becomes shorter.
    pub fn first_chunk(&self, variable: usize, stored: &[u64]) -> Option<Vec<u64>> {
        self.array(variable).ok()?.first_chunk(stored)
    }

    /// Compares the number of chunks with what the snapshot tells.
    fn check_count(&self, manifest: &ListedManifest, parsed: &Manifest) -> Result<()> {
        let facts = self.chunks.snapshot.manifests.get(&manifest.id);
        let facts = facts.ok_or_else(|| {
            let message = "the snapshot does not list it among its manifests";
            Error::corrupt_region("manifest", message)
        })?;
        if u64::from(facts.chunks) != parsed.chunks() {
            let (here, there) = (parsed.chunks(), facts.chunks);
            let message = format!("it lists {here} chunks, and the snapshot tells of {there}");
            return Err(Error::corrupt_region("manifest", message));
        }
        Ok(())
    }
}

/// A manifest that lists chunks of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedManifest {
    /// Its object.
    pub object: String,
    /// Its bytes as stored, if the snapshot tells.
    pub bytes: Option<u64>,
    id: ObjectId,
}

/// A chunk in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChunk {
    /// The coordinates of its object, as they are stored: a chunk, or a shard.
    pub index: Vec<u64>,
    /// The name of the object of the repository and the offset in it; `None` for a chunk that is elsewhere.
    pub native: Option<(String, u64)>,
    /// Its bytes as stored.
    pub len: u64,
}

impl RepositoryObject {
    /// Returns all branches and tags.
    pub(super) fn references(&self) -> KnownReferences {
        let named = |kind: &'static str, all: &[(String, usize)]| -> Vec<NamedSnapshot> {
            let each = all.iter().filter_map(|(name, number)| {
                let id = self.snapshots.get(*number)?.id;
                Some(NamedSnapshot { kind, name: name.clone(), id })
            });
            each.collect()
        };
        let mut all = named("branch", &self.branches);
        all.extend(named("tag", &self.tags));
        KnownReferences { named: all, deleted: self.deleted_tags.clone() }
    }
}
