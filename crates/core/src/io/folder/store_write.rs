//! Writing to a prefix of an object store.
//!
//! ```text
//!   put       one request, which the store can refuse if the object exists
//!   begin     a multipart upload ──append: 8 MiB parts, 4 at a time──▶ complete: the object appears
//! ```
//!
//! Parts of an upload that is neither completed nor aborted may remain in the store.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, UpdateVersion, WriteMultipart};

use super::StoreFolder;
use super::write::{ExistingObject, FolderLock, Upload, WritableFolder, changed, exists, locked};
use crate::error::{Error, ErrorKind, Result};

/// The size of each part of an object: at least the minimum that stores require, and the same for all parts.
const PART_BYTES: usize = 8 << 20;
/// The number of parts that are sent at the same time, which bounds the memory of an upload.
const MAX_PARTS: usize = 4;

/// Returns the error for a failed write: `Usage` if the object exists already, else `Io`.
fn failed(name: &str, error: object_store::Error) -> Error {
    match error {
        object_store::Error::AlreadyExists { .. } => exists(name),
        error => Error::io("cannot write the object", error).in_file(name),
    }
}

impl StoreFolder {
    /// Reads all bytes of an object, past what the session knows; `None` if there is none.
    async fn bytes_at(&self, path: &str) -> Result<Option<Bytes>> {
        let (name, at) = (self.error_name(path), self.path_to_write(path));
        let found = match self.store.store().get(&at).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| failed(&name, error))?,
        };
        found.bytes().await.map(Some).map_err(|error| failed(&name, error))
    }
}

#[async_trait]
impl WritableFolder for StoreFolder {
    fn name(&self) -> &str {
        super::Folder::name(self)
    }

    async fn put(&self, path: &str, bytes: Bytes, existing: ExistingObject) -> Result<()> {
        let mode = match existing {
            ExistingObject::Refuse => PutMode::Create,
            ExistingObject::Replace => PutMode::Overwrite,
        };
        let put =
            self.store.store().put_opts(&self.path_to_write(path), bytes.into(), mode.into()).await;
        put.map(drop).map_err(|error| failed(&self.error_name(path), error))
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        let (name, path) = (self.error_name(path), self.path_to_write(path));
        let parts =
            self.store.store().put_multipart(&path).await.map_err(|error| failed(&name, error))?;
        let parts = WriteMultipart::new_with_chunk_size(parts, PART_BYTES);
        Ok(Box::new(StoreUpload { name, store: Arc::clone(self.store.store()), path, parts }))
    }

    async fn update(&self, path: &str, bytes: Bytes, old: &Bytes) -> Result<()> {
        let (name, at) = (self.error_name(path), self.path_to_write(path));
        let store = self.store.store();
        let found = match store.get(&at).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Err(changed(&name)),
            Err(error) => return Err(failed(&name, error)),
        };
        let version =
            UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let there = found.bytes().await.map_err(|error| failed(&name, error))?;
        if there != *old {
            return Err(changed(&name));
        }
        let conditional = PutMode::Update(version);
        match store.put_opts(&at, bytes.clone().into(), conditional.into()).await {
            // The lock is all that such a store has.
            Err(object_store::Error::NotImplemented { .. }) => {
                self.put(path, bytes, ExistingObject::Replace).await
            }
            // A put that is repeated after a lost reply finds its own bytes.
            Err(object_store::Error::Precondition { .. }) => {
                match self.bytes_at(path).await? == Some(bytes) {
                    true => Ok(()),
                    false => Err(changed(&name)),
                }
            }
            put => put.map(drop).map_err(|error| failed(&name, error)),
        }
    }

    async fn lock(&self, path: &str, note: Bytes, takes_over: bool) -> Result<FolderLock> {
        match self.put(path, note.clone(), ExistingObject::Refuse).await {
            Err(error) if error.kind() == ErrorKind::Usage && takes_over => {
                self.put(path, note.clone(), ExistingObject::Replace).await?;
            }
            Err(error) if error.kind() == ErrorKind::Usage => {
                // A put that is repeated after a lost reply finds its own bytes.
                let there = self.bytes_at(path).await?.unwrap_or_default();
                if there != note {
                    return Err(locked(&self.error_name(path), &there));
                }
            }
            put => put?,
        }
        Ok(FolderLock::new(path, note))
    }

    async fn unlock(&self, lock: FolderLock) -> Result<()> {
        match self.bytes_at(&lock.object).await? == Some(lock.note) {
            true => self.delete(&lock.object).await,
            // Another program has the lock.
            false => Ok(()),
        }
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let [at, goes] = [from, to].map(|path| self.path_to_write(path));
        let renamed = self.store.store().rename_if_not_exists(&at, &goes).await;
        renamed.map_err(|error| failed(&self.error_name(to), error))
    }

    async fn replace(&self, from: &str, to: &str) -> Result<()> {
        let [at, goes] = [from, to].map(|path| self.path_to_write(path));
        let renamed = self.store.store().rename(&at, &goes).await;
        renamed.map_err(|error| failed(&self.error_name(to), error))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        match self.store.store().delete(&self.path_to_write(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => {
                Err(Error::io("cannot delete the object", error).in_file(&self.error_name(path)))
            }
        }
    }
}

/// An object that is sent in parts.
#[derive(Debug)]
struct StoreUpload {
    /// The name of the object, for errors.
    name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Cuts the appended bytes into parts, and sends these concurrently.
    parts: WriteMultipart,
}

#[async_trait]
impl Upload for StoreUpload {
    async fn append(&mut self, bytes: Bytes) -> Result<()> {
        let ready = self.parts.wait_for_capacity(MAX_PARTS).await;
        ready.map_err(|error| failed(&self.name, error))?;
        self.parts.put(bytes);
        Ok(())
    }

    async fn complete(self: Box<Self>, existing: ExistingObject) -> Result<()> {
        // `object_store` cannot complete parts only if no object exists. Another writer may still put one
        // between this check and completion.
        if existing == ExistingObject::Refuse {
            let error = match self.store.head(&self.path).await {
                Err(object_store::Error::NotFound { .. }) => None,
                Ok(_) => Some(exists(&self.name)),
                Err(error) => Some(failed(&self.name, error)),
            };
            if let Some(error) = error {
                if let Err(left) = self.abort().await {
                    log::warn!("parts of an upload may remain in the store: {left}");
                }
                return Err(error);
            }
        }
        self.parts.finish().await.map(drop).map_err(|error| failed(&self.name, error))
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        self.parts.abort().await.map_err(|error| failed(&self.name, error))
    }
}
