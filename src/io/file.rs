//! A local file, read by positioned reads.
//!
//! A query must not mix bytes of two versions of a file. So each file keeps a `Stamp` from when it was
//! opened, and `unchanged` compares it with the present one after the bytes were used. `mmap.rs` also
//! compares before each read, and `reopened.rs` when it opens a file again.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use super::{ByteSource, check_bounds};
use crate::error::{Error, Result};

/// A file that is read, not mapped. Each read costs a copy, but a file that changes meanwhile can only cause
/// errors, never a signal.
#[derive(Debug, Clone)]
pub struct FileSource {
    name: String,
    file: Arc<File>,
    opened: Stamp,
}

impl FileSource {
    /// Opens the file.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, file, opened) = open(path)?;
        Ok(Self { name, file: Arc::new(file), opened })
    }

    /// Returns the stamp of the file when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        self.opened
    }

    /// Reads one range, which must lie in the file as it was opened. If the file is shorter now, the error
    /// states both lengths.
    fn read_one(&self, range: &Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match read_exact_at(&self.file, &mut bytes, range.start) {
            Ok(()) => Ok(bytes.into()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.opened.shrunk(&self.name, Stamp::of(&self.name, &self.file)?))
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
        self.opened.len
    }

    fn unchanged(&self) -> Result<()> {
        self.opened.unchanged(&self.name, &self.file)
    }

    fn version(&self) -> Option<String> {
        self.opened.version()
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        check_bounds(self, ranges)?;
        // A read may wait for a disk, so it runs on a thread that may block.
        let (this, ranges) = (self.clone(), ranges.to_vec());
        let read = move || ranges.iter().map(|range| this.read_one(range)).collect();
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| Error::io("reading was cancelled", error).in_file(&self.name))?
    }
}

/// The length and modification time of a file, which reveal whether the file has been written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The length of the file in bytes.
    pub(super) len: u64,
    /// The time of the last write; `None` where the system keeps none.
    modified: Option<SystemTime>,
}

impl Stamp {
    /// Returns the present stamp of an open file. Costs one system call.
    fn of(name: &str, file: &File) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|error| Error::io("cannot check the file", error).in_file(name))?;
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok() })
    }

    /// Returns the length and the time as text; `None` without a time.
    pub(super) fn version(&self) -> Option<String> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!("{} bytes, {}.{:09}", self.len, since.as_secs(), since.subsec_nanos()))
    }

    /// Fails unless `file`, which had this stamp when it was opened, still has it.
    pub(super) fn unchanged(&self, name: &str, file: &File) -> Result<()> {
        let now = Self::of(name, file)?;
        if now.len < self.len {
            return Err(self.shrunk(name, now));
        }
        if now != *self {
            let cause = std::io::Error::other(
                "it was written after it was opened; open it again, and in future rename a new file over the old one",
            );
            return Err(Error::io("the file has changed", cause).in_file(name));
        }
        Ok(())
    }

    /// Returns the error for a file that has lost bytes.
    fn shrunk(&self, name: &str, now: Self) -> Error {
        let cause = std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            format!(
                "it had {} bytes when it was opened and has {} now; open it again",
                self.len, now.len
            ),
        );
        Error::io("the file has shrunk", cause).in_file(name)
    }
}

/// Opens a regular file for reading. Returns its name for errors, the file, and its stamp.
pub(super) fn open(path: &Path) -> Result<(String, File, Stamp)> {
    let name = path.display().to_string();
    let failed = |error| Error::io("cannot open the file", error).in_file(&name);
    // Checked before opening, because opening a pipe waits for its writer.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        return Err(failed(std::io::Error::other("not a regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    let stamp = Stamp::of(&name, &file)?;
    Ok((name, file, stamp))
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
/// Reads until `bytes` is full, because `seek_read` may read less than requested.
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
