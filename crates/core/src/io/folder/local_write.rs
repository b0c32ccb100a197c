//! Writing to a local folder: a file has a temporary name until it is complete.
//!
//! ```text
//!   create   .part.tet.4711-0.draft        beside the target, so that both are on one file system
//!   append   write … write
//!   complete sync the file, then   Replace: rename the draft to part.tet
//!                                  Refuse:  link it as part.tet, which fails if that exists
//!            sync the folder, so that the new name survives a crash
//! ```
//!
//! A draft that is dropped earlier is removed. After a crash it stays, and belongs to no array.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use super::LocalFolder;
use super::write::{ExistingObject, FolderLock, Upload, WritableFolder, changed, exists, locked};
use crate::error::{Error, Result};

/// Returns the error for a failed write: `Usage` if the file exists already, else `Io`.
fn failed(path: &Path, error: std::io::Error) -> Error {
    let name = path.display().to_string();
    match error.kind() {
        ErrorKind::AlreadyExists => exists(&name),
        _ => Error::io("cannot write the file", error).in_file(&name),
    }
}

/// Runs `work` on the file at `path` on a thread that may wait for a disk.
async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    let (name, at) = (path.display().to_string(), path.clone());
    let done = tokio::task::spawn_blocking(move || work(&at)).await;
    done.map_err(|error| Error::io("writing was cancelled", error).in_file(&name))?
        .map_err(|error| failed(&path, error))
}

/// The beginning of the names of folders that writers make for themselves.
const HIDDEN: &str = ".gridfusion-";
/// The end of the names of drafts.
const DRAFT: &str = ".draft";

/// A temporary file that gets its final name when it is complete. Dropping it before removes the file.
#[derive(Debug)]
struct Draft {
    /// The draft, open for writing.
    file: File,
    /// The temporary path; `None` once the file has its final name only.
    draft: Option<PathBuf>,
    /// The final path.
    path: PathBuf,
}

impl Draft {
    /// Creates the draft of the file at `path`, and the folders above it.
    fn create(path: &Path) -> std::io::Result<Self> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
            let draft = folder.join(format!(".{name}.{}-{number}{DRAFT}", std::process::id()));
            match File::create_new(&draft) {
                // An ended process with the same id may have left a draft of this name.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok(Self { file: file?, draft: Some(draft), path: path.to_owned() }),
            }
        }
    }

    /// Gives the file its final name, after all its bytes are on the disk.
    ///
    /// # Errors
    /// `AlreadyExists` if the file exists and must not be replaced, and other errors of the system.
    fn complete(mut self, existing: ExistingObject) -> std::io::Result<()> {
        self.file.sync_all()?;
        let Some(draft) = &self.draft else { return Ok(()) };
        match existing {
            ExistingObject::Replace => {
                fs::rename(draft, &self.path)?;
                self.draft = None;
            }
            // Linking fails if the file exists. Dropping the draft removes the temporary name.
            ExistingObject::Refuse => {
                fs::hard_link(draft, &self.path)?;
                // A caller that gets an error may rely on there being no file.
                return sync_folder_of(&self.path).inspect_err(|_| remove(&self.path));
            }
        }
        sync_folder_of(&self.path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            remove(draft);
        }
    }
}

/// Removes the folders above a file, up to so many, if nothing else is in them. Object stores have no empty folders.
fn remove_empty_folders(file: &Path, most: usize) {
    let above = file.ancestors().skip(1).take(most);
    for folder in above {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Removes all drafts below a folder, and hidden folders that are empty then: only writers have made such.
fn remove_drafts(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            remove_drafts(&entry.path())?;
            if is_hidden(&entry.path()) {
                // Fails if something else is in it.
                let _ = fs::remove_dir(entry.path());
            }
        } else if name.starts_with('.') && name.ends_with(DRAFT) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a folder, or one that it is in, has a name that writers choose.
fn is_hidden(folder: &Path) -> bool {
    let mut parts = folder.components();
    parts.any(|part| part.as_os_str().to_string_lossy().starts_with(HIDDEN))
}

/// Removes a file that is of no more use, and logs a warning if that fails.
fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        log::warn!("cannot remove the temporary file {}: {error}", path.display());
    }
}

/// Makes the new name of a file durable, on systems that can.
fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Waits until no other program replaces a file of the same folder. `None` where folders have no locks, as on some network file systems.
/// Dropping the file ends the turn.
fn turn_in_folder_of(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|_| cfg!(unix))?;
    let folder = File::open(folder).ok()?;
    folder.lock().is_ok().then_some(folder)
}

#[async_trait]
impl WritableFolder for LocalFolder {
    fn name(&self) -> &str {
        super::Folder::name(self)
    }

    async fn put(&self, path: &str, bytes: Bytes, existing: ExistingObject) -> Result<()> {
        blocking(self.at(path)?, move |path| {
            let mut draft = Draft::create(path)?;
            draft.file.write_all(&bytes)?;
            draft.complete(existing)
        })
        .await
    }

    async fn begin(&self, path: &str) -> Result<Box<dyn Upload>> {
        let draft = blocking(self.at(path)?, Draft::create).await?;
        Ok(Box::new(LocalUpload(Some(draft), self.at(path)?)))
    }

    async fn update(&self, path: &str, bytes: Bytes, old: &Bytes) -> Result<()> {
        let (at, old) = (self.at(path)?, old.clone());
        let name = at.display().to_string();
        let replaced = blocking(at, move |path| {
            // Other programs compare and replace one after the other.
            let _turn = turn_in_folder_of(path);
            match fs::read(path) {
                Ok(found) if found == old => {}
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => return Ok(false),
            }
            let mut draft = Draft::create(path)?;
            draft.file.write_all(&bytes)?;
            draft.complete(ExistingObject::Replace).map(|()| true)
        });
        if replaced.await? { Ok(()) } else { Err(changed(&name)) }
    }

