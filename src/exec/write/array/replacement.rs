//! [`Replacement`]: a new folder of objects that takes the place of an array.
//!
//! ```text
//!   x.zarr                  the array that is there, locked; readers find it until the new one is complete
//!   x.zarr.gridfusion-new   the new array, until then
//!   x.zarr.gridfusion-old   on a local disk, the old one for the moment between two renames
//! ```
//!
//! In an object store, the objects of the array are deleted, and those of the new one renamed, the root's document last. Meanwhile, readers find
//! no array. An object tells how far that is: if a program is stopped, the next one goes on.

use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use bytes::Bytes;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use gridfusion_core::format::{ByteRange, Location};
use gridfusion_core::io::{
    ExistingObject, Folder, FolderEntry, LocalFolder, MAX_CONCURRENT_IO, StoreFolder,
    WritableFolder,
};
use gridfusion_core::tile::{Objects, WriteSession};

use super::place::TargetPlace;
use super::targets::TargetFormat;
use super::write_modes::{LOCK, lock};

const NEW: &str = ".gridfusion-new";
const OLD: &str = ".gridfusion-old";
/// The object in the array's folder that tells what is being done in an object store.
const PROGRESS: &str = ".gridfusion-replaced";
const DELETING: &str = "its objects are being deleted";
const MOVING: &str = "the objects of the new array are being renamed";

/// A new array beside one that is there.
pub(super) struct Replacement {
    /// The folder that has both.
    above: Arc<StoreFolder>,
    /// The name of the array in it.
    name: String,
    /// The folder of the new array.
    pub(super) folder: Arc<StoreFolder>,
    local: Option<PathBuf>,
    /// The objects by which readers find an array.
    marks: &'static [&'static str],
    /// The lock of the array that is there.
    session: WriteSession,
}

impl Replacement {
    /// Begins to replace the array at a place; `None` if nothing is there.
    ///
    /// # Errors
    /// If something else is there, or another program writes to the array.
    pub(super) async fn begin(
        place: &TargetPlace,
        target: &dyn TargetFormat,
        unlocks: bool,
    ) -> Result<Option<Self>> {
        if let Some(path) = place.local.as_ref().filter(|path| !path.exists()) {
            if let Some(root) = &place.root {
                root.check(path)?;
            }
            restore(path, unlocks).await?;
            if !path.exists() {
                return Ok(None);
            }
        }
        // Nothing that the session knows of the folder counts here.
        let (there, writable) = place.existing()?;
        if there.list("").await?.is_empty() {
            return Ok(None);
        }
        check_array(place, target, there.as_ref()).await?;
        let mut session = WriteSession::new(writable);
        lock(&mut session, unlocks).await?;
        match Self::locked(place, target, there).await {
            Ok((above, name, folder)) => {
                let (local, marks) = (place.local.clone(), target.marks());
                Ok(Some(Self { above, name, folder, local, marks, session }))
            }
            Err(error) => {
                session.abort().await;
                Err(error)
            }
        }
    }

    /// Goes on where a program was stopped, and removes what it has left beside the array.
    async fn locked(
        place: &TargetPlace,
        target: &dyn TargetFormat,
        there: Arc<dyn Folder>,
    ) -> Result<(Arc<StoreFolder>, String, Arc<StoreFolder>)> {
        let (above, name) = place.above()?;
        let folder = Arc::new(place.beside(NEW)?);
        if let Some(stopped) = progress_of(&there).await? {
            let has_deleted = *stopped == *MOVING.as_bytes();
            move_objects(&above, &name, &folder, target.marks(), has_deleted).await?;
        }
        check_array(place, target, there.as_ref()).await?;
        delete_all(&folder, folder.some_below("", usize::MAX).await?).await?;
        if let Some(new) = place.local.as_deref().map(|path| beside(path, NEW)) {
            // Its folders are left.
            match fs::remove_dir_all(new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok((above, name, folder))
    }

    /// Puts the new array into the place of the old one.
    pub(super) async fn finish(self) -> Result<()> {
        let Self { above, name, folder, local, marks, mut session } = self;
        match local {
            Some(path) => {
                let task = SpawnedTask::spawn_blocking(move || swap(&path));
                let swapped = task.join().await;
                swapped.map_err(|error| exec_datafusion_err!("renaming failed: {error}"))??;
            }
            None => move_objects(&above, &name, &folder, marks, false).await?,
        }
        Ok(session.release().await?)
    }

    /// Gives up; the array that is there stays.
    pub(super) async fn abort(self) {
        // Its objects are gone by now, and a store has no empty folders.
        if let Some(new) = self.local.as_deref().map(|path| beside(path, NEW))
            && let Err(error) = fs::remove_dir_all(&new)
            && error.kind() != io::ErrorKind::NotFound
        {
            log::warn!("cannot remove the folder {}: {error}", new.display());
        }
        self.session.abort().await;
    }
}

/// Deletes the objects of an array in a folder, and gives those of a new one its name.
async fn move_objects(
    above: &StoreFolder,
    name: &str,
    folder: &StoreFolder,
    marks: &'static [&'static str],
    has_deleted: bool,
) -> Result<()> {
    let is_mark = |object: &String| object.split('/').next().is_some_and(|it| marks.contains(&it));
    let is_of_writers = |object: &str| [PROGRESS, LOCK].contains(&object);
    let below = |object: &str| format!("{name}/{object}");
    let progress = async |text: &'static str| {
        let bytes = Bytes::from_static(text.as_bytes());
        above.put(&below(PROGRESS), bytes, ExistingObject::Replace).await
    };
    if !has_deleted {
        progress(DELETING).await?;
        let mut old = above.some_below(name, usize::MAX).await?;
        old.retain(|object| !is_of_writers(object));
        let (of_readers, others): (Vec<_>, Vec<_>) = old.into_iter().partition(is_mark);
        for objects in [of_readers, others] {
            delete_all(above, objects.iter().map(|it| below(it)).collect()).await?;
        }
        progress(MOVING).await?;
    }
    let new = folder.some_below("", usize::MAX).await?;
    let (of_readers, others): (Vec<_>, Vec<_>) = new.into_iter().partition(is_mark);
    for objects in [others, of_readers] {
        let moves = objects.into_iter().map(|object| async move {
            let from = format!("{name}{NEW}/{object}");
            above.replace(&from, &format!("{name}/{object}")).await
        });
        stream::iter(moves).buffer_unordered(MAX_CONCURRENT_IO).try_collect::<()>().await?;
    }
    Ok(above.delete(&below(PROGRESS)).await?)
}

