//! A local file through positioned reads.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use super::{ByteSource, check_bounds, shrunk};
use crate::error::{Error, Result};

/// A file that is read, not mapped: costs a copy, but a file that changes under it can only give
/// errors or other bytes, never a signal.
#[derive(Debug, Clone)]
pub struct FileSource {
    name: String,
    file: Arc<File>,
    size: u64,
}

impl FileSource {
    /// Opens the file.
    ///
    /// # Errors
    /// `Io` if it cannot be opened or is a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, file, size) = open(path)?;
        Ok(Self { name, file: Arc::new(file), size })
    }

    /// When the file was last written, as far as the system tells.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        modified(&self.file)
    }

    fn read_one(&self, range: &Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match read_exact_at(&self.file, &mut bytes, range.start) {
            Ok(()) => Ok(bytes.into()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(shrunk(&self.name, self.size, len(&self.name, &self.file)?))
            }
            Err(error) => {
                Err(Error::io(format!("cannot read bytes {range:?}"), error).in_file(&self.name))
            }
        }
    }
}

#[async_trait]
impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        check_bounds(self, ranges)?;
        let (this, ranges) = (self.clone(), ranges.to_vec());
        let read = move || ranges.iter().map(|range| this.read_one(range)).collect();
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| Error::io("reading was cancelled", error).in_file(&self.name))?
    }
}

/// Opens a regular file for reading: its name for errors, the file, its length in bytes.
pub(super) fn open(path: &Path) -> Result<(String, File, u64)> {
    let name = path.display().to_string();
    let failed = |error| Error::io("cannot open the file", error).in_file(&name);
    // Asked before opening: opening a pipe would wait for whoever writes to it.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        return Err(failed(std::io::Error::other("not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((name, file, metadata.len()))
}

/// When the file was last written, as far as the system tells.
pub(super) fn modified(file: &File) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// The file's length now.
pub(super) fn len(name: &str, file: &File) -> Result<u64> {
    let metadata = file.metadata();
    metadata
        .map(|it| it.len())
        .map_err(|error| Error::io("cannot check the file", error).in_file(name))
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
