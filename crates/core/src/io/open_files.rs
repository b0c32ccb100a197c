//! Sources for more local files than may be open at the same time.
//!
//! ```text
//!   ReopenedSource ─┐                      ┌─▶ MmapSource
//!   ReopenedSource ─┼─▶ OpenFiles (limited)┼─▶ MmapSource      a closed file is opened again
//!   ReopenedSource ─┘                      └─▶ …               when it is read
//! ```
//!
//! A table of many files opens each once, for its labels. The least recently used one is closed first. If a file was
//! replaced when it is opened again, the query fails, because the labels would be wrong.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::file::Stamp;
use super::{ByteSource, FileSource, LocalPath, LruCache, MmapSource, ObjectStamp};
use crate::error::{Error, Result};

/// A pool of open files of limited size.
#[derive(Debug)]
pub struct OpenFiles {
    /// Whether files are mapped, instead of read by positioned reads.
    mmap: bool,
    /// The open files, by path.
    held: LruCache<PathBuf, OpenFile>,
}

/// An open file, and its stamp when it was opened.
#[derive(Debug, Clone)]
struct OpenFile {
    source: Arc<dyn ByteSource>,
    stamp: Stamp,
}

impl OpenFile {
    fn new<S: ByteSource + 'static>(source: S, stamp: impl Fn(&S) -> Stamp) -> Self {
        Self { stamp: stamp(&source), source: Arc::new(source) }
    }
}

impl OpenFiles {
    /// Creates a pool of at most `most` files; `mmap` maps them instead of using positioned reads.
    pub fn new(mmap: bool, most: usize) -> Arc<Self> {
        Arc::new(Self { mmap, held: LruCache::new(most) })
    }

    /// Whether the files are mapped.
    pub fn are_mapped(&self) -> bool {
        self.mmap
    }

    /// Returns the number of files that the pool holds open.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Opens a file and holds it. A full pool closes the least recently used one.
    fn open(&self, path: &LocalPath) -> Result<OpenFile> {
        let opened = match self.mmap {
            true => OpenFile::new(MmapSource::open_at(path)?, MmapSource::stamp),
            false => OpenFile::new(FileSource::open_at(path)?, FileSource::stamp),
        };
        self.held.insert(path.at().to_owned(), opened.clone());
        Ok(opened)
    }
}

/// One of many files. Reads fail if the file has changed since it was first opened.
#[derive(Debug)]
pub struct ReopenedSource {
    name: String,
    path: LocalPath,
    /// The stamp of the file when it was opened for the first time.
    stamp: Stamp,
    files: Arc<OpenFiles>,
}

impl ReopenedSource {
    /// Opens the file for the first time.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened or mapped, or is not a regular file.
    pub fn open(path: &Path, files: &Arc<OpenFiles>) -> Result<Self> {
        Self::open_at(&path.into(), files)
    }

    /// As [`ReopenedSource::open`], for a path with a name in messages.
    pub(crate) fn open_at(path: &LocalPath, files: &Arc<OpenFiles>) -> Result<Self> {
        let OpenFile { source, stamp } = files.open(path)?;
        Ok(Self {
            name: source.name().to_owned(),
            path: path.clone(),
            stamp,
            files: Arc::clone(files),
        })
    }

    /// Returns the open file; opens it again if the pool has closed it.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened, or has another stamp than at first.
    fn source(&self) -> Result<Arc<dyn ByteSource>> {
        let held = match self.files.held.get(self.path.at()) {
            Some(held) => held,
            None => self.files.open(&self.path)?,
        };
        // Another source may have opened the path again after the file was replaced.
        if !held.stamp.is_same(&self.stamp) {
            let error = std::io::Error::other(
                "it was written after the table was created; create the table again",
            );
            return Err(Error::io("cannot open the file again", error).in_file(&self.name));
        }
        Ok(held.source)
    }
}

#[async_trait]
impl ByteSource for ReopenedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.stamp.len
    }

    fn is_resident(&self) -> bool {
        self.files.are_mapped()
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.source()?.read(ranges).await
    }

    fn unchanged(&self) -> Result<()> {
        // If the pool has closed the file since a read, opening it again finds a later change.
        self.source()?.unchanged()
    }

    fn version(&self) -> Option<String> {
        self.stamp.version()
    }

    fn tag(&self) -> Option<String> {
        self.stamp.tag()
    }

    fn modified(&self) -> Option<i64> {
        self.stamp.modified()
    }

    fn stamp(&self) -> Option<ObjectStamp> {
        Some(self.stamp.of_object())
    }

    fn forget(&self, range: &Range<u64>) {
        if let Some(held) = self.files.held.get(self.path.at()) {
            held.source.forget(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_closed_and_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        for mmap in [true, false] {
            let files = OpenFiles::new(mmap, 3);
            let open = |number: u8| {
                let path = dir.path().join(number.to_string());
                std::fs::write(&path, [number; 4]).unwrap();
                ReopenedSource::open(&path, &files).unwrap()
            };
            let sources: Vec<ReopenedSource> = (0..10).map(open).collect();
            for _ in 0..2 {
                for (number, source) in sources.iter().enumerate() {
                    let read = source.read(std::slice::from_ref(&(1..3))).await.unwrap();
                    assert_eq!(read[0].as_ref(), [number as u8; 2]);
                    assert!(files.count() <= 3);
                }
            }
        }
    }

    #[tokio::test]
    async fn a_file_that_was_replaced_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["a", "b"] {
            std::fs::write(path(name), "1234").unwrap();
        }
        let files = OpenFiles::new(true, 1);
        let a = ReopenedSource::open(&path("a"), &files).unwrap();
        ReopenedSource::open(&path("b"), &files).unwrap();
        std::fs::write(path("a"), "12345").unwrap();
        for _ in 0..2 {
            let error = a.read(std::slice::from_ref(&(0..1))).await.unwrap_err().to_string();
            assert!(error.contains("written after the table was created"), "{error}");
        }
        // A read before the change is found too late only by this check, even after the pool closed the file.
        let b = ReopenedSource::open(&path("b"), &files).unwrap();
        b.read(std::slice::from_ref(&(0..1))).await.unwrap();
        std::fs::write(path("b"), "123456").unwrap();
        std::fs::write(path("c"), "1").unwrap();
        ReopenedSource::open(&path("c"), &files).unwrap();
        assert!(b.unchanged().is_err());
        // A new source accepts the present file.
        let now = ReopenedSource::open(&path("a"), &files).unwrap();
        assert_eq!(now.read(std::slice::from_ref(&(4..5))).await.unwrap()[0].as_ref(), b"5");
        assert!(a.read(std::slice::from_ref(&(0..1))).await.is_err());
    }
}
