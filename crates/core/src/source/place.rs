//! [`Place`]: a path or URL, and access to its object or folder.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use url::Url;

use crate::error::{Error, Result, shown_location};
use crate::format::{ByteRange, Entry, Location};
use crate::io::{
    ByteSource, FileSource, Folder, LocalFolder, LocalPath, MmapSource, ObjectSource, OpenFiles,
    RemoteStore, ReopenedSource, Root, StoreFolder,
};
use crate::options::IoMode;
use crate::tile::{Documents, ReservesMemory};
use crate::tile::{MOST_OF_DOCUMENT, Objects};

/// The object stores that a session has registered.
pub trait Stores: Debug + Send + Sync {
    /// Returns the store of `url`.
    ///
    /// # Errors
    /// `Usage` if there is none; the message explains how to register one.
    fn store(&self, url: &Url) -> Result<RemoteStore>;

    /// Returns the store of `url`, which a file names and not the user. `by` is the URL of that file, unless it is local.
    ///
    /// # Errors
    /// As [`Stores::store`], and `Usage` for a place that files may not name.
    fn referenced(&self, url: &Url, by: Option<&Url>) -> Result<RemoteStore> {
        let _ = by;
        self.store(url)
    }

    /// Returns the folder that local paths must not leave; `None` if they may lead anywhere.
    fn root(&self) -> Option<&Root> {
        None
    }

    /// Returns the folder in which relative paths begin. By default, it is the current folder of the process at the time.
    fn working_folder(&self) -> Option<&Path> {
        None
    }

    /// Reserves memory for metadata until the result is dropped. By default, memory is not accounted for.
    ///
    /// # Errors
    /// If the session does not have so much memory left.
    fn reserve(&self, bytes: u64) -> Result<Box<dyn Send + Sync>> {
        Ok(Box::new(bytes))
    }
}

/// The memory of a session.
#[derive(Debug)]
struct SessionMemory(Arc<dyn Stores>);
impl ReservesMemory for SessionMemory {
    fn reserve(&self, bytes: u64) -> Result<Box<dyn Send + Sync>> {
        self.0.reserve(bytes)
    }
}

/// A path or URL, with everything that is needed to read its object or folder.
///
/// ```text
///   'data/a.tet'          local path
///   'file:///data/a.tet'  local path
///   's3://bucket/a.tet'   path in an object store that the session has registered
/// ```
#[derive(Debug, Clone)]
pub struct Place {
    /// The path or URL as it was given, for messages.
    location: String,
    spot: Spot,
    /// Kept to resolve other locations, such as those of a group's members.
    stores: Arc<dyn Stores>,
    /// How local files are read; without effect in object stores, and if `files` is set.
    io: IoMode,
    /// The most bytes of a metadata document.
    metadata_limit: u64,
    /// The pool that limits how many local files are open at once; `None` leaves files open.
    files: Option<Arc<OpenFiles>>,
}

/// The resolved location.
#[derive(Debug, Clone)]
enum Spot {
    Local(LocalPath),
    /// A store, and the path in it without URL escapes.
    Store(RemoteStore, ObjectPath),
}

impl Place {
    /// Resolves a path or URL.
    ///
    /// # Errors
    /// `Usage` for an empty location, a URL that names no object of a registered store, or a path outside of the root.
    pub fn new(location: &str, stores: Arc<dyn Stores>) -> Result<Self> {
        let spot = spot_of(location, &*stores, |stores, url| stores.store(url))?;
        let location = location.to_owned();
        let (io, metadata_limit) = (IoMode::default(), MOST_OF_DOCUMENT);
        Ok(Self { location, spot, stores, io, metadata_limit, files: None })
    }

    /// Sets how local files are read.
    #[must_use]
    pub fn with_io(self, io: IoMode) -> Self {
        Self { io, ..self }
    }

    /// Sets the most bytes of a metadata document, such as `zarr.json`.
    #[must_use]
    pub fn with_metadata_limit(self, metadata_limit: u64) -> Self {
        Self { metadata_limit, ..self }
    }

    /// How metadata documents of this place are read.
    pub fn documents(&self) -> Documents {
        let memory = Arc::new(SessionMemory(Arc::clone(&self.stores)));
        Documents { most: self.metadata_limit, memory: Some(memory) }
    }

    /// How local files are read.
    pub fn io(&self) -> IoMode {
        self.io
    }

    /// Shares the pool `files`, which limits how many local files are open at once.
    #[must_use]
    pub fn among(self, files: Arc<OpenFiles>) -> Self {
        Self { files: Some(files), ..self }
    }

    /// The path or URL, as it was given. It may hold a password or a signature: messages show
    /// [`Place::shown`].
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The path or URL without its password and its query.
    pub fn shown(&self) -> String {
        shown_location(&self.location)
    }

