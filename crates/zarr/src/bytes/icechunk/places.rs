//! [`ChunksAt`]: where the chunks of a snapshot are, as tables of places.
//!
//! ```text
//!   chunk ──▶ manifests whose boxes hold it: known, or to be read ──▶ its place there
//!                                                                     chunks/ID, and its range
//!                                                                     URL, or URL NUL what its version must be
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::containers::Containers;
use super::id::ObjectId;
use super::known_manifests::KnownManifests;
use super::manifest::{ChunkPlace, Manifest, Written};
use super::snapshot::{ArrayChunks, Snapshot};
use crate::bytes::array::ZarrArray;
use crate::bytes::places::{KnownTable, ObjectPlace, ObjectPlaces, PlaceTable};
use gridfusion_core::error::shown_location;
use gridfusion_core::format::{ByteRange, Location};
use gridfusion_core::{Error, Result};

/// The folder of manifests, with a slash.
const MANIFESTS: &str = "manifests/";

/// A snapshot, and all that is needed to find its chunks.
#[derive(Debug)]
pub(super) struct ChunksAt {
    pub(super) snapshot: Snapshot,
    pub(super) containers: Containers,
    pub(super) known: KnownManifests,
    /// The most bytes of a metadata document.
    pub(super) most: u64,
    /// The bytes of memory of metadata that was parsed since this was last asked.
    pub(super) parsed: AtomicU64,
}

impl ChunksAt {
    /// Returns where the chunks of an array are listed.
    pub(super) fn chunks_of(&self, array: &ZarrArray) -> Result<&Arc<ArrayChunks>> {
        let path = &array.variable().path;
        let found = self.snapshot.arrays.get(path.as_str());
        found.ok_or_else(|| Error::internal(format!("the array \"{path}\" of no snapshot")))
    }

    /// Parses a manifest that was read.
    ///
    /// # Errors
    /// As [`Manifest::parse`].
    pub(super) fn parse(&self, id: &ObjectId, bytes: &Bytes) -> Result<Arc<Manifest>> {
        let manifest = Manifest::parse(id, bytes, self.most);
        let manifest = Arc::new(manifest.map_err(|error| error.in_file(&manifest_object(id)))?);
        self.parsed.fetch_add(manifest.memory() as u64, Ordering::Relaxed);
        self.known.insert(*id, &manifest);
        Ok(manifest)
    }

    /// Returns where bytes are.
    ///
    /// # Errors
    /// `Unsupported` for a URL that no store has; `Corrupt` for a container that does not exist.
    pub(super) fn object_place(&self, place: ChunkPlace) -> Result<ObjectPlace> {
        let range = |offset: u64, len: u64| ByteRange::from(offset..offset + len);
        Ok(match place {
            ChunkPlace::Inline(bytes) => ObjectPlace::Here(bytes),
            ChunkPlace::Native { id, offset, len } => {
                ObjectPlace::At(Location::new(format!("chunks/{id}"), range(offset, len)))
            }
            ChunkPlace::Virtual { location, offset, len, written } => {
                let url = checked_url(&self.containers.url(&location)?)?;
                let object = VirtualObject { url, written }.name();
                ObjectPlace::At(Location::new(object, range(offset, len)))
            }
        })
    }
}

/// Returns the name of the object with a manifest.
pub(super) fn manifest_object(id: &ObjectId) -> String {
    format!("{MANIFESTS}{id}")
}

/// Returns a URL as the session's stores have it.
///
/// # Errors
/// `Unsupported` for another scheme, and for a path that parsing a URL would change.
fn checked_url(url: &str) -> Result<String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| {
        Error::unsupported(format!("virtual chunks at \"{url}\", which is no URL"))
    })?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "gcs" => "gs".to_owned(),
        "azure" => "az".to_owned(),
        known @ ("s3" | "s3a" | "gs" | "az" | "abfs" | "abfss" | "http" | "https" | "file"
        | "memory") => known.to_owned(),
        other => {
            return Err(Error::unsupported(format!(
                "virtual chunks at URLs of the scheme {other}"
            )));
        }
    };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once('/').map_or("", |(_, path)| path);
    let is_odd = |part: &str| {
        let plain = part.to_ascii_lowercase().replace("%2e", ".");
        part.is_empty() || plain == "." || plain == ".."
    };
    if path.contains(['\0', '\\']) || path.split('/').any(is_odd) {
        return Err(Error::unsupported(format!(
            "virtual chunks at {}, whose path has odd parts",
            shown_location(url)
        )));
    }
    Ok(format!("{scheme}://{rest}"))
}

/// An object outside of a repository, and what shows that it is still the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VirtualObject {
    /// Its URL.
    pub(crate) url: String,
    written: Option<Written>,
}

