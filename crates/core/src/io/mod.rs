//! Byte ranges of objects: mapped files, plain files, object stores, memory. No arrays.
//!
//! An object is a [`ByteSource`]; many objects are a [`Folder`]. Callers decide which bytes to read. This
//! module makes reading cheap: nearby ranges become one request. It also makes reading safe: a range outside
//! the object is an error, and so is a file that was written after it was opened.

mod file;
mod folder;
mod local_path;
mod lru;
mod mappings;
mod memory;
#[expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; the SAFETY comment gives the conditions"
)]
mod mmap;
mod object;
mod open_files;
mod path;
mod remote;
mod root;
mod special;
mod stamp;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

pub use crate::byte_range::ByteRange;
pub use file::FileSource;
pub(crate) use folder::Subfolder;
pub use folder::{
    ExistingObject, Folder, FolderEntry, FolderLock, LocalFolder, StoreFolder, Upload,
    VersionBelow, WritableFolder,
};
pub(crate) use local_path::LocalPath;
pub use lru::LruCache;
pub use mappings::MappedFile;
pub use memory::MemorySource;
pub use mmap::MmapSource;
pub use object::ObjectSource;
pub use open_files::{OpenFiles, ReopenedSource};
pub use path::last_part;
pub use remote::counted;
pub use remote::{
    CheckedStore, Remote, RemoteLimits, RemoteStore, RequestCounts, check_reference,
    is_private_host, is_public, is_same_origin,
};
pub use root::Root;
pub use special::refuse_special;
pub use stamp::ObjectStamp;

use crate::error::{Error, Result};

/// The number of objects that are read, or folders that are listed, at the same time.
pub const MAX_CONCURRENT_IO: usize = 32;
/// The number of objects that one array holds open. Systems allow more, but not any number.
pub(crate) const MAX_OPEN_OBJECTS: usize = 512;

/// Random access to the bytes of one object whose length is known.
#[async_trait]
pub trait ByteSource: Debug + Send + Sync {
    /// Returns the name of the object in errors: a path or a URL.
    fn name(&self) -> &str;

    /// Returns the length of the object in bytes when it was opened.
    fn size(&self) -> u64;

    /// Whether `read` returns without waiting, so that reading ahead gains nothing.
    fn is_resident(&self) -> bool {
        false
    }

    /// Whether each read is a request over a network, so that many small ones take long.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the first bytes of an object that is far away, as many as came when it was opened.
    fn fetched_head(&self) -> Option<Bytes> {
        None
    }

    /// Reads each range, in order; every reply is exactly as long as its range.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be read. `Internal` for a range outside the object, because the format must
    /// check its bounds.
    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// Reads ranges that later queries need too, such as an index. Objects that are far away keep these
    /// bytes.
    ///
    /// # Errors
    /// As [`ByteSource::read`].
    async fn read_metadata(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.read(ranges).await
    }

    /// Fails if the object has changed since it was opened, as far as that is known without waiting.
    ///
    /// # Errors
    /// `Io` if the object was written after it was opened.
    fn unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a text that differs if the object was written again: its length with its tag or time. `None` if there is
    /// nothing to tell versions apart.
    fn version(&self) -> Option<String> {
        None
    }

    /// Returns the entity tag of the object, as its store tells it; of a local file, the tag that the crate `object_store`
    /// would give it.
    fn tag(&self) -> Option<String> {
        None
    }

    /// Returns when the object was last written, in seconds since 1970.
    fn modified(&self) -> Option<i64> {
        None
    }

    /// Returns the stamp of the object when it was opened; `None` if there is nothing to tell versions apart.
    fn stamp(&self) -> Option<ObjectStamp> {
        self.version().map(ObjectStamp::from_version)
    }

    /// Hints that these bytes will not be read again soon; a mapping releases their pages.
    fn forget(&self, range: &Range<u64>) {
        let _ = range;
    }
}

/// Whether the cause of `error` is that a file or object does not exist.
pub fn is_not_found(error: &Error) -> bool {
    let Some(cause) = std::error::Error::source(error) else { return false };
    // The error of a store may be wrapped in one with its cause.
    let mut causes = std::iter::successors(Some(cause), |error| error.source());
    match causes.find_map(|error| error.downcast_ref::<object_store::Error>()) {
        Some(of_store) => matches!(of_store, object_store::Error::NotFound { .. }),
        None => {
            let of_system = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            of_system == Some(std::io::ErrorKind::NotFound)
        }
    }
}

/// Returns the error for a metadata document of `size` bytes, of which at most `most` may be read.
pub(crate) fn document_too_long(size: u64, most: u64) -> Error {
    Error::unsupported(format!(
        "a metadata document of {size} bytes; the option 'metadata_limit' allows {most}"
    ))
}

/// Fails unless all `ranges` lie in an object of `size` bytes.
fn check_bounds(source: &dyn ByteSource, ranges: &[Range<u64>]) -> Result<()> {
    let size = source.size();
    match ranges.iter().find(|range| range.start > range.end || range.end > size) {
        None => Ok(()),
        Some(range) => {
            let message = format!("bytes {range:?} were requested, but the object has only {size}");
            Err(Error::internal(message).in_file(source.name()))
        }
    }
}
