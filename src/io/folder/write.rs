//! Folders that objects can be written to.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};

/// How to treat an object that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it there, and fail with a `Usage` error.
    Refuse,
    /// Take its place. Whoever reads sees either the one or the other.
    Replace,
}

/// A place to write objects to. Paths are relative to it, with `/` between parts; folders on the way are
/// made. An object is there as a whole, or not at all.
#[async_trait]
pub trait WritableFolder: Debug + Send + Sync {
    /// What errors call the folder: a path or a URL.
    fn name(&self) -> &str;

    /// Puts a whole object.
    ///
    /// # Errors
    /// `Usage` if there is one that must not be replaced, `Io` if it cannot be written.
    async fn put(&self, path: &str, bytes: Bytes, existing: Existing) -> Result<()>;

    /// Begins an object that is written from its beginning to its end.
    ///
    /// # Errors
    /// `Io` if it cannot be begun.
    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>>;

    /// Moves an object, or a folder where there are folders, to a name that is not there yet.
    ///
    /// # Errors
    /// `Usage` if it is there, `Io` if it cannot be moved.
    async fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Takes an object away, if it is there.
    ///
    /// # Errors
    /// `Io` if it cannot be taken away.
    async fn delete(&self, path: &str) -> Result<()>;
}

/// An object that is being written. Dropping it leaves no object; [`Upload::abort`] also leaves no parts.
#[async_trait]
pub trait Upload: Debug + Send {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// `Io` if they cannot be written.
    async fn append(&mut self, bytes: Bytes) -> Result<()>;

    /// Puts the object in its place.
    ///
    /// # Errors
    /// `Usage` if there is one that must not be replaced, `Io` if it cannot be put there.
    async fn complete(self: Box<Self>, existing: Existing) -> Result<()>;

    /// Takes away what was written.
    ///
    /// # Errors
    /// `Io` if that cannot be done.
    async fn abort(self: Box<Self>) -> Result<()>;
}

/// The error for an object that must not be replaced.
pub(super) fn exists(name: &str) -> Error {
    Error::usage("it exists already, and would have been replaced").in_file(name)
}