    /// The path; for a URL, its path component with its escapes.
    pub fn path(&self) -> String {
        path_of(&self.location)
    }

    /// The local path, unless the place is in a store.
    pub fn local_path(&self) -> Option<&Path> {
        match &self.spot {
            Spot::Local(path) => Some(path.at()),
            Spot::Store(..) => None,
        }
    }

    /// The local path with its name in messages, unless the place is in a store.
    pub(crate) fn local(&self) -> Option<&LocalPath> {
        match &self.spot {
            Spot::Local(path) => Some(path),
            Spot::Store(..) => None,
        }
    }

    /// Whether the place is in a store rather than on the local file system.
    pub fn is_remote(&self) -> bool {
        matches!(self.spot, Spot::Store(..))
    }

    /// The store and the path in it, unless the place is local.
    pub(crate) fn store(&self) -> Option<(&RemoteStore, &ObjectPath)> {
        match &self.spot {
            Spot::Local(_) => None,
            Spot::Store(store, path) => Some((store, path)),
        }
    }

    /// Returns the place at another path or URL, with the same stores and settings.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn at(&self, location: &str) -> Result<Self> {
        let spot = spot_of(location, &*self.stores, |stores, url| stores.store(url))?;
        Ok(Self { location: location.to_owned(), spot, ..self.clone() })
    }

    /// Returns the place at a path or URL that the object or folder here names, with the same settings.
    ///
    /// # Errors
    /// As [`Stores::referenced`], and `Usage` for a local file that a remote one names: it could be any file of the user.
    pub fn referenced(&self, location: &str) -> Result<Self> {
        let by = self.is_remote().then(|| parse_url(&self.location)).flatten();
        let store = |stores: &dyn Stores, url: &Url| stores.referenced(url, by.as_ref());
        let spot = spot_of(location, &*self.stores, store)
            .map_err(|error| error.in_file_instead(Some(self.shown())))?;
        if self.is_remote() && matches!(spot, Spot::Local(_)) {
            let message = format!(
                "it refers to the local file {location}; only local reference files may do that"
            );
            return Err(Error::usage(message).in_file(&self.location));
        }
        Ok(Self { location: location.to_owned(), spot, ..self.clone() })
    }

    /// Returns the place of the entry `name` in this folder.
    ///
    /// `name` is a name as a listing returns it. In a URL it is escaped, so `run#1` becomes `run%231`.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn child(&self, name: &str) -> Result<Self> {
        self.at(&child(&self.location, name))
    }

    /// Resolves a relative path in this folder.
    ///
    /// Unlike [`Place::child`], this escapes nothing: in a URL, `#`, `?` and `%` keep their meaning.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn below(&self, path: &str) -> Result<Self> {
        self.at(&below(&self.location, path))
    }

    /// Resolves a relative path in the folder of this object.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn beside(&self, path: &str) -> Result<Self> {
        let location = self.location.split(['?', '#']).next().unwrap_or_default();
        match location.rsplit_once('/') {
            Some((folder, _)) => self.at(&below(folder, path)),
            None => self.at(path),
        }
    }

    /// Opens the object at this place, for formats of one object.
    ///
    /// # Errors
    /// `Io` if there is no object, or it cannot be opened.
    pub async fn object(&self) -> Result<Arc<dyn ByteSource>> {
        Ok(match (&self.spot, &self.files) {
            (Spot::Local(path), Some(files)) => Arc::new(ReopenedSource::open_at(path, files)?),
            (Spot::Local(path), None) if self.io == IoMode::Mmap => {
                Arc::new(MmapSource::open_at(path)?)
            }
            (Spot::Local(path), None) => Arc::new(FileSource::open_at(path)?),
            (Spot::Store(store, path), _) => {
                let (store, path) = (store.clone(), path.clone());
                Arc::new(Box::pin(ObjectSource::open(self.shown(), store, path)).await?)
            }
        })
    }

    /// Opens the folder at this place, for formats of many objects.
    ///
    /// # Errors
    /// `Io` if there is no such local folder. In an object store, this does not check that the folder exists.
    pub fn folder(&self) -> Result<Arc<dyn Folder>> {
        Ok(match (&self.spot, &self.files) {
            (Spot::Local(path), Some(files)) => {
                let folder = LocalFolder::open_at_among(path.clone(), files)?;
                Arc::new(folder.within(self.stores.root()))
            }
            (Spot::Local(path), None) => {
                let folder = LocalFolder::open_at(path.clone(), self.io == IoMode::Mmap)?;
                Arc::new(folder.within(self.stores.root()))
            }
            (Spot::Store(store, path), _) => {
                let (store, path) = (store.clone(), path.clone());
                Arc::new(StoreFolder::new(self.shown(), store, path))
            }
        })
    }

    /// Reads documents in a folder of an object store, and lists those that end with `/`. The session keeps them.
    /// Opening the folder tells what fails.
    pub(super) async fn read_ahead(&self, documents: &[&str]) {
        let (Some(_), Ok(folder), false) = (self.store(), self.folder(), documents.is_empty())
        else {
            return;
        };
        let (folders, documents): (Vec<&str>, Vec<&str>) =
            documents.iter().partition(|it| it.ends_with('/'));
        let folders = folders.iter().map(|it| it.trim_end_matches('/').to_owned()).collect();
        let whole = |it: &&str| Location::new(*it, ByteRange::Whole);
        let documents: Vec<Location> = documents.iter().map(whole).collect();
        let objects = Objects::many(folder);
        let (listed, read) =
            futures::join!(objects.list(folders), objects.read_if_present(&documents));
        if let Some(error) = listed.err().or(read.err()) {
            log::debug!("cannot be read ahead: {error}");
        }
    }

    /// Lists the entries of the folder, without those of its subfolders.
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed.
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let objects = Objects::many(self.folder()?);
        Ok(objects.list(vec![String::new()]).await?.pop().unwrap_or_default())
    }
}

