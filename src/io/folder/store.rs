//! A prefix of an object store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::{Path, PathPart};
use object_store::{ObjectMeta, ObjectStore};

use super::{Folder, FolderEntry};
use crate::error::{Error, Result};
use crate::io::{ByteRange, ByteSource, MemorySource, ObjectSource, object};

/// The objects of a store whose paths begin with a prefix.
///
/// The folder keeps the size and the entity tag of listed objects, so opening one needs no request for them.
#[derive(Debug)]
pub struct StoreFolder {
    name: String,
    pub(super) store: Arc<dyn ObjectStore>,
    /// The path of the folder in the store.
    prefix: Path,
    /// Whether the store cannot read parts of objects.
    whole_objects: bool,
    /// Metadata of objects that were listed or read at their end, by full path. Writing an object removes
    /// its entry.
    listed: Mutex<HashMap<Path, ObjectMeta>>,
}

impl StoreFolder {
    /// Returns the folder of the objects below `prefix` in `store`. Errors call the folder `name`.
    pub fn new(name: String, store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { name, store, prefix, whole_objects: false, listed: Mutex::default() }
    }

    /// Returns the folder for a store that cannot read parts of objects: each object is fetched as a whole.
    #[must_use]
    pub fn of_whole_objects(self) -> Self {
        Self { whole_objects: true, ..self }
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<Path, ObjectMeta>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of an object that is about to be written. Forgets its listed size and entity tag,
    /// which will be outdated.
    pub(super) fn path_to_write(&self, path: &str) -> Path {
        let path = self.path(path);
        self.listed().remove(&path);
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

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let listing = self.store.list_with_delimiter(Some(&self.path(path))).await;
        let listing = listing.map_err(|error| {
            Error::io("cannot list the folder", error).in_file(&self.error_name(path))
        })?;
        let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
        let folders = listing.common_prefixes.iter();
        let mut entries: Vec<FolderEntry> =
            folders.map(|path| FolderEntry { name: name(path), size: None }).collect();
        let mut listed = self.listed();
        for object in listing.objects {
            entries.push(FolderEntry { name: name(&object.location), size: Some(object.size) });
            listed.insert(object.location.clone(), object);
        }
        Ok(entries)
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let (name, path) = (self.error_name(path), self.path(path));
        let store = Arc::clone(&self.store);
        let listed = self.listed().get(&path).cloned();
        if self.whole_objects {
            // The tag makes the request fail if the object was replaced after it was listed.
            let e_tag = listed.and_then(|object| object.e_tag);
            let read = object::get(&*store, &path, &ByteRange::Whole, e_tag).await;
            let (bytes, _) = read.map_err(|error| object::failed(&name, error))?;
            return Ok(Arc::new(MemorySource::new(name, bytes)));
        }
        Ok(Arc::new(match listed {
            Some(object) => ObjectSource::listed(name, store, object),
            None => ObjectSource::open(name, store, path).await?,
        }))
    }

    fn reads_ranges(&self) -> bool {
        !self.whole_objects
    }

    async fn read_unopened(&self, path: &str, range: &ByteRange) -> Result<Option<Bytes>> {
        if self.whole_objects && *range != ByteRange::Whole {
            return Ok(None);
        }
        let (name, path) = (self.error_name(path), self.path(path));
        let e_tag = self.listed().get(&path).and_then(|object| object.e_tag.clone());
        match object::get(&*self.store, &path, range, e_tag).await {
            Ok((bytes, object)) => {
                // More parts of the object are likely to be read. Opening it now needs no request.
                if *range != ByteRange::Whole {
                    self.listed().insert(path, object);
                }
                Ok(Some(bytes))
            }
            // Some stores do not support suffixes.
            Err(object_store::Error::NotSupported { .. }) => Ok(None),
            Err(error) => Err(object::failed(&name, error)),
        }
    }
}