/// Returns the text that tells how far a program came that was stopped.
async fn progress_of(folder: &Arc<dyn Folder>) -> Result<Option<Bytes>> {
    let objects = Objects::many_rewritten(Arc::clone(folder));
    let at = Location::new(PROGRESS, ByteRange::Whole);
    Ok(objects.read_if_present(&[at]).await?.into_iter().flatten().next())
}

/// Returns the error for a place without an array, if that is so because a program was stopped.
pub(super) async fn explained(place: &TargetPlace, error: DataFusionError) -> DataFusionError {
    check_no_progress(place).await.err().unwrap_or(error)
}

/// Fails if a program was stopped while it replaced the objects of the array at a place.
pub(super) async fn check_no_progress(place: &TargetPlace) -> Result<()> {
    let Ok((folder, _)) = place.existing() else { return Ok(()) };
    match progress_of(&folder).await {
        Ok(Some(_)) => plan_err!(
            "a program was stopped while it replaced the array at '{}'; replace it again, with mode 'overwrite'",
            place.name
        ),
        _ => Ok(()),
    }
}

/// Fails if the folder is no array, and none that was being replaced.
async fn check_array(
    place: &TargetPlace,
    target: &dyn TargetFormat,
    folder: &dyn Folder,
) -> Result<()> {
    let there = folder.list("").await?;
    let is_known =
        |it: &&FolderEntry| it.name == PROGRESS || target.marks().contains(&it.name.as_str());
    if there.iter().any(|it| is_known(&it)) {
        return Ok(());
    }
    let other = there.iter().find(|it| it.name != LOCK).map_or("", |it| &it.name);
    exec_err!(
        "'{}' has '{other}', and is no {} array: only an array is overwritten",
        place.name,
        target.name()
    )
}

async fn delete_all(folder: &StoreFolder, objects: Vec<String>) -> Result<()> {
    let deleted = objects.into_iter().map(|object| async move { folder.delete(&object).await });
    Ok(stream::iter(deleted).buffer_unordered(MAX_CONCURRENT_IO).try_collect::<()>().await?)
}

/// The folder beside another one whose name has this ending, too.
fn beside(path: &LocalPath, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Gives an array its name again, if a program was stopped between two renames.
async fn restore(path: &LocalPath, unlocks: bool) -> Result<()> {
    let old = beside(path, OLD);
    if !old.exists() {
        return Ok(());
    }
    // A program that is not stopped has the lock of this folder.
    let mut session = WriteSession::new(Arc::new(LocalFolder::open(&old, false)?));
    lock(&mut session, unlocks).await?;
    let renamed = fs::rename(&old, path);
    session.release().await?;
    Ok(renamed?)
}

/// Returns the folder of an array that a program was about to replace, if the array itself is gone.
pub(super) fn left_beside(path: &LocalPath) -> Option<PathBuf> {
    let old = beside(path, OLD);
    (!path.exists() && old.exists()).then_some(old)
}

/// Writes all files below a folder to the disk.
fn sync_all(folder: &LocalPath) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_all(&entry.path())?,
            false => fs::File::open(entry.path())?.sync_all()?,
        }
    }
    #[cfg(unix)]
    fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// Renames two folders, and removes the old one.
fn swap(path: &LocalPath) -> io::Result<()> {
    let (new, old) = (beside(path, NEW), beside(path, OLD));
    // The old array goes, so the new one must not be in memory only.
    sync_all(&new)?;
    // A program that was stopped may have left it.
    if old.exists() {
        fs::remove_dir_all(&old)?;
    }
    fs::rename(path, &old)?;
    if let Err(error) = fs::rename(&new, path) {
        fs::rename(&old, path)?;
        return Err(error);
    }
    match fs::symlink_metadata(&old)?.is_symlink() {
        true => fs::remove_file(old),
        false => fs::remove_dir_all(old),
    }
}
