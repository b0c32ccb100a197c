//! Folders that objects can be written to.

use std::fmt::Debug;
use std::fs::File;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};

/// The treatment of an existing object of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingObject {
    /// Keep it, and fail with a `Usage` error.
    Refuse,
    /// Replace it. Readers see either the old or the new object.
    Replace,
}

/// A place to write objects to. Paths are relative to it, with `/` between parts. Writing creates missing
/// folders. An object becomes visible as a whole.
#[async_trait]
pub trait WritableFolder: Debug + Send + Sync {
    /// Returns the name of the folder in errors: a path or a URL.
    fn name(&self) -> &str;

    /// Puts a whole object.
    ///
    /// # Errors
    /// `Usage` if an object exists that must not be replaced, `Io` if the object cannot be written.
    async fn put(&self, path: &str, bytes: Bytes, existing: ExistingObject) -> Result<()>;

    /// Begins an object that is appended to.
    ///
    /// # Errors
    /// `Io` if the object cannot be begun.
    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>>;

    /// Replaces an object that has the bytes `old`.
    ///
    /// # Errors
    /// `Usage` if it has other bytes, or is gone: another program wrote to it. `Io` if it cannot be read or written.
    async fn update(&self, path: &str, bytes: Bytes, old: &Bytes) -> Result<()>;

    /// Locks the folder for one writer, until the lock is released. The lock is an object at `path`, which has the `note` for those who
    /// find it. No two locks have the same note. With `takes_over`, a lock that another program holds, or left behind, is taken from it.
    ///
    /// # Errors
    /// `Usage` if another program holds the lock, `Io` if it cannot be written.
    async fn lock(&self, path: &str, note: Bytes, takes_over: bool) -> Result<FolderLock>;

    /// Releases a lock, unless another program has taken it.
    ///
    /// # Errors
    /// `Io` if its object cannot be deleted.
    async fn unlock(&self, lock: FolderLock) -> Result<()>;

    /// Renames an object, or a folder where the store has folders. The new name must not exist yet.
    ///
    /// # Errors
    /// `Usage` if the new name exists, `Io` if renaming fails.
    async fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Renames an object. It replaces the one that has the new name, if any.
    ///
    /// # Errors
    /// `Io` if renaming fails.
    async fn replace(&self, from: &str, to: &str) -> Result<()>;

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// `Io` if the object cannot be deleted.
    async fn delete(&self, path: &str) -> Result<()>;
}

/// The lock of a folder, which is held until [`WritableFolder::unlock`].
#[derive(Debug)]
pub struct FolderLock {
    /// The path of the lock's object.
    pub object: Arc<str>,
    /// The bytes of the object.
    pub note: Bytes,
    /// The open file of a lock that ends with the program.
    _file: Option<File>,
}

impl FolderLock {
    /// Returns the lock whose object has this path and note.
    ///
    /// ```
    /// let lock = gridfusion_core::io::FolderLock::new(".lock", "process 7");
    /// assert_eq!((&*lock.object, &*lock.note), (".lock", &b"process 7"[..]));
    /// ```
    pub fn new(object: impl Into<Arc<str>>, note: impl Into<Bytes>) -> Self {
        Self { object: object.into(), note: note.into(), _file: None }
    }

    /// Returns the lock of an open file, which ends with the program.
    pub(super) fn of_file(object: &str, note: Bytes, file: File) -> Self {
        Self { object: object.into(), note, _file: Some(file) }
    }
}

/// An object that is being written. Dropping the upload leaves no object; [`Upload::abort`] also leaves no
/// parts.
#[async_trait]
pub trait Upload: Debug + Send {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be written.
    async fn append(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the complete object visible.
    ///
    /// # Errors
    /// `Usage` if an object exists that must not be replaced, `Io` if completing fails.
    async fn complete(self: Box<Self>, existing: ExistingObject) -> Result<()>;

    /// Deletes all bytes written so far.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be deleted.
    async fn abort(self: Box<Self>) -> Result<()>;
}

/// Returns the error for an object that has other bytes than expected.
pub(super) fn changed(name: &str) -> Error {
    Error::usage("another program has written to it meanwhile, and its rows are there; try again")
        .in_file(name)
}

/// Returns the error for a lock that another program holds, or has left behind.
pub(super) fn locked(name: &str, note: &[u8]) -> Error {
    let note = String::from_utf8_lossy(note);
    let message = format!(
        "another program writes here, and says \"{note}\"; wait for it. If it has ended, take its lock with OPTIONS (unlock 'true') of COPY, or delete this object"
    );
    Error::usage(message).in_file(name)
}

/// Returns the error for an object that must not be replaced.
pub(super) fn exists(name: &str) -> Error {
    Error::usage("it exists already, and was not replaced").in_file(name)
}
