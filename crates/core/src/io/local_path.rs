//! [`LocalPath`]: a local path that leads to the same file when the process changes its folder.

use std::path::{Path, PathBuf};

/// A local path: as it was given, for messages, and where it leads.
#[derive(Debug, Clone)]
pub(crate) struct LocalPath {
    given: PathBuf,
    at: PathBuf,
}

impl LocalPath {
    /// Makes a path that begins in `folder` if it is relative; without one, in the current folder of the process.
    pub(crate) fn new(given: PathBuf, folder: Option<&Path>) -> Self {
        let at = folder.map_or_else(|| given.clone(), |folder| folder.join(&given));
        Self { given, at }
    }

    /// Where the path leads.
    pub(crate) fn at(&self) -> &Path {
        &self.at
    }

    /// The path as it was given.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// The path in messages.
    pub(crate) fn name(&self) -> String {
        self.given.display().to_string()
    }

    /// Returns the path of something in this folder.
    pub(crate) fn join(&self, part: &str) -> Self {
        Self { given: self.given.join(part), at: self.at.join(part) }
    }
}

impl From<&Path> for LocalPath {
    fn from(path: &Path) -> Self {
        Self::new(path.to_owned(), None)
    }
}