/// Resolves a location. A text without `://` is a local path, also if it does not exist.
fn spot_of(
    location: &str,
    stores: &dyn Stores,
    store: impl Fn(&dyn Stores, &Url) -> Result<RemoteStore>,
) -> Result<Spot> {
    if location.is_empty() {
        return Err(Error::usage("the location is empty; give a path or a URL"));
    }
    let Some(url) = parse_url(location) else {
        return local(Path::new(location).to_owned(), stores);
    };
    if url.scheme() == "file" {
        let path = url
            .to_file_path()
            .map_err(|()| Error::usage(format!("'{location}' is not the URL of a local file")))?;
        return local(path, stores);
    }
    let store = store(stores, &url)?;
    let path = ObjectPath::from_url_path(url.path()).map_err(|error| bad_url(location, &error))?;
    Ok(Spot::Store(store, path))
}

/// Returns the spot of a local path, which must be in the root, if there is one.
fn local(path: PathBuf, stores: &dyn Stores) -> Result<Spot> {
    let path = LocalPath::new(path, stores.working_folder());
    if let Some(root) = stores.root() {
        root.check_at(&path)?;
    }
    Ok(Spot::Local(path))
}

/// Returns the error for a URL that does not name an object.
fn bad_url(location: &str, error: &dyn std::fmt::Display) -> Error {
    let location = shown_location(location);
    Error::usage(format!("'{location}' is not the URL of an object: {error}"))
}

/// Appends a relative path to the location of a folder.
fn below(location: &str, path: &str) -> String {
    format!("{}/{}", location.trim_end_matches('/'), path.trim_start_matches("./"))
}

/// Returns the location of the entry `name` in the folder at `location`.
pub(super) fn child(location: &str, name: &str) -> String {
    let Some(mut url) = parse_url(location) else { return below(location, name) };
    // In a URL, `push` escapes the name where needed.
    match url.path_segments_mut().map(|mut path| _ = path.pop_if_empty().push(name)) {
        Ok(()) => url.into(),
        Err(()) => below(location, name),
    }
}

/// Returns the path of a location; for a URL, its path component.
pub fn path_of(location: &str) -> String {
    parse_url(location).map_or_else(|| location.to_owned(), |url| url.path().to_owned())
}

/// Parses a URL; `None` for a path, even one that the URL syntax allows (`C:\data`).
pub fn parse_url(location: &str) -> Option<Url> {
    location.contains("://").then(|| Url::parse(location).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores of a session that was made in another folder than the current one.
    #[derive(Debug)]
    struct MadeIn(PathBuf);

    impl Stores for MadeIn {
        fn store(&self, url: &Url) -> Result<RemoteStore> {
            Err(Error::usage(format!("no store of {url}")))
        }

        fn working_folder(&self) -> Option<&Path> {
            Some(&self.0)
        }
    }

    /// Messages have the path as it was given.
    #[tokio::test]
    async fn relative_paths_begin_in_the_folder_of_the_session() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/x"), "1234").unwrap();
        let place = Place::new("a", Arc::new(MadeIn(dir.path().to_owned()))).unwrap();
        let files = OpenFiles::new(false, 1);
        for place in [place.clone().with_io(IoMode::Pread), place.clone(), place.among(files)] {
            let within = place.folder().unwrap().open("x").await.unwrap();
            let child = place.child("x").unwrap().object().await.unwrap();
            let beside = place.beside("a/x").unwrap().object().await.unwrap();
            for source in [within, child, beside] {
                assert_eq!((source.name(), source.size()), ("a/x", 4));
            }
            assert_eq!(place.entries().await.unwrap().len(), 1);
            let gone = place.child("gone").unwrap().object().await.err().unwrap().to_string();
            assert!(gone.starts_with("a/gone: cannot open the file"), "{gone}");
        }
    }
}
