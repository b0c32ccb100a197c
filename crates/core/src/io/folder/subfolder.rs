//! [`Subfolder`]: a folder in a folder.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Folder, FolderEntry};
use crate::error::Result;
use crate::io::ByteSource;

/// A folder in a folder. Its objects are opened by the outer folder.
#[derive(Debug)]
pub(crate) struct Subfolder {
    folder: Arc<dyn Folder>,
    path: String,
    name: String,
}

impl Subfolder {
    /// Returns the folder at `path` in `folder`.
    pub(crate) fn new(folder: Arc<dyn Folder>, path: &str) -> Self {
        let name = folder.location_of(path);
        Self { folder, path: path.to_owned(), name }
    }

    fn below(&self, path: &str) -> String {
        match path.is_empty() {
            true => self.path.clone(),
            false => format!("{}/{path}", self.path),
        }
    }
}

#[async_trait]
impl Folder for Subfolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_resident(&self) -> bool {
        self.folder.is_resident()
    }

    fn is_remote(&self) -> bool {
        self.folder.is_remote()
    }

    fn reads_ranges(&self) -> bool {
        self.folder.reads_ranges()
    }

    async fn list(&self, path: &str) -> Result<Vec<FolderEntry>> {
        self.folder.list(&self.below(path)).await
    }

    async fn list_all(&self, paths: &[String]) -> Result<Vec<Vec<FolderEntry>>> {
        let paths: Vec<String> = paths.iter().map(|path| self.below(path)).collect();
        self.folder.list_all(&paths).await
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        self.folder.open(&self.below(path)).await
    }
}
