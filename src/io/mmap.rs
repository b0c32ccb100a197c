//! A local file through a memory mapping: replies are views of the page cache, never copies.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};

use super::{ByteSource, MemorySource, file, shrunk};
use crate::error::{Error, Result};

/// A mapped file.
///
/// The file's length is checked before every read, so that a file which was truncated since it was
/// opened gives an error. The check cannot cover bytes that were handed out before: whoever expects
/// files to be cut while queries run should use [`super::FileSource`].
#[derive(Debug)]
pub struct MmapSource {
    file: File,
    mapped: MemorySource,
}

impl MmapSource {
    /// Maps the whole file.
    ///
    /// # Errors
    /// `Io` if it cannot be opened or mapped, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, file, size) = file::open(path)?;
        // An empty mapping is an error on some systems.
        let bytes = if size == 0 { Bytes::new() } else { Bytes::from_owner(map(&name, &file)?) };
        Ok(Self { file, mapped: MemorySource::new(name, bytes) })
    }

    /// When the file was last written, as far as the system tells.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        file::modified(&self.file)
    }
}

fn map(name: &str, file: &File) -> Result<Mmap> {
    // SAFETY: the mapping is read-only and private to `Bytes`, which never outlives it. It is sound
    // as long as no one changes the mapped bytes. Other processes can: the files of both formats are
    // written once and replaced as a whole, which leaves the mapped inode alone. Truncation in place is caught by
    // the length check in `read`, except for the moment between that check and the access, and for
    // pages handed out before; then the system raises SIGBUS. `FileSource` has no such window.
    unsafe { MmapOptions::new().map(file) }
        .map_err(|error| Error::io("cannot map the file", error).in_file(name))
}

#[async_trait]
impl ByteSource for MmapSource {
    fn name(&self) -> &str {
        self.mapped.name()
    }

    fn size(&self) -> u64 {
        self.mapped.size()
    }

    fn is_resident(&self) -> bool {
        true
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let now = file::len(self.name(), &self.file)?;
        if now < self.size() {
            return Err(shrunk(self.name(), self.size(), now));
        }
        self.mapped.read(ranges).await
    }
}
