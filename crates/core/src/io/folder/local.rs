//! A folder of the local file system.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Folder, FolderEntry, VersionBelow};
use crate::error::{Error, Result};
use crate::io::file::{FileNumber, Stamp, file_number};
use crate::io::{
    ByteSource, FileSource, LocalPath, MmapSource, ObjectStamp, OpenFiles, ReopenedSource, Root,
};

/// A local folder whose files are mapped, or read by positioned reads.
#[derive(Debug)]
pub struct LocalFolder {
    name: String,
    pub(super) path: LocalPath,
    files: Files,
    /// The folder that links must not leave.
    root: Option<Root>,
    /// The folder itself when it was opened, whatever its name is now.
    number: FileNumber,
}

/// The way in which the folder opens its files.
#[derive(Debug, Clone)]
enum Files {
    /// By a mapping per file.
    Mapped,
    /// By positioned reads.
    Read,
    /// Through a pool of open files that folders share.
    Among(Arc<OpenFiles>),
}

impl Files {
    fn open(&self, path: &LocalPath) -> Result<Arc<dyn ByteSource>> {
        Ok(match self {
            Self::Mapped => Arc::new(MmapSource::open_at(path)?),
            Self::Read => Arc::new(FileSource::open_at(path)?),
            Self::Among(files) => Arc::new(ReopenedSource::open_at(path, files)?),
        })
    }
}

/// The most threads that list folders or open files at once: the system does most of it under few locks.
const MOST_THREADS: usize = 4;

/// Calls `work` with each item, on a few threads that may wait for a disk. Returns the results in the order of the items.
///
/// One thread per item would be started for each of thousands of folders.
async fn on_threads<T: Send + 'static, R: Send + 'static>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Clone + Send + 'static,
) -> Result<Vec<R>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let share = items.len().div_ceil(threads).max(1);
    let (mut items, mut running) = (items.into_iter(), vec![]);
    while items.len() > 0 {
        let (share, work) = (items.by_ref().take(share).collect::<Vec<T>>(), work.clone());
        let work = move || share.into_iter().map(work).collect::<Vec<R>>();
        running.push(tokio::task::spawn_blocking(work));
    }
    let mut done = vec![];
    for share in running {
        let share = share.await.map_err(|error| Error::io("reading a folder was cancelled", error));
        done.extend(share?);
    }
    Ok(done)
}

impl LocalFolder {
    /// Opens the folder at `path`; `mmap` maps its files instead of using positioned reads.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn open(path: &Path, mmap: bool) -> Result<Self> {
        Self::open_at(path.into(), mmap)
    }

    /// Opens one of many folders that share the pool `files` of open files.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn open_among(path: &Path, files: &Arc<OpenFiles>) -> Result<Self> {
        Self::open_at_among(path.into(), files)
    }

    /// As [`LocalFolder::open`], for a path with a name in messages.
    pub(crate) fn open_at(path: LocalPath, mmap: bool) -> Result<Self> {
        Self::with_files(path, if mmap { Files::Mapped } else { Files::Read })
    }

    /// As [`LocalFolder::open_among`], for a path with a name in messages.
    pub(crate) fn open_at_among(path: LocalPath, files: &Arc<OpenFiles>) -> Result<Self> {
        Self::with_files(path, Files::Among(Arc::clone(files)))
    }

    /// Refuses objects outside of this root, to which symbolic links may lead.
    ///
    /// ```
    /// use gridfusion_core::io::{LocalFolder, Root};
    ///
    /// # let (inner, outer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    /// let folder = LocalFolder::open(outer.path(), false)?;
    /// let folder = folder.within(Some(&Root::new(inner.path())?));
    /// # let _ = folder;
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    #[must_use]
    pub fn within(self, root: Option<&Root>) -> Self {
        Self { root: root.cloned(), ..self }
    }

    fn with_files(path: LocalPath, files: Files) -> Result<Self> {
        let name = path.name();
        let failed = |error| Error::io("cannot open the folder", error).in_file(&name);
        let metadata = fs::metadata(path.at()).map_err(failed)?;
        if !metadata.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        Ok(Self { name, path, files, number: file_number(&metadata), root: None })
    }
}

impl LocalFolder {
    /// Returns the local path of an object or folder in this folder.
    ///
    /// # Errors
    /// `Corrupt` for a path that leaves the folder, such as `../x` or `/x`, because names of objects come
    /// from stored bytes. `Usage` for a link that leaves the root.
    pub(super) fn place(&self, path: &str) -> Result<LocalPath> {
        let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(stays) {
            let message = format!("\"{path}\" leaves the folder");
            return Err(Error::corrupt_region("name of an object", message).in_file(&self.name));
        }
        let path = self.path.join(path);
        if let Some(root) = &self.root {
            root.check_at(&path)?;
        }
        Ok(path)
    }
}

impl LocalFolder {
    /// Returns where an object or folder in this folder is.
    ///
    /// # Errors
    /// As [`Self::place`].
    pub(super) fn at(&self, path: &str) -> Result<PathBuf> {
        Ok(self.place(path)?.at().to_owned())
    }
}

