//! A prefix of an object store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use object_store::path::{Path, PathPart};
use object_store::{ObjectMeta, ObjectStore};

use super::{Folder, FolderEntry};
use crate::error::{Error, Result};
use crate::io::{ByteSource, ObjectSource};

/// The objects of a store whose paths begin with a prefix.
///
/// What a listing says about an object (its size, its entity tag) is kept, so that opening it asks
/// nothing more.
#[derive(Debug)]
pub struct StoreFolder {
    name: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    listed: Mutex<HashMap<Path, ObjectMeta>>,
}

impl StoreFolder {
    /// The objects of `store` below `prefix`; `name` is what errors call the folder.
    pub fn new(name: String, store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { name, store, prefix, listed: Mutex::default() }
    }

    fn path(&self, path: &str) -> Path {
        let parts = path.split('/').filter(|part| !part.is_empty());
        self.prefix.parts().chain(parts.map(PathPart::from)).collect()
    }

    fn error_name(&self, path: &str) -> String {
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
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        for object in listing.objects {
            entries.push(FolderEntry { name: name(&object.location), size: Some(object.size) });
            listed.insert(object.location.clone(), object);
        }
        Ok(entries)
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let (name, path) = (self.error_name(path), self.path(path));
        let store = Arc::clone(&self.store);
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
        Ok(Arc::new(match listed {
            Some(object) => ObjectSource::listed(name, store, object),
            None => ObjectSource::open(name, store, path).await?,
        }))
    }
}
