//! A prefix of an object store.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::{Path, PathPart};

use super::{Folder, FolderEntry};
use crate::error::Result;
use crate::io::remote::RemoteStore;
use crate::io::{ByteRange, ByteSource, MemorySource, ObjectSource, ObjectStamp};

/// The most objects that are checked one by one at the end of a query.
const MOST_CHECKED: usize = 8;

/// The objects of a store whose paths begin with a prefix.
///
/// The session knows the size and the entity tag of listed objects, so opening one needs no request for them.
#[derive(Debug)]
pub struct StoreFolder {
    name: String,
    pub(super) store: RemoteStore,
    /// The path of the folder in the store.
    prefix: Path,
    /// Whether the store cannot read parts of objects.
    whole_objects: bool,
}

impl StoreFolder {
    /// Returns the folder of the objects below `prefix` in `store`. Errors call the folder `name`.
    pub fn new(name: String, store: impl Into<RemoteStore>, prefix: Path) -> Self {
        Self { name, store: store.into(), prefix, whole_objects: false }
    }

    /// Returns the folder for a store that cannot read parts of objects: each object is fetched as a whole.
    #[must_use]
    pub fn of_whole_objects(self) -> Self {
        Self { whole_objects: true, ..self }
    }

    /// Returns the folder of the same store with another prefix.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use gridfusion_core::io::{Folder, StoreFolder};
    /// use object_store::memory::InMemory;
    ///
    /// let store = Arc::new(InMemory::new()) as Arc<dyn object_store::ObjectStore>;
    /// let folder = StoreFolder::new("mem://a/x".into(), store, "a/x".into());
    /// assert_eq!(folder.at("mem://a/y".into(), "a/y".into()).name(), "mem://a/y");
    /// ```
    #[must_use]
    pub fn at(&self, name: String, prefix: Path) -> Self {
        Self { name, store: self.store.clone(), prefix, whole_objects: self.whole_objects }
    }

    /// Returns the path of an object that is about to be written. Forgets all about the old object.
    pub(super) fn path_to_write(&self, path: &str) -> Path {
        let path = self.path(path);
        self.store.forget(&path);
        path
    }

    /// Returns the full path of `path` in the store, with special characters escaped.
    fn path(&self, path: &str) -> Path {
        let parts = path.split('/').filter(|part| !part.is_empty());
        self.prefix.parts().chain(parts.map(PathPart::from)).collect()
    }

    /// Returns the name of an object or folder for errors, below the name of this folder.
    pub(super) fn error_name(&self, path: &str) -> String {
        format!("{}/{path}", self.name.trim_end_matches('/'))
    }
}

#[async_trait]
impl Folder for StoreFolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_remote(&self) -> bool {
        true
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let listing = Box::pin(self.store.list(&self.path(path))).await;
        listing.map_err(|error| error.in_file(&self.error_name(path)))
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let (name, at) = (self.error_name(path), self.path(path));
        if self.whole_objects {
            let read =
                Box::pin(self.store.read_unopened(&at, &ByteRange::Whole, true, u64::MAX)).await;
            let bytes = read.map_err(|error| error.in_file(&name))?.unwrap_or_default();
            return Ok(Arc::new(MemorySource::new(name, bytes)));
        }
        Ok(Arc::new(Box::pin(ObjectSource::open_listed(name, self.store.clone(), at)).await?))
    }

    async fn some_below(&self, path: &str, most: usize) -> Result<Vec<String>> {
        let at = self.path(path);
        let found = Box::pin(self.store.some_below(&at, most)).await;
        let found = found.map_err(|error| error.in_file(&self.error_name(path)))?;
        let relative = |found: Path| {
            let parts: Vec<_> =
                found.prefix_match(&at)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok(found.into_iter().filter_map(relative).collect())
    }

    /// Checks a few objects, such as metadata. Objects that were confirmed recently need no request.
    async fn stamps(&self, paths: &[Arc<str>]) -> Result<Option<Vec<Option<ObjectStamp>>>> {
        if paths.len() > MOST_CHECKED {
            return Ok(None);
        }
        let check = |path: &Arc<str>| {
            let (name, path) = (self.error_name(path), self.path(path));
            async move {
                let now = Box::pin(self.store.confirm(&path)).await;
                now.map(|it| it.map(|it| it.stamp())).map_err(|error| error.in_file(&name))
            }
        };
        let checks: Vec<_> = paths.iter().map(check).collect();
        futures::future::try_join_all(checks).await.map(Some)
    }

    fn is_known_absent(&self, path: &str) -> bool {
        self.store.is_known_absent(&self.path(path))
    }

    fn note_absent(&self, path: &str) {
        self.store.note_absent(&self.path(path));
    }

    fn forget_absent(&self) -> bool {
        self.store.forget_absent(&self.prefix)
    }

    fn stamp_as_read(&self, path: &str) -> Option<ObjectStamp> {
        self.store.listed(&self.path(path)).map(|identity| identity.stamp())
    }

    fn reads_ranges(&self) -> bool {
        !self.whole_objects
    }

    async fn read_unopened(
        &self,
        path: &str,
        range: &ByteRange,
        is_metadata: bool,
        most: u64,
    ) -> Result<Option<Bytes>> {
        if self.whole_objects && *range != ByteRange::Whole {
            return Ok(None);
        }
        let read =
            Box::pin(self.store.read_unopened(&self.path(path), range, is_metadata, most)).await;
        read.map_err(|error| error.in_file(&self.error_name(path)))
    }
}