/// Returns the files and folders in a folder, and follows links. Leaves out anything else, and names that are not UTF-8.
/// Also leaves out links to the folder itself or to those `above` it: following them would never end. A missing folder has
/// no entries, as in an object store.
fn entries(path: &Path, above: &[PathBuf]) -> std::io::Result<Vec<FolderEntry>> {
    let listing = match fs::read_dir(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        listing => listing?,
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry?;
        let is_link = entry.file_type().is_ok_and(|it| it.is_symlink());
        // The system finds an entry of an open folder faster than a path.
        let metadata = if is_link { fs::metadata(entry.path()) } else { entry.metadata() };
        let Ok(metadata) = metadata else { continue }; // gone, or a broken link
        let Ok(name) = entry.file_name().into_string() else { continue };
        if metadata.is_dir() && is_link && leads_up(&entry.path(), above) {
            continue;
        }
        if metadata.is_dir() || metadata.is_file() {
            let size = metadata.is_file().then_some(metadata.len());
            entries.push(FolderEntry { name, size });
        }
    }
    Ok(entries)
}

/// Whether a link leads to one of some folders. Links are resolved, so that other names of a folder count too.
fn leads_up(link: &Path, folders: &[PathBuf]) -> bool {
    let Ok(target) = fs::canonicalize(link) else { return false };
    folders.iter().any(|folder| fs::canonicalize(folder).is_ok_and(|folder| folder == target))
}

/// The most folders in each other that are walked through: more than any chunk has.
const MOST_DEPTH: usize = 64;

/// Adds the versions of all files below the folder at `path` of `root` to `found`; returns false if there are more than `most`.
fn versions(
    root: &Path,
    path: &str,
    depth: usize,
    most: usize,
    found: &mut Vec<VersionBelow>,
) -> std::io::Result<bool> {
    for FolderEntry { name, size } in entries(&root.join(path), &[])? {
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        if size.is_none() {
            if depth == 0 || !versions(root, &path, depth - 1, most, found)? {
                return Ok(false);
            }
            continue;
        }
        let stamp = Stamp::from_metadata(&fs::metadata(root.join(&path))?);
        let Some(version) = stamp.version() else { return Ok(false) };
        if found.len() >= most {
            return Ok(false);
        }
        found.push(VersionBelow { path, version, stamp: stamp.of_object() });
    }
    Ok(true)
}

/// Returns the present stamps of the files at `paths` in the folder `root`.
fn stamps(
    root: &Path,
    number: FileNumber,
    paths: &[PathBuf],
) -> std::io::Result<Vec<Option<ObjectStamp>>> {
    let now = fs::metadata(root);
    if now.is_err() || now.is_ok_and(|now| file_number(&now) != number) {
        let reason = "it was replaced or deleted after it was opened; open it again";
        return Err(std::io::Error::other(reason));
    }
    let stamp = |path: &PathBuf| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(Stamp::from_metadata(&metadata).of_object())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    };
    paths.iter().map(stamp).collect()
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
        let listed = self.list_all(&[path.to_owned()]).await?;
        Ok(listed.into_iter().flatten().collect())
    }

    async fn list_all(&self, paths: &[String]) -> Result<Vec<Vec<FolderEntry>>> {
        let places = paths.iter().map(|path| Ok((self.place(path)?, path.clone())));
        let places: Vec<(LocalPath, String)> = places.collect::<Result<_>>()?;
        let root = self.path.at().to_owned();
        let list = move |(path, relative): (LocalPath, String)| {
            let above: Vec<PathBuf> =
                Path::new(&relative).ancestors().map(|it| root.join(it)).collect();
            let failed = |error| Error::io("cannot list the folder", error).in_file(&path.name());
            entries(path.at(), &above).map_err(failed)
        };
        on_threads(places, list).await?.into_iter().collect()
    }

    async fn open_all(&self, paths: &[Arc<str>]) -> Vec<Result<Arc<dyn ByteSource>>> {
        let places = paths.iter().map(|path| self.place(path)).collect::<Result<Vec<_>>>();
        let files = self.files.clone();
        match places {
            Ok(places) => {
                on_threads(places, move |path| files.open(&path)).await.unwrap_or_default()
            }
            Err(_) => vec![],
        }
    }

    async fn stamps(&self, paths: &[Arc<str>]) -> Result<Option<Vec<Option<ObjectStamp>>>> {
        let paths = paths.iter().map(|path| self.at(path)).collect::<Result<Vec<_>>>()?;
        let (root, number) = (self.path.at().to_owned(), self.number);
        let checked = tokio::task::spawn_blocking(move || stamps(&root, number, &paths)).await;
        checked
            .map_err(|error| Error::io("checking was cancelled", error).in_file(&self.name))?
            .map(Some)
            .map_err(|error| Error::io("the folder has changed", error).in_file(&self.name))
    }

    fn absent_above(&self, path: &str) -> Option<String> {
        let is_absent = |folder: &&str| {
            let found = self.at(folder).map(fs::metadata);
            matches!(found, Ok(Err(error)) if error.kind() == ErrorKind::NotFound)
        };
        let folders = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
        // Mostly the folder is there, and one look suffices.
        folders.filter(|folder| !folder.is_empty()).take_while(is_absent).last().map(str::to_owned)
    }

    fn versions_below(&self, path: &str, most: usize) -> Result<Option<Vec<VersionBelow>>> {
        self.place(path)?;
        let mut found = vec![];
        let failed = |error| Error::io("cannot list the folder", error).in_file(&self.name);
        let is_all =
            versions(self.path.at(), path, MOST_DEPTH, most, &mut found).map_err(failed)?;
        // Systems list names in any order.
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(is_all.then_some(found))
    }

    async fn open(&self, path: &str) -> Result<Arc<dyn ByteSource>> {
        self.files.open(&self.place(path)?)
    }
}
