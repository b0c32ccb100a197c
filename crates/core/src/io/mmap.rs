//! A local file, read through a memory mapping: replies are views of the page cache, never copies.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};

use super::file::{self, Stamp};
use super::mappings::Registration;
use super::{ByteSource, LocalPath, MemorySource, ObjectStamp};
use crate::error::{Error, Result};

/// A mapped file.
///
/// Its length and times are checked before and after each use, so a file that was written after
/// it was opened causes an error. The checks cannot cover a file that is truncated while its bytes are in
/// use: then the system ends the process by SIGBUS, unless the process handles the signal. A handler finds
/// the file with [`MappedFile`](super::MappedFile). If files may be truncated while queries run, use
/// [`super::FileSource`].
#[derive(Debug)]
pub struct MmapSource {
    /// The mapped file, kept open to check its stamp.
    file: File,
    opened: Stamp,
    /// The bytes of the mapping; replies are slices of them.
    mapped: MemorySource,
    /// `None` for an empty file, which some systems do not map.
    mapping: Option<Mapping>,
}

/// A mapping, which lives as long as any view of its bytes.
#[derive(Debug, Clone)]
struct Mapping(Arc<(Registration, Mmap)>);

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0.1
    }
}

impl MmapSource {
    /// Maps the whole file.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened or mapped, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_at(&path.into())
    }

    /// As [`MmapSource::open`], for a path with a name in messages.
    pub(crate) fn open_at(path: &LocalPath) -> Result<Self> {
        let (name, file, opened) = file::open(path)?;
        let mapping = if opened.len == 0 { None } else { Some(map(&name, &file)?) };
        let bytes = mapping.clone().map_or_else(Bytes::new, Bytes::from_owner);
        Ok(Self { file, opened, mapped: MemorySource::new(name, bytes), mapping })
    }

    /// Returns the stamp of the file when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        self.opened
    }
}

fn map(name: &str, file: &File) -> Result<Mapping> {
    // SAFETY: the mapping is read-only and private to `Bytes`, which never outlives it. It is sound as long
    // as no one changes the mapped bytes. Other processes can change them. But files of both formats are
    // written once and replaced as a whole, which leaves the mapped inode unchanged. The checks before and
    // after each use catch a file that is written in place. They miss a write between two checks, and a write
    // to pages handed out before. If the file is truncated then, the system raises SIGBUS. `FileSource` has
    // no such window.
    let mapped = unsafe { MmapOptions::new().map(file) }
        .map_err(|error| Error::io("cannot map the file", error).in_file(name))?;
    let addresses = mapped.as_ptr_range();
    let registration = Registration::new(name, addresses.start as usize..addresses.end as usize);
    Ok(Mapping(Arc::new((registration, mapped))))
}

#[cfg(unix)]
/// Lets the system take back the memory of these pages. Reading them again loads them from the file.
fn release_pages(mapped: &Mmap, range: Range<usize>) {
    // SAFETY: the mapping is of a file and read-only, so a released page holds the file's bytes again when it
    // is next read. The caller has checked that the range lies in the mapping.
    let advised = unsafe {
        mapped.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
    };
    if let Err(error) = advised {
        log::debug!("cannot release pages of a mapping: {error}");
    }
}

#[cfg(not(unix))]
fn release_pages(_: &Mmap, _: Range<usize>) {}

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
        self.unchanged()?;
        self.mapped.read(ranges).await
    }

    fn unchanged(&self) -> Result<()> {
        self.opened.unchanged(self.name(), &self.file)
    }

    fn version(&self) -> Option<String> {
        self.opened.version()
    }

    fn tag(&self) -> Option<String> {
        self.opened.tag()
    }

    fn modified(&self) -> Option<i64> {
        self.opened.modified()
    }

    fn stamp(&self) -> Option<ObjectStamp> {
        Some(self.opened.of_object())
    }

    fn forget(&self, range: &Range<u64>) {
        let Some(Mapping(mapping)) = &self.mapping else { return };
        let range = range.start as usize..range.end as usize;
        if mapping.1.get(range.clone()).is_some_and(|bytes| !bytes.is_empty()) {
            release_pages(&mapping.1, range);
        }
    }
}
