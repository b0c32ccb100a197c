//! Byte ranges of objects: mapped files, plain files, object stores, memory. No arrays.
//!
//! An object is a [`ByteSource`], and where there are many of them, a [`Folder`]. What to read is decided elsewhere; this module makes reading
//! cheap (ranges that lie close together become one request) and safe (a range outside the object
//! is an error, and so is a file that was written since it was opened).

mod file;
mod folder;
mod lru;
mod mappings;
mod memory;
#[expect(unsafe_code, reason = "mapping a file is unsafe by nature; the SAFETY comment says when")]
mod mmap;
mod object;
mod path;
mod reopened;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt::Debug;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

pub use crate::byte_range::ByteRange;
pub use file::FileSource;
pub use folder::{Existing, Folder, FolderEntry, LocalFolder, StoreFolder, Upload, WritableFolder};
pub(crate) use lru::LruCache;
pub use mappings::MappedFile;
pub use memory::MemorySource;
pub use mmap::MmapSource;
pub use object::ObjectSource;
pub(crate) use path::last_part;
pub use reopened::{OpenFiles, ReopenedSource};

use crate::error::{Error, Result};

/// Objects that are read, and folders that are listed, at the same time.
pub(crate) const MAX_CONCURRENT_IO: usize = 32;
/// Objects that one array holds open; systems allow more, but not without end.
pub(crate) const MAX_OPEN_OBJECTS: usize = 512;

/// Random access to the bytes of one object whose length is known.
#[async_trait]
pub trait ByteSource: Debug + Send + Sync {
    /// What errors call the object: a path or a URL.
    fn name(&self) -> &str;

    /// Bytes of the object when it was opened.
    fn size(&self) -> u64;

    /// Whether `read` returns without waiting, so that reading ahead gains nothing.
    fn is_resident(&self) -> bool {
        false
    }

    /// Reads each range, in order; every reply is exactly as long as its range.
    ///
    /// # Errors
    /// `Io` if the bytes cannot be had, `Usage` never: a range outside the object means that a
    /// format did not check its bounds and is `Internal`.
    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// Whether the object is still the one that was opened, as far as that is known without waiting.
    ///
    /// # Errors
    /// `Io` if it was written since.
    fn unchanged(&self) -> Result<()> {
        Ok(())
    }

    /// Says that these bytes will not be looked at again soon; a mapping lets go of their pages.
    fn forget(&self, range: &Range<u64>) {
        let _ = range;
    }
}

/// Whether an object or file was not there, which is all that is wrong.
pub fn is_not_found(error: &Error) -> bool {
    let Some(cause) = std::error::Error::source(error) else { return false };
    let of_system = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let of_store = cause.downcast_ref::<object_store::Error>();
    of_system == Some(std::io::ErrorKind::NotFound)
        || matches!(of_store, Some(object_store::Error::NotFound { .. }))
}

/// Fails unless all `ranges` lie in an object of `size` bytes.
fn check_bounds(source: &dyn ByteSource, ranges: &[Range<u64>]) -> Result<()> {
    let size = source.size();
    match ranges.iter().find(|range| range.start > range.end || range.end > size) {
        None => Ok(()),
        Some(range) => {
            let message = format!("bytes {range:?} were asked for, but there are only {size}");
            Err(Error::internal(message).in_file(source.name()))
        }
    }
}
