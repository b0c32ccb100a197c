//! A file that is there as a whole or not at all.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process;

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;

/// A name beside the file that is wanted, for one that takes its place in the end.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Tries whether a file can be made beside `target`, so that an impossible one is known before
    /// any work. It is gone again then: who is interrupted at work shall leave nothing behind.
    ///
    /// # Errors
    /// If `target` is a folder, or nothing can be written beside it.
    pub(super) fn beside(target: &Path) -> Result<Self> {
        let refused = |reason: String| {
            plan_datafusion_err!("{}: cannot write the picture: {reason}", target.display())
        };
        if target.is_dir() {
            return Err(refused("Is a directory".to_owned()));
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{}.{name}", process::id()));
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let tried = made.and_then(|_| fs::remove_file(&path));
        tried.map_err(|error| refused(error.to_string()))?;
        Ok(Self { path, target: target.to_owned() })
    }

    /// Has the file written, and puts it in its place.
    ///
    /// # Errors
    /// If one of both fails; then what was there before is there still.
    pub(super) fn finish(self, write: impl Fn(&Path) -> Result<(), String>) -> Result<()> {
        let moved = || fs::rename(&self.path, &self.target).map_err(|error| error.to_string());
        let written = write(&self.path).and_then(|()| moved());
        written.map_err(|reason| {
            plan_datafusion_err!("{}: cannot write the picture: {reason}", self.target.display())
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Not there if it was not written, or has taken its place.
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
        let write = |text: &'static str| {
            move |path: &Path| fs::write(path, text).map_err(|error| error.to_string())
        };
        Draft::beside(&target).unwrap().finish(write("one")).unwrap();
        let error = Draft::beside(&target).unwrap().finish(|_| Err("no".to_owned())).unwrap_err();
        assert!(error.to_string().contains("a.txt: cannot write the picture: no"), "{error}");
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
