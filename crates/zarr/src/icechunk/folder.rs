//! [`IcechunkFolder`]: the objects of a repository, and those that it refers to.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::bytes::icechunk::VirtualObject;
use gridfusion_core::Result;
use gridfusion_core::io::{ByteRange, ByteSource, Folder, FolderEntry, ObjectStamp, VersionBelow};
use gridfusion_core::source::Place;

/// The objects of a repository by their paths in it, and others by their URLs.
#[derive(Debug)]
pub(super) struct IcechunkFolder {
    place: Place,
    /// The folder of the repository.
    own: Arc<dyn Folder>,
    /// Whether it may refer to objects in stores.
    names_stores: bool,
}

impl IcechunkFolder {
    /// Returns the objects of the repository at `place`, which is the folder `own`.
    pub(super) fn new(place: &Place, own: Arc<dyn Folder>, names_stores: bool) -> Self {
        Self { place: place.clone(), own, names_stores }
    }
}

#[async_trait]
impl Folder for IcechunkFolder {
    fn name(&self) -> &str {
        self.own.name()
    }

    fn location_of(&self, path: &str) -> String {
        match VirtualObject::parse(path) {
            Some(object) => object.url,
            None => self.own.location_of(path),
        }
    }

    fn is_resident(&self) -> bool {
        self.own.is_resident() && !self.names_stores
    }

    fn is_remote(&self) -> bool {
        self.own.is_remote() || self.names_stores
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        self.own.list(path).await
    }

    async fn list_all(&self, paths: &[String]) -> Result<Vec<Vec<FolderEntry>>> {
        self.own.list_all(paths).await
    }

    async fn open_all(&self, paths: &[Arc<str>]) -> Vec<Result<Arc<dyn ByteSource>>> {
        match paths.iter().any(|path| VirtualObject::parse(path).is_some()) {
            true => vec![],
            false => self.own.open_all(paths).await,
        }
    }

    /// Opens an object. One outside of the repository must be what it was when it was referenced.
    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let Some(object) = VirtualObject::parse(path) else { return self.own.open(path).await };
        let source = self.place.referenced(&object.url)?.object().await?;
        object.check(source.tag().as_deref(), source.modified())?;
        Ok(source)
    }

    fn reads_ranges(&self) -> bool {
        self.own.reads_ranges()
    }

    async fn some_below(&self, path: &str, most: usize) -> Result<Vec<String>> {
        self.own.some_below(path, most).await
    }

    async fn stamps(&self, paths: &[Arc<str>]) -> Result<Option<Vec<Option<ObjectStamp>>>> {
        match paths.iter().any(|path| VirtualObject::parse(path).is_some()) {
            true => Ok(None),
            false => self.own.stamps(paths).await,
        }
    }

    fn versions_below(&self, path: &str, most: usize) -> Result<Option<Vec<VersionBelow>>> {
        self.own.versions_below(path, most)
    }

    fn stamp_as_read(&self, path: &str) -> Option<ObjectStamp> {
        VirtualObject::parse(path).is_none().then(|| self.own.stamp_as_read(path)).flatten()
    }

    fn absent_above(&self, path: &str) -> Option<String> {
        VirtualObject::parse(path).is_none().then(|| self.own.absent_above(path)).flatten()
    }

    fn is_known_absent(&self, path: &str) -> bool {
        VirtualObject::parse(path).is_none() && self.own.is_known_absent(path)
    }

    fn note_absent(&self, path: &str) {
        if VirtualObject::parse(path).is_none() {
            self.own.note_absent(path);
        }
    }

    fn forget_absent(&self) -> bool {
        self.own.forget_absent()
    }

    /// An object with chunks mostly is one chunk.
    fn reads_parts_unopened(&self, path: &str) -> bool {
        VirtualObject::parse(path).is_none()
    }

    async fn read_unopened(
        &self,
        path: &str,
        range: &ByteRange,
        is_metadata: bool,
        most: u64,
    ) -> Result<Option<Bytes>> {
        // The reply would not tell whether the object is still the same.
        if VirtualObject::parse(path).is_some() {
            return Ok(None);
        }
        self.own.read_unopened(path, range, is_metadata, most).await
    }
}
