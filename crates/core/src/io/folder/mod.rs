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
mod subfolder;
mod write;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

pub use local::LocalFolder;
pub use store::StoreFolder;
pub(crate) use subfolder::Subfolder;
pub use write::{ExistingObject, FolderLock, Upload, WritableFolder};

use super::{ByteRange, ByteSource, MAX_CONCURRENT_IO, ObjectStamp};
use crate::error::Result;

/// A place that holds objects and other folders. Paths are relative to it, with `/` between parts.
#[async_trait]
pub trait Folder: Debug + Send + Sync {
    /// Returns the name of the folder in errors: a path or a URL.
    fn name(&self) -> &str;

    /// Returns the path or URL of the object at `path`, as errors name it.
    fn location_of(&self, path: &str) -> String {
        format!("{}/{path}", self.name().trim_end_matches('/'))
    }

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

    /// Returns the entries of several folders; see [`Folder::list`].
    ///
    /// # Errors
    /// As [`Folder::list`].
    async fn list_all(&self, paths: &[String]) -> Result<Vec<Vec<FolderEntry>>> {
        let list = |path: String| async move { self.list(&path).await };
        let lists = paths.iter().cloned().map(list);
        stream::iter(lists).buffered(MAX_CONCURRENT_IO).try_collect().await
    }

    /// Opens several objects at once, where that is faster than one by one; each as by [`Folder::open`]. May return fewer
    /// objects, or none at all.
    async fn open_all(&self, paths: &[Arc<str>]) -> Vec<Result<Arc<dyn ByteSource>>> {
        let _ = paths;
        vec![]
    }

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

    /// Returns the paths of objects below the folder at `path`, relative to it: all of them, or the first `most` that are
    /// found. A missing folder has none.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    async fn some_below(&self, path: &str, most: usize) -> Result<Vec<String>> {
        let (mut found, mut folders) = (vec![], vec![String::new()]);
        while let (Some(folder), true) = (folders.pop(), found.len() < most) {
            let at = [path, &folder].into_iter().filter(|part| !part.is_empty());
            for FolderEntry { name, size } in self.list(&at.collect::<Vec<_>>().join("/")).await? {
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match size {
                    Some(_) => found.push(name),
                    None => folders.push(name),
                }
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Returns the present stamps of objects, `None` for an absent one. Returns nothing at all if the folder cannot tell
    /// without a request for each of so many objects.
    ///
    /// # Errors
    /// `Io` if the folder itself was replaced since it was opened, or an object cannot be checked.
    async fn stamps(&self, paths: &[Arc<str>]) -> Result<Option<Vec<Option<ObjectStamp>>>> {
        let _ = paths;
        Ok(None)
    }

    /// Returns the versions of all objects below the folder at `path`. `None` if there are more than `most`, or if it takes
    /// requests. May wait for a disk.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    fn versions_below(&self, path: &str, most: usize) -> Result<Option<Vec<VersionBelow>>> {
        let _ = (path, most);
        Ok(None)
    }

    /// Returns the stamp of an object as it was last read without being opened; `None` if that is not known.
    fn stamp_as_read(&self, path: &str) -> Option<ObjectStamp> {
        let _ = path;
        None
    }

    /// Returns the outermost folder above an absent object that is absent, too: no object below it is there. `None` if all
    /// folders above the object are there, or if it takes a request to know.
    fn absent_above(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// Whether the session knows that a document is absent, because it has asked for it before.
    fn is_known_absent(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Notes that a document is absent, so that the session need not ask again.
    fn note_absent(&self, path: &str) {
        let _ = path;
    }

    /// Forgets which documents of this folder are absent; returns whether any was.
    fn forget_absent(&self) -> bool {
        false
    }

    /// Whether parts of an object are read without opening it, as [`Folder::read_unopened`] does. That saves a request for
    /// objects of which most queries read one part.
    fn reads_parts_unopened(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Reads bytes of an object without opening it, where that saves a request; `None` where it does not. The folder may
    /// keep the bytes of metadata for later reads. At most `most` bytes may come.
    ///
    /// # Errors
    /// `Io` if the object does not exist, cannot be read, or has more bytes.
    async fn read_unopened(
        &self,
        path: &str,
        range: &ByteRange,
        is_metadata: bool,
        most: u64,
    ) -> Result<Option<Bytes>> {
        let _ = (path, range, is_metadata, most);
        Ok(None)
    }
}

/// An object or folder in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderEntry {
    /// The last part of the path.
    pub name: String,
    /// The length of an object in bytes when it was listed; `None` for a folder.
    pub size: Option<u64>,
}

impl FolderEntry {
    /// Returns an object of `size` bytes; a folder without a size.
    pub fn new(name: impl Into<String>, size: Option<u64>) -> Self {
        Self { name: name.into(), size }
    }
}

/// An object below a folder, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionBelow {
    /// The path of the object, as for [`Folder::open`].
    pub path: String,
    /// A text that differs if the object was written again, and is the same for a faithful copy of it.
    pub version: String,
    /// The stamp of the object.
    pub stamp: ObjectStamp,
}

impl VersionBelow {
    /// Returns the object at `path`, with its version as a text and its stamp.
    pub fn new(path: impl Into<String>, version: impl Into<String>, stamp: ObjectStamp) -> Self {
        Self { path: path.into(), version: version.into(), stamp }
    }
}
