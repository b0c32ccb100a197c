//! Folders of objects, for arrays that are more than one: a local folder, or a prefix of an object
//! store.
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

/// A place that holds objects and folders of them. Paths are relative to it, with `/` between parts.
#[async_trait]
pub trait Folder: Debug + Send + Sync {
    /// What errors call the folder: a path or a URL.
    fn name(&self) -> &str;

    /// Whether the objects' `read` returns without waiting.
    fn is_resident(&self) -> bool {
        false
    }

    /// What is in the folder at `path` (empty: this folder), not below it; nothing if there is no such
    /// folder, which not every store can tell from an empty one.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>>;

    /// Opens the object at `path`.
    ///
    /// # Errors
    /// `Io` if it is not there or cannot be read.
    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>>;

    /// Whether a part of an object can be read. Otherwise opening an object fetches all of it, and whoever
    /// holds it open holds that memory.
    fn reads_ranges(&self) -> bool {
        true
    }

    /// The bytes of an object that is not open, where that takes one request less than opening it does;
    /// `None` where it does not.
    ///
    /// # Errors
    /// `Io` if the object is not there or cannot be read.
    async fn read_unopened(&self, path: &str, range: &ByteRange) -> Result<Option<Bytes>> {
        let _ = (path, range);
        Ok(None)
    }
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The last part of its path.
    pub name: String,
    /// Bytes of an object when it was listed; `None` for a folder.
    pub size: Option<u64>,
}
