//! An object of an `object_store`: S3, GCS, Azure, HTTP, memory.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;

use super::remote::{Identity, RemoteStore};
use super::{ByteSource, ObjectStamp, check_bounds};
use crate::error::Result;

/// One object of a store. Ranges that lie close together are fetched with one request.
///
/// Reads fail if the object is replaced after it was opened, instead of mixing old and new bytes: each
/// reply must have the length and the entity tag of the opened object. Without tags, times are compared.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    store: RemoteStore,
    path: Path,
    identity: Identity,
    /// All bytes, if the server cannot send parts.
    whole: Option<Bytes>,
}

impl ObjectSource {
    /// Opens an object with at most one request, which fetches its first bytes too. Errors call the object
    /// `name`.
    ///
    /// # Errors
    /// `Io` if the object does not exist or the store cannot be reached.
    pub async fn open(name: String, store: impl Into<RemoteStore>, path: Path) -> Result<Self> {
        let store = store.into();
        let opened = store.open(&path).await.map_err(|error| error.in_file(&name))?;
        Ok(Self { name, store, path, identity: opened.identity, whole: opened.whole })
    }

    /// Opens an object that was listed or opened before without a request; otherwise as
    /// [`ObjectSource::open`].
    pub(super) async fn open_listed(name: String, store: RemoteStore, path: Path) -> Result<Self> {
        match store.listed(&path) {
            Some(identity) => Ok(Self { name, store, path, identity, whole: None }),
            None => Self::open(name, store, path).await,
        }
    }

    async fn read(&self, ranges: &[Range<u64>], keep: bool) -> Result<Vec<Bytes>> {
        check_bounds(self, ranges)?;
        if let Some(whole) = &self.whole {
            let slice = |it: &Range<u64>| whole.slice(it.start as usize..it.end as usize);
            return Ok(ranges.iter().map(slice).collect());
        }
        let read = Box::pin(self.store.read(&self.path, &self.identity, ranges, keep)).await;
        read.map_err(|error| error.in_file(&self.name))
    }
}

#[async_trait]
impl ByteSource for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.identity.size
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn fetched_head(&self) -> Option<Bytes> {
        self.store.fetched_head(&self.path, &self.identity)
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.read(ranges, false).await
    }

    fn version(&self) -> Option<String> {
        self.identity.version()
    }

    fn tag(&self) -> Option<String> {
        self.identity.tag()
    }

    fn modified(&self) -> Option<i64> {
        self.identity.modified()
    }

    fn stamp(&self) -> Option<ObjectStamp> {
        Some(self.identity.stamp())
    }

    async fn read_metadata(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.read(ranges, true).await
    }
}
