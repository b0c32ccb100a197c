//! A folder of the local file system.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Folder, FolderEntry};
use crate::error::{Error, Result};
use crate::io::{ByteSource, FileSource, MmapSource, OpenFiles, ReopenedSource, Root};

/// A local folder whose files are mapped, or read by positioned reads.
#[derive(Debug)]
pub struct LocalFolder {
    name: String,
    pub(super) path: PathBuf,
    files: Files,
    /// The folder that links must not leave.
    root: Option<Root>,
}

/// The way in which the folder opens its files.
#[derive(Debug)]
enum Files {
    /// By a mapping per file.
    Mapped,
    /// By positioned reads.
    Read,
    /// Through a pool of open files that folders share.
    Among(Arc<OpenFiles>),
}

impl LocalFolder {
    /// Opens the folder at `path`; `mmap` maps its files instead of using positioned reads.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn open(path: &Path, mmap: bool) -> Result<Self> {
        Self::with_files(path, if mmap { Files::Mapped } else { Files::Read })
    }

    /// Opens one of many folders that share the pool `files` of open files.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn open_among(path: &Path, files: &Arc<OpenFiles>) -> Result<Self> {
        Self::with_files(path, Files::Among(Arc::clone(files)))
    }

    /// Refuses objects outside of this root, to which symbolic links may lead.
    #[must_use]
    pub(crate) fn within(self, root: Option<&Root>) -> Self {
        Self { root: root.cloned(), ..self }
    }

    fn with_files(path: &Path, files: Files) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |error| Error::io("cannot open the folder", error).in_file(&name);
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        Ok(Self { name, path: path.to_owned(), files, root: None })
    }
}

impl LocalFolder {
    /// Returns the local path of an object or folder in this folder.
    ///
    /// # Errors
    /// `Corrupt` for a path that leaves the folder, such as `../x` or `/x`, because names of objects come
    /// from stored bytes. `Usage` for a link that leaves the root.
    pub(super) fn place(&self, path: &str) -> Result<PathBuf> {
        let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(stays) {
            let message = format!("\"{path}\" leaves the folder");
            return Err(Error::corrupt_region("name of an object", message).in_file(&self.name));
        }
        let path = self.path.join(path);
        if let Some(root) = &self.root {
            root.check(&path)?;
        }
        Ok(path)
    }
}

/// Returns the files and folders in a folder, and follows links. Leaves out anything else, and names that are
/// not UTF-8. A missing folder has no entries, as in an object store.
fn entries(path: &Path) -> std::io::Result<Vec<FolderEntry>> {
    let listing = match fs::read_dir(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        listing => listing?,
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry?;
        let Ok(metadata) = fs::metadata(entry.path()) else { continue }; // gone, or a broken link
        let Ok(name) = entry.file_name().into_string() else { continue };
        if metadata.is_dir() || metadata.is_file() {
            let size = metadata.is_file().then_some(metadata.len());
            entries.push(FolderEntry { name, size });
        }
    }
    Ok(entries)
}

#[async_trait]
impl Folder for LocalFolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_resident(&self) -> bool {
        match &self.files {
            Files::Mapped => true,
            Files::Read => false,
            Files::Among(files) => files.are_mapped(),
        }
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let path = self.place(path)?;
        let name = path.display().to_string();
        let failed = |error| Error::io("cannot list the folder", error).in_file(&name);
        let listed = tokio::task::spawn_blocking(move || entries(&path)).await;
        listed
            .map_err(|error| Error::io("listing was cancelled", error).in_file(&name))?
            .map_err(failed)
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let path = self.place(path)?;
        Ok(match &self.files {
            Files::Mapped => Arc::new(MmapSource::open(&path)?),
            Files::Read => Arc::new(FileSource::open(&path)?),
            Files::Among(files) => Arc::new(ReopenedSource::open(&path, files)?),
        })
    }
}
