//! Replaces a file only when the new one is complete.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{self, Path, PathBuf};
use std::process;

use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};

/// A temporary file beside the target, which replaces the target at the end.
///
/// A pipe or a device, such as `/dev/null`, is written itself: a file must not take its place.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The file that is written.
    path: PathBuf,
    /// Where the file belongs, whatever the current folder is by then.
    target: PathBuf,
    /// The target in messages.
    name: PathBuf,
}

impl Draft {
    /// Checks that a file can be created beside `target`, so that a wrong path fails before the query runs.
    /// The trial file is removed at once, so that an interrupted query leaves no file.
    ///
    /// # Errors
    /// If `target` is a directory, or no file can be created beside it.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        let name = target.to_owned();
        let failed = |error: io::Error| refused(&name, &error.to_string());
        if target.is_dir() {
            return Err(refused(target, "Is a directory"));
        }
        let target = path::absolute(target).map_err(failed)?;
        // A link stays one, and its file is replaced.
        let target = fs::canonicalize(&target).unwrap_or(target);
        if fs::metadata(&target).is_ok_and(|it| !it.is_file()) {
            return Ok(Self { path: target.clone(), target, name });
        }
        let last = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{}.{last}", process::id()));
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.and_then(|_| fs::remove_file(&path)).map_err(failed)?;
        Ok(Self { path, target, name })
    }

    /// Makes the temporary file, to be written until [`Self::keep`].
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn open(&self) -> Result<File> {
        File::create(&self.path).map_err(|error| refused(&self.name, &error.to_string()))
    }

    /// Renames the temporary file, which is complete, to the target.
    ///
    /// # Errors
    /// If that fails; an older target stays as it was.
    pub(crate) fn keep(&self) -> Result<()> {
        if self.is_in_place() {
            return Ok(());
        }
        let moved = fs::rename(&self.path, &self.target);
        moved.map_err(|error| refused(&self.name, &error.to_string()))
    }

    /// Writes the temporary file and renames it to the target.
    ///
    /// # Errors
    /// If either step fails; an older target stays as it was.
    pub(crate) fn finish(self, bytes: &[u8]) -> Result<()> {
        fs::write(&self.path, bytes).map_err(|error| refused(&self.name, &error.to_string()))?;
        self.keep()
    }

    /// Whether the target itself is written.
    fn is_in_place(&self) -> bool {
        self.path == self.target
    }
}

/// Returns the error for a file that cannot be written.
pub(crate) fn refused(target: &Path, reason: &str) -> DataFusionError {
    plan_datafusion_err!("{}: cannot write the file: {reason}", target.display())
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The file does not exist if it was never written, or was renamed.
        if !self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
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

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_stay_what_they_are() {
        use std::io::Read;
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        Draft::beside(&pipe).unwrap().finish(b"one").unwrap();
        assert_eq!(reader.join().unwrap(), "one");
        assert!(pipe.exists());
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        drop(Draft::beside(&socket).unwrap());
        assert!(socket.exists());
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Draft::beside(&link).unwrap().finish(b"new").unwrap();
        assert_eq!((fs::read(&file).unwrap(), link.is_symlink()), (b"new".to_vec(), true));
    }

    #[test]
    fn impossible_files_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Draft::beside(folder.path()).is_err());
        assert!(Draft::beside(&folder.path().join("nowhere/a.png")).is_err());
    }
}
