//! A folder of the local file system.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Folder, FolderEntry};
use crate::error::{Error, Result};
use crate::io::{ByteSource, FileSource, MmapSource};

/// A local folder whose files are mapped, or read by positioned reads.
#[derive(Debug)]
pub struct LocalFolder {
    name: String,
    path: PathBuf,
    mmap: bool,
}

impl LocalFolder {
    /// The folder at `path`; `mmap` says whether its files are mapped.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn open(path: &Path, mmap: bool) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |error| Error::io("cannot open the folder", error).in_file(&name);
        if !fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        Ok(Self { name, path: path.to_owned(), mmap })
    }
}

/// The entries of a folder; links are followed, and what is neither file nor folder is left out.
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
        self.mmap
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let path = self.path.join(path);
        let name = path.display().to_string();
        let failed = |error| Error::io("cannot list the folder", error).in_file(&name);
        let listed = tokio::task::spawn_blocking(move || entries(&path)).await;
        listed
            .map_err(|error| Error::io("listing was cancelled", error).in_file(&name))?
            .map_err(failed)
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        let path = self.path.join(path);
        Ok(match self.mmap {
            true => Arc::new(MmapSource::open(&path)?),
            false => Arc::new(FileSource::open(&path)?),
        })
    }
}
