//! Places: what a user calls a path or URL, and how its objects and folders are reached.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use url::Url;

use crate::error::{Error, Result};
use crate::format::Entry;
use crate::io::{
    ByteSource, FileSource, Folder, LocalFolder, MmapSource, ObjectSource, OpenFiles,
    ReopenedSource, StoreFolder,
};
use crate::options::IoMode;
use crate::tile::Objects;

/// Finds the object store of a URL, as a session has registered it.
pub trait Stores: Debug + Send + Sync {
    /// The store of `url`.
    ///
    /// # Errors
    /// `Usage` if there is none; the message says how one is registered.
    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>>;
}

/// A path or URL, with all that it takes to read what is there.
///
/// ```text
///   'data/a.tet'          local path
///   'file:///data/a.tet'  local path
///   's3://bucket/a.tet'   path in a store that the session knows
/// ```
#[derive(Debug, Clone)]
pub struct Place {
    location: String,
    spot: Spot,
    stores: Arc<dyn Stores>,
    io: IoMode,
    /// Bounds how many local files are open at once.
    files: Option<Arc<OpenFiles>>,
}

#[derive(Debug, Clone)]
enum Spot {
    Local(PathBuf),
    Store(Arc<dyn ObjectStore>, ObjectPath),
}

impl Place {
    /// The place that `location` names.
    ///
    /// # Errors
    /// `Usage` for an empty location, or a URL that names no object of a known store.
    pub fn new(location: &str, stores: Arc<dyn Stores>) -> Result<Self> {
        let spot = spot_of(location, &*stores)?;
        let location = location.to_owned();
        Ok(Self { location, spot, stores, io: IoMode::default(), files: None })
    }

    /// The same place, whose local files are read so.
    #[must_use]
    pub fn with_io(self, io: IoMode) -> Self {
        Self { io, ..self }
    }

    /// The same place, whose local files are held open among `files`.
    #[must_use]
    pub(crate) fn among(self, files: Arc<OpenFiles>) -> Self {
        Self { files: Some(files), ..self }
    }

    /// The path or URL, as it was given.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The path, without what a URL has around it.
    pub fn path(&self) -> String {
        path_of(&self.location)
    }

    /// The local path, unless the place is in a store.
    pub fn local_path(&self) -> Option<&Path> {
        match &self.spot {
            Spot::Local(path) => Some(path),
            Spot::Store(..) => None,
        }
    }

    /// Whether the place is in a store rather than on the local file system.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.spot, Spot::Store(..))
    }

    /// The store and the path in it, unless the place is local.
    pub(crate) fn store(&self) -> Option<(&Arc<dyn ObjectStore>, &ObjectPath)> {
        match &self.spot {
            Spot::Local(_) => None,
            Spot::Store(store, path) => Some((store, path)),
        }
    }

    /// The place at another path or URL, read in the same way.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn at(&self, location: &str) -> Result<Self> {
        let spot = spot_of(location, &*self.stores)?;
        Ok(Self { location: location.to_owned(), spot, ..self.clone() })
    }

    /// The place of what is called `name` in the folder that this place is.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn child(&self, name: &str) -> Result<Self> {
        self.at(&child(&self.location, name))
    }

    /// The place that the relative `path` is, seen from the folder that this place is.
    ///
    /// # Errors
    /// As [`Place::new`].
    pub fn below(&self, path: &str) -> Result<Self> {
        self.at(&below(&self.location, path))
    }

    /// The object here, for formats that are one object.
    ///
    /// # Errors
    /// `Io` if there is none, or it cannot be opened.
    pub async fn object(&self) -> Result<Arc<dyn ByteSource>> {
        Ok(match (&self.spot, &self.files) {
            (Spot::Local(path), Some(files)) => Arc::new(ReopenedSource::open(path, files)?),
            (Spot::Local(path), None) if self.io == IoMode::Mmap => {
                Arc::new(MmapSource::open(path)?)
            }
            (Spot::Local(path), None) => Arc::new(FileSource::open(path)?),
            (Spot::Store(store, path), _) => {
                let (store, path) = (Arc::clone(store), path.clone());
                Arc::new(ObjectSource::open(self.location.clone(), store, path).await?)
            }
        })
    }

    /// The folder here, for formats that are many objects.
    ///
    /// # Errors
    /// `Io` if there is no such local folder; a store has no folders to ask about.
    pub fn folder(&self) -> Result<Arc<dyn Folder>> {
        Ok(match (&self.spot, &self.files) {
            (Spot::Local(path), Some(files)) => Arc::new(LocalFolder::open_among(path, files)?),
            (Spot::Local(path), None) => {
                Arc::new(LocalFolder::open(path, self.io == IoMode::Mmap)?)
            }
            (Spot::Store(store, path), _) => {
                let (store, path) = (Arc::clone(store), path.clone());
                Arc::new(StoreFolder::new(self.location.clone(), store, path))
            }
        })
    }

    /// Lists the entries of the folder, not of folders below it.
    ///
    /// # Errors
    /// `Io` if it cannot be listed.
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let objects = Objects::many(self.folder()?);
        Ok(objects.list(vec![String::new()]).await?.pop().unwrap_or_default())
    }
}

fn spot_of(location: &str, stores: &dyn Stores) -> Result<Spot> {
    if location.is_empty() {
        return Err(Error::usage("the location is empty; it is a path or a URL"));
    }
    let Some(url) = parse_url(location) else {
        return Ok(Spot::Local(Path::new(location).to_owned()));
    };
    if url.scheme() == "file" {
        let path = url
            .to_file_path()
            .map_err(|()| Error::usage(format!("'{location}' is not the URL of a local file")))?;
        return Ok(Spot::Local(path));
    }
    let store = stores.store(&url)?;
    let path = ObjectPath::from_url_path(url.path()).map_err(|error| bad_url(location, &error))?;
    Ok(Spot::Store(store, path))
}

/// Refuses a URL that names no object.
pub(crate) fn bad_url(location: &str, error: &dyn std::fmt::Display) -> Error {
    Error::usage(format!("'{location}' is not the URL of an object: {error}"))
}

/// The place that `path` is, seen from the folder at `location`.
fn below(location: &str, path: &str) -> String {
    format!("{}/{}", location.trim_end_matches('/'), path.trim_start_matches("./"))
}

/// The place of what is called `name` in the folder at `location`.
pub(crate) fn child(location: &str, name: &str) -> String {
    let Some(mut url) = parse_url(location) else { return below(location, name) };
    // In a URL, a name may need escapes.
    match url.path_segments_mut().map(|mut path| _ = path.pop_if_empty().push(name)) {
        Ok(()) => url.into(),
        Err(()) => below(location, name),
    }
}

/// The path of a location, without what a URL has around it.
pub(crate) fn path_of(location: &str) -> String {
    parse_url(location).map_or_else(|| location.to_owned(), |url| url.path().to_owned())
}

/// A URL, but not a path that happens to look like one (`C:\data`).
pub(crate) fn parse_url(location: &str) -> Option<Url> {
    location.contains("://").then(|| Url::parse(location).ok()).flatten()
}
