//! Replaces a file only when the new one is complete.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process;

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};

/// A temporary file beside the target, which replaces the target at the end.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Checks that a file can be created beside `target`, so that a wrong path fails before the query runs.
    /// The trial file is removed at once, so that an interrupted query leaves no file.
    ///
    /// # Errors
    /// If `target` is a directory, or no file can be created beside it.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        if target.is_dir() {
            return Err(refused(target, "Is a directory"));
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{}.{name}", process::id()));
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let tried = made.and_then(|_| fs::remove_file(&path));
        tried.map_err(|error| refused(target, &error.to_string()))?;
        Ok(Self { path, target: target.to_owned() })
    }

    /// Makes the temporary file, to be written until [`Self::keep`].
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn open(&self) -> Result<File> {
        File::create(&self.path).map_err(|error| refused(&self.target, &error.to_string()))
    }

    /// Renames the temporary file, which is complete, to the target.
    ///
    /// # Errors
    /// If that fails; an older target stays as it was.
    pub(crate) fn keep(self) -> Result<()> {
        let moved = fs::rename(&self.path, &self.target);
        moved.map_err(|error| refused(&self.target, &error.to_string()))
    }

    /// Writes the temporary file and renames it to the target.
    ///
    /// # Errors
    /// If either step fails; an older target stays as it was.
    pub(crate) fn finish(self, bytes: &[u8]) -> Result<()> {
        let written = fs::write(&self.path, bytes);
        let moved = written.and_then(|()| fs::rename(&self.path, &self.target));
        moved.map_err(|error| refused(&self.target, &error.to_string()))
    }
}

/// Returns the error for a file that cannot be written.
pub(crate) fn refused(target: &Path, reason: &str) -> DataFusionError {
    plan_datafusion_err!("{}: cannot write the file: {reason}", target.display())
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The file does not exist if it was never written, or was renamed.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn all_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.txt");
        Draft::beside(&target).unwrap().finish(b"one").unwrap();
        let draft = Draft::beside(&target).unwrap();
        fs::create_dir(&draft.path).unwrap();
        let error = draft.finish(b"two").unwrap_err();
        assert!(error.to_string().contains("a.txt: cannot write the file: "), "{error}");
        fs::remove_dir(folder.path().join(format!(".{}.a.txt", process::id()))).unwrap();
        drop(Draft::beside(&target).unwrap());
        assert_eq!(fs::read_to_string(&target).unwrap(), "one");
        assert_eq!(files(folder.path()), ["a.txt"]);
    }

    #[test]
    fn impossible_files_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Draft::beside(folder.path()).is_err());
        assert!(Draft::beside(&folder.path().join("nowhere/a.png")).is_err());
    }
}
