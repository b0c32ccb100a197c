//! Folders of objects, for arrays of several objects: a local folder, or a prefix of an object store.
//!
//! ```text
//!   Folder ──list("__fragments")──▶ names and sizes
//!      └─────open("__schema/__1_1_…")──▶ ByteSource
//!
//!   WritableFolder ──put(…)──▶ an object, as a whole
//!      └─────────────begin(…)──▶ Upload ──append, append, …──▶ complete
//! ```

mod local;
mod local_write;
mod store;
mod store_write;
mod write;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

pub use local::LocalFolder;
pub use store::StoreFolder;
pub use write::{Existing, Upload, WritableFolder};

use super::{ByteRange, ByteSource};
use crate::error::Result;

/// A place that holds objects and other folders. Paths are relative to it, with `/` between parts.
#[async_trait]
pub trait Folder: Debug + Send + Sync {
    /// Returns the name of the folder in errors: a path or a URL.
    fn name(&self) -> &str;

    /// Whether reading the objects returns without waiting.
    fn is_resident(&self) -> bool {
        false
    }

    /// Whether each read is a request over a network, so that many small ones take long.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the entries of the folder at `path`, without those of its subfolders. The empty path is this
    /// folder. A missing folder has no entries, because some stores cannot tell it from an empty one.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>>;

    /// Opens the object at `path`.
    ///
    /// # Errors
    /// `Io` if the object does not exist or cannot be read.
    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>>;

    /// Whether parts of objects can be read. If not, opening an object fetches all of it, and the open object
    /// holds that memory.
    fn reads_ranges(&self) -> bool {
        true
    }

    /// Reads bytes of an object without opening it, where that saves a request; `None` where it does not. The folder may
    /// keep the bytes of metadata for later reads.
    ///
    /// # Errors
    /// `Io` if the object does not exist or cannot be read.
    async fn read_unopened(
        &self,
        path: &str,
        range: &ByteRange,
        is_metadata: bool,
    ) -> Result<Option<Bytes>> {
        let _ = (path, range, is_metadata);
        Ok(None)
    }
}

/// An object or folder in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The last part of the path.
    pub name: String,
    /// The length of an object in bytes when it was listed; `None` for a folder.
    pub size: Option<u64>,
}