    async fn lock(&self, path: &str, note: Bytes, takes_over: bool) -> Result<FolderLock> {
        let at = self.at(path)?;
        let name = at.display().to_string();
        let own = note.clone();
        let taken = blocking(at, move |path| lock(path, &own, takes_over)).await?;
        let file = taken.map_err(|of_holder| locked(&name, &of_holder))?;
        Ok(FolderLock::of_file(path, note, file))
    }

    async fn unlock(&self, lock: FolderLock) -> Result<()> {
        blocking(self.at(&lock.object)?, move |path| {
            match fs::read(path) {
                Ok(there) if there == lock.note => fs::remove_file(path)?,
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                // Another program has the lock.
                _ => {}
            }
            // The file of the lock closes once its name is gone.
            drop(lock);
            Ok(())
        })
        .await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let from = self.at(from)?;
        blocking(self.at(to)?, move |to| {
            // The system would replace a file. Another writer may still create one after this check.
            if to.try_exists()? {
                return Err(ErrorKind::AlreadyExists.into());
            }
            to.parent().map(fs::create_dir_all).transpose()?;
            fs::rename(from, to)?;
            sync_folder_of(to)
        })
        .await
    }

    async fn replace(&self, from: &str, to: &str) -> Result<()> {
        let folders = from.matches('/').count();
        let from = self.at(from)?;
        blocking(self.at(to)?, move |to| {
            to.parent().map(fs::create_dir_all).transpose()?;
            fs::rename(&from, to)?;
            remove_empty_folders(&from, folders);
            sync_folder_of(to)
        })
        .await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let folders = path.matches('/').count();
        blocking(self.at(path)?, move |path| match fs::remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.inspect(|()| remove_empty_folders(path, folders)),
        })
        .await
    }
}

/// Locks a file, which it creates, and writes a note into it. The system releases the lock of a program that ends. Fails with the note of a
/// program that holds the lock.
fn lock(path: &Path, note: &[u8], takes_over: bool) -> std::io::Result<Result<File, Vec<u8>>> {
    loop {
        let mut options = File::options();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let mut there = vec![];
        let is_free = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            // On file systems without locks, the file itself is the lock.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                file.metadata()?.len() == 0
            }
            Err(TryLockError::Error(error)) => return Err(error),
        };
        if !is_free && !takes_over {
            file.read_to_end(&mut there)?;
            return Ok(Err(there));
        }
        // The holder before may have deleted the file after it was opened here.
        if !is_same_file(&file, path)? {
            continue;
        }
        let was_left = file.metadata()?.len() > 0;
        file.set_len(0)?;
        file.write_all(note)?;
        file.sync_all()?;
        // A program that ends by itself removes its lock, and its drafts.
        if let (true, Some(folder)) = (is_free && was_left, path.parent()) {
            remove_drafts(folder)?;
        }
        return Ok(Ok(file));
    }
}

/// Whether an open file is still the one at `path`.
#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let place = |it: fs::Metadata| (it.dev(), it.ino());
    match fs::metadata(path) {
        Ok(there) => Ok(place(there) == place(file.metadata()?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Systems without inodes do not delete a file that is open.
#[cfg(not(unix))]
fn is_same_file(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// A file that is appended to, and its final path. The draft is `None` during an append, and after one fails.
#[derive(Debug)]
struct LocalUpload(Option<Draft>, PathBuf);

impl LocalUpload {
    /// Takes the draft for one step. Only a step that succeeds puts it back, so a failed upload stays failed.
    fn take(&mut self) -> Result<Draft> {
        let draft = self.0.take();
        draft.ok_or_else(|| failed(&self.1, std::io::Error::other("an earlier write to it failed")))
    }
}

#[async_trait]
impl Upload for LocalUpload {
    async fn append(&mut self, bytes: Bytes) -> Result<()> {
        let mut draft = self.take()?;
        let draft = blocking(self.1.clone(), move |_| {
            draft.file.write_all(&bytes)?;
            Ok(draft)
        });
        self.0 = Some(draft.await?);
        Ok(())
    }

    async fn complete(mut self: Box<Self>, existing: ExistingObject) -> Result<()> {
        let draft = self.take()?;
        blocking(self.1, move |_| draft.complete(existing)).await
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        Ok(()) // Dropping the draft removes it.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Folder;

    #[tokio::test]
    async fn names_that_leave_the_folder_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        let folder = LocalFolder::open(&inner, true).unwrap();
        for path in ["../out", "a/../../out", "/tmp/out", "../secret"] {
            let put = folder.put(path, Bytes::from_static(b"x"), ExistingObject::Replace).await;
            assert!(put.unwrap_err().to_string().contains("leaves the folder"), "{path}");
            assert!(Folder::open(&folder, path).await.is_err(), "{path}");
            assert!(folder.list(path).await.is_err(), "{path}");
            assert!(folder.delete(path).await.is_err(), "{path}");
        }
        assert!(!dir.path().join("out").exists());
    }

    #[test]
    fn a_draft_that_was_left_behind_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..1000 {
            let name = format!(".x.{}-{number}.draft", std::process::id());
            fs::write(dir.path().join(name), "").unwrap();
        }
        let draft = Draft::create(&dir.path().join("x")).unwrap();
        draft.complete(ExistingObject::Refuse).unwrap();
        assert!(dir.path().join("x").exists());
    }
}
