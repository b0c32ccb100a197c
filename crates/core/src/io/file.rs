//! A local file, read by positioned reads.
//!
//! A query must not mix bytes of two versions of a file. So each file keeps a `Stamp` from when it was
//! opened, and `unchanged` compares it with the present one after the bytes were used. `mmap.rs` also
//! compares before each read, and `open_files.rs` when it opens a file again.

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use super::{ByteSource, LocalPath, ObjectStamp, check_bounds};
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
        Self::open_at(&path.into())
    }

    /// As [`FileSource::open`], for a path with a name in messages.
    pub(crate) fn open_at(path: &LocalPath) -> Result<Self> {
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
                Err(self.opened.shrunk(&self.name, Stamp::try_new(&self.name, &self.file)?))
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

    fn tag(&self) -> Option<String> {
        self.opened.tag()
    }

    fn modified(&self) -> Option<i64> {
        self.opened.modified()
    }

    fn stamp(&self) -> Option<ObjectStamp> {
        Some(self.opened.of_object())
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

/// The facts about a file that reveal whether it has been written since.
///
/// A program can set the time of the last write back, but not that of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The length of the file in bytes.
    pub(super) len: u64,
    /// The time of the last write; `None` where the system keeps none.
    modified: Option<SystemTime>,
    /// The file itself, whatever its name; zeros where the system does not tell.
    pub(super) file: FileNumber,
    /// The time of the last change of bytes, names or rights, in seconds and nanoseconds; zeros where the system keeps none.
    changed: (i64, i64),
    /// The number of names, the rights and the owner.
    names_and_rights: (u64, u32, u32, u32),
}

/// The device of a file or folder, and its number there.
pub(super) type FileNumber = (u64, u64);

/// Returns the number of a file or folder; zeros where the system has none.
#[cfg(unix)]
pub(super) fn file_number(metadata: &Metadata) -> FileNumber {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(super) fn file_number(_: &Metadata) -> FileNumber {
    (0, 0)
}

#[cfg(unix)]
fn changes(metadata: &Metadata) -> ((i64, i64), (u64, u32, u32, u32)) {
    use std::os::unix::fs::MetadataExt;
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    (changed, (metadata.nlink(), metadata.mode(), metadata.uid(), metadata.gid()))
}

#[cfg(not(unix))]
fn changes(_: &Metadata) -> ((i64, i64), (u64, u32, u32, u32)) {
    ((0, 0), (0, 0, 0, 0))
}

impl Stamp {
    /// Returns the present stamp of an open file. Costs one system call.
    fn try_new(name: &str, file: &File) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|error| Error::io("cannot check the file", error).in_file(name))?;
        Ok(Self::from_metadata(&metadata))
    }

    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let (changed, names_and_rights) = changes(metadata);
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            file: file_number(metadata),
            changed,
            names_and_rights,
        }
    }

    /// Returns the length and the time as text; `None` without a time. Copies of a file may have the same text.
    pub(super) fn version(&self) -> Option<String> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!("{} bytes, {}.{:09}", self.len, since.as_secs(), since.subsec_nanos()))
    }

    /// Returns the tag that the crate `object_store` gives to local files: the inode, the time and the length.
    pub(super) fn tag(&self) -> Option<String> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Some(format!("{:x}-{:x}-{:x}", self.file.1, since.as_micros(), self.len))
    }

    /// Returns the time of the last write in seconds since 1970.
    pub(super) fn modified(&self) -> Option<i64> {
        let since = self.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    }

    /// Returns the stamp in the form for objects of any kind.
    pub(super) fn of_object(&self) -> ObjectStamp {
        ObjectStamp::from_file(
            (self.len, self.modified, self.file),
            self.changed,
            self.names_and_rights,
        )
    }

    /// Whether a file with this stamp has the bytes of one with the stamp `other`. A change of names or rights explains a
    /// later time of change. So a program may read on after another file took the name.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.of_object().is_same(&other.of_object())
    }

    /// Fails unless `file`, which had this stamp when it was opened, still has it.
    pub(super) fn unchanged(&self, name: &str, file: &File) -> Result<()> {
        let now = Self::try_new(name, file)?;
        if now.len < self.len {
            return Err(self.shrunk(name, now));
        }
        if !now.is_same(self) {
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
pub(super) fn open(path: &LocalPath) -> Result<(String, File, Stamp)> {
    let (name, path) = (path.name(), path.at());
    let failed = |error| Error::io("cannot open the file", error).in_file(&name);
    // Checked before opening, because opening a pipe waits for its writer.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        return Err(failed(std::io::Error::other("not a regular file, but a pipe or a device")));
    }
    let file = File::open(path).map_err(failed)?;
    let stamp = Stamp::try_new(&name, &file)?;
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::io::MmapSource;

    /// Changes a file, again until its time of change differs: a clock may be coarse.
    fn until_changed(path: &Path, change: impl Fn()) {
        use std::os::unix::fs::MetadataExt;

        let time = || {
            let metadata = std::fs::metadata(path).unwrap();
            (metadata.ctime(), metadata.ctime_nsec())
        };
        let before = time();
        while time() == before {
            change();
        }
    }

    /// A program may set the time of the last write back.
    #[test]
    fn a_file_that_was_written_again_with_the_same_time_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abcd").unwrap();
        let sources: [Box<dyn ByteSource>; 2] = [
            Box::new(FileSource::open(&path).unwrap()),
            Box::new(MmapSource::open(&path).unwrap()),
        ];
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        until_changed(&path, || {
            std::fs::write(&path, "abce").unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_modified(before).unwrap();
        });
        for source in sources {
            let error = source.unchanged().unwrap_err().to_string();
            assert!(error.contains("the file has changed"), "{error}");
        }
    }

    /// An open file keeps its bytes, whatever happens to its name and its rights.
    #[test]
    fn names_and_rights_are_no_bytes() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("x"), "abcd").unwrap();
        let source = FileSource::open(&path("x")).unwrap();
        until_changed(&path("x"), || {
            std::fs::set_permissions(path("x"), std::fs::Permissions::from_mode(0o400)).unwrap();
        });
        source.unchanged().unwrap();
        std::fs::hard_link(path("x"), path("y")).unwrap();
        source.unchanged().unwrap();
        std::fs::remove_file(path("x")).unwrap();
        source.unchanged().unwrap();
    }
}