impl VirtualObject {
    /// Returns a name for locations. References to one object with different tags are different objects.
    fn name(&self) -> String {
        match &self.written {
            None => self.url.clone(),
            Some(Written::Tag(tag)) => format!("{}\0tag\0{tag}", self.url),
            Some(Written::By(seconds)) => format!("{}\0by\0{seconds}", self.url),
        }
    }

    /// Parses a name; `None` for an object of the repository.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, '\0');
        let url = parts.next().filter(|url| url.contains("://"))?.to_owned();
        let written = match (parts.next(), parts.next()) {
            (Some("tag"), Some(tag)) => Some(Written::Tag(tag.to_owned())),
            (Some("by"), Some(seconds)) => Some(Written::By(seconds.parse().ok()?)),
            _ => None,
        };
        Some(Self { url, written })
    }

    /// Fails if the object has another `tag` than when it was referenced, or was `modified` later, in seconds since
    /// 1970.
    ///
    /// # Errors
    /// `Io`, with both values.
    pub(crate) fn check(&self, tag: Option<&str>, modified: Option<i64>) -> Result<()> {
        let opaque = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
        let reason = match &self.written {
            None => return Ok(()),
            Some(Written::Tag(expected)) => match tag.map(opaque) {
                Some(tag) if tag == opaque(expected) => return Ok(()),
                Some(tag) => format!("its tag is {tag}, and was {}", opaque(expected)),
                None => format!("its tag was {}, and now it has none", opaque(expected)),
            },
            Some(Written::By(expected)) => match modified {
                Some(time) if time <= i64::from(*expected) => return Ok(()),
                Some(time) => format!("it was written at {time} s since 1970, after {expected} s"),
                None => format!("it was written by {expected} s since 1970, and now tells no time"),
            },
        };
        let cause = std::io::Error::other(format!("{reason}; make the references to it again"));
        Err(Error::io("the object has changed since it was referenced", cause).in_file(&self.url))
    }
}

/// The tables for one search. Manifests that it has seen stay until it ends.
#[derive(Debug)]
pub(super) struct SearchedManifests {
    chunks: Arc<ChunksAt>,
    held: Mutex<HashMap<ObjectId, Arc<Manifest>>>,
}

impl SearchedManifests {
    pub(super) fn new(chunks: Arc<ChunksAt>) -> Self {
        Self { chunks, held: Mutex::default() }
    }

    fn table(&self, manifest: Arc<Manifest>) -> Arc<dyn PlaceTable> {
        Arc::new(ManifestTable { chunks: Arc::clone(&self.chunks), manifest })
    }

    /// Returns a manifest that this search or one before it has read.
    fn known(&self, id: &ObjectId) -> Option<Arc<Manifest>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(manifest) = held.get(id) {
            return Some(Arc::clone(manifest));
        }
        let manifest = self.chunks.known.get(id)?;
        held.insert(*id, Arc::clone(&manifest));
        Some(manifest)
    }
}

impl ObjectPlaces for SearchedManifests {
    fn tables(&self, array: &ZarrArray, object: &[u64]) -> Result<Vec<KnownTable>> {
        let chunks = self.chunks.chunks_of(array)?;
        let index: Vec<u64> = array.stored_at(object).collect();
        let mut manifests = chunks.manifests.of_chunk(&index);
        let Some(manifest) = manifests.next() else { return Ok(vec![]) };
        if let Some(other) = manifests.next() {
            let (path, a, b) = (&array.variable().path, manifest.id, other.id);
            let message =
                format!("the manifests {a} and {b} both list the chunk {index:?} of \"{path}\"");
            return Err(Error::corrupt_region("snapshot", message));
        }
        Ok(vec![match self.known(&manifest.id) {
            Some(known) => KnownTable::Here(self.table(known)),
            None => KnownTable::At(Location::new(manifest_object(&manifest.id), ByteRange::Whole)),
        }])
    }

    fn parse(&self, at: &Location, bytes: Bytes) -> Result<Arc<dyn PlaceTable>> {
        let id = at.object.strip_prefix(MANIFESTS).map(ObjectId::parse).transpose()?;
        let id = id.ok_or_else(|| Error::internal(format!("{} is no manifest", at.object)))?;
        let manifest = self.chunks.parse(&id, &bytes)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(id, Arc::clone(&manifest));
        Ok(self.table(manifest))
    }
}

/// A manifest as a table. It may list chunks of several arrays.
#[derive(Debug)]
struct ManifestTable {
    chunks: Arc<ChunksAt>,
    manifest: Arc<Manifest>,
}

impl PlaceTable for ManifestTable {
    fn place(&self, array: &ZarrArray, object: &[u64]) -> Result<Option<ObjectPlace>> {
        let node = &self.chunks.chunks_of(array)?.id;
        let index: Vec<u64> = array.stored_at(object).collect();
        let place = self.manifest.chunk(node, &index)?;
        place.map(|place| self.chunks.object_place(place)).transpose()
    }
}
