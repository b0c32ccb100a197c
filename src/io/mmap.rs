//! A local file through a memory mapping: replies are views of the page cache, never copies.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};

use super::file::{self, Stamp};
use super::mappings::Noted;
use super::{ByteSource, MemorySource};
use crate::error::{Error, Result};

/// A mapped file.
///
/// Its length and the time of its last change are looked at before and after each use, so that a file
/// which was written since it was opened gives an error. This cannot cover bytes of a file that is cut
/// while they are looked at: then the system ends the process by SIGBUS, unless it handles the signal
/// ([`MappedFile`](super::MappedFile) says which file it was). Whoever expects files to be cut while
/// queries run should use [`super::FileSource`].
#[derive(Debug)]
pub struct MmapSource {
    file: File,
    opened: Stamp,
    mapped: MemorySource,
    /// None for an empty file, which some systems do not map.
    mapping: Option<Mapping>,
}

/// A mapping, which lives as long as a view of it.
#[derive(Debug, Clone)]
struct Mapping(Arc<(Noted, Mmap)>);

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0.1
    }
}

impl MmapSource {
    /// Maps the whole file.
    ///
    /// # Errors
    /// `Io` if it cannot be opened or mapped, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, file, opened) = file::open(path)?;
        let mapping = if opened.len == 0 { None } else { Some(map(&name, &file)?) };
        let bytes = mapping.clone().map_or_else(Bytes::new, Bytes::from_owner);
        Ok(Self { file, opened, mapped: MemorySource::new(name, bytes), mapping })
    }

    /// What the file was when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        self.opened
    }
}

fn map(name: &str, file: &File) -> Result<Mapping> {
    // SAFETY: the mapping is read-only and private to `Bytes`, which never outlives it. It is sound
    // as long as no one changes the mapped bytes. Other processes can: the files of both formats are
    // written once and replaced as a whole, which leaves the mapped inode alone. A file that is written in
    // place is caught by the checks before and after each use, except for the moment in between, and for
    // pages handed out before; if it is cut then, the system raises SIGBUS. `FileSource` has no such window.
    let mapped = unsafe { MmapOptions::new().map(file) }
        .map_err(|error| Error::io("cannot map the file", error).in_file(name))?;
    let addresses = mapped.as_ptr_range();
    let noted = Noted::new(name, addresses.start as usize..addresses.end as usize);
    Ok(Mapping(Arc::new((noted, mapped))))
}

#[cfg(unix)]
fn let_go(mapped: &Mmap, range: Range<usize>) {
    // SAFETY: the mapping is of a file and read-only, so its pages are those of the file before and after:
    // who looks at one again gets it from the file. `MemorySource` checks the same bounds for reads.
    let advised = unsafe {
        mapped.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
    };
    if let Err(error) = advised {
        log::debug!("pages of a mapping are kept: {error}");
    }
}

#[cfg(not(unix))]
fn let_go(_: &Mmap, _: Range<usize>) {}

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

    fn forget(&self, range: &Range<u64>) {
        let Some(Mapping(mapping)) = &self.mapping else { return };
        let range = range.start as usize..range.end as usize;
        if mapping.1.get(range.clone()).is_some_and(|bytes| !bytes.is_empty()) {
            let_go(&mapping.1, range);
        }
    }
}
