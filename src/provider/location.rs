//! From what a user calls a place to opened files and folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use url::Url;

use super::holding::Holding;
use crate::error::{Error, Result};
use crate::format::Entry;
use crate::io::{
    ByteSource, FileSource, Folder, LocalFolder, MmapSource, ObjectSource, OpenFiles,
    ReopenedSource, StoreFolder,
};
use crate::options::{IoMode, Scope, TetReadOptions, TileDbReadOptions};
use crate::source::{OpenedTileDb, TetReader};
use crate::tile::Objects;

/// Opens the `.tet` file at `location`: a path, a `file://` URL, or the URL of an object in a store
/// that is registered with the session (`s3://bucket/key`, `https://host/path`, …). If that is a local
/// folder, or a URL that ends in `.tet.d`, it is a package, of which one generation is opened. Of the
/// options, `io` and `generation` count.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::TetReadOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion::Result<()> {
/// let (ctx, options) = (SessionContext::new(), TetReadOptions::default());
/// let file = gridfusion::open("examples/data/stations.tet", &options, &ctx.runtime_env()).await?;
/// assert_eq!(file.data_variables(), ["temperature", "precipitation", "elevation"]);
/// assert_eq!(file.generation(), None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` for a URL whose store is not registered, a generation that there is not, or something of another
/// format that is known; `Io` if the file cannot be read, `Corrupt` if it is not a `.tet` file, and those of
/// [`TetReader::open_package`].
pub async fn open(
    location: &str,
    options: &TetReadOptions,
    runtime: &RuntimeEnv,
) -> Result<TetReader> {
    open_among(location, options, runtime, None).await
}

/// The same for one of many local files, of which only some are held open.
pub(super) async fn open_among(
    location: &str,
    options: &TetReadOptions,
    runtime: &RuntimeEnv,
    many: Option<&Arc<OpenFiles>>,
) -> Result<TetReader> {
    let place = Place::of(location, runtime)?;
    match open_place(place, location, options, many).await {
        Ok(file) => Ok(file),
        Err(error) => Err(Holding::explain(error, location, Scope::Tet, runtime).await),
    }
}

async fn open_place(
    place: Place,
    location: &str,
    options: &TetReadOptions,
    many: Option<&Arc<OpenFiles>>,
) -> Result<TetReader> {
    if place.is_package() {
        let folder = place.folder(location, options.io(), many)?;
        return TetReader::open_package(folder, options.generation).await;
    }
    if options.generation.is_some() {
        let message = "a file has no generations; option 'generation' is for .tet.d packages";
        return Err(Error::usage(message).in_file(location));
    }
    let source: Arc<dyn ByteSource> = match (place, many) {
        (Place::Local(path), Some(files)) => Arc::new(ReopenedSource::open(&path, files)?),
        (Place::Local(path), None) if options.io() == IoMode::Mmap => {
            Arc::new(MmapSource::open(&path)?)
        }
        (Place::Local(path), None) => Arc::new(FileSource::open(&path)?),
        (Place::Store(store, path), _) => {
            Arc::new(ObjectSource::open(location.to_owned(), store, path).await?)
        }
    };
    TetReader::open(source).await
}

/// Opens the TileDB array at `location`: the path or URL of its folder, as for [`open`]. Of the options,
/// `io` and what is said of time and key count.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{TileDbReadOptions, open_tiledb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion::Result<()> {
/// let (ctx, options) = (SessionContext::new(), TileDbReadOptions::default());
/// let array = open_tiledb("tests/data/tiledb/overlap", &options, &ctx.runtime_env()).await?;
/// assert_eq!(array.tiledb().fragments().len(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if there is no array, `Io` if it cannot be read, `Corrupt` or `Unsupported` if it is not as
/// it should be.
pub async fn open_tiledb(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> Result<OpenedTileDb> {
    open_tiledb_among(location, options, runtime, None).await
}

/// The same for one of many arrays, of whose local files only some are held open.
pub(super) async fn open_tiledb_among(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
    many: Option<&Arc<OpenFiles>>,
) -> Result<OpenedTileDb> {
    let place = Place::of(location, runtime)?;
    let opened = match place.folder(location, options.io(), many) {
        Ok(folder) => OpenedTileDb::open(folder, options.open.clone()).await,
        Err(error) => Err(error),
    };
    match opened {
        Ok(array) => Ok(array),
        Err(error) => Err(Holding::explain(error, location, Scope::TileDb, runtime).await),
    }
}

/// The folder at `location`.
pub(super) fn folder(location: &str, io: IoMode, runtime: &RuntimeEnv) -> Result<Arc<dyn Folder>> {
    Place::of(location, runtime)?.folder(location, io, None)
}

/// The place that `path` is, seen from the folder at `location`.
pub(super) fn below(location: &str, path: &str) -> String {
    format!("{}/{}", location.trim_end_matches('/'), path.trim_start_matches("./"))
}

/// What is in the folder at `location`, not below it.
pub(super) async fn entries(
    location: &str,
    io: IoMode,
    runtime: &RuntimeEnv,
) -> Result<Vec<Entry>> {
    let objects = Objects::many(folder(location, io, runtime)?);
    Ok(objects.list(vec![String::new()]).await?.pop().unwrap_or_default())
}

/// The place of what is called `name` in the folder at `location`.
pub(super) fn child(location: &str, name: &str) -> String {
    let Some(mut url) = parse_url(location) else { return below(location, name) };
    // In a URL, a name may need escapes.
    match url.path_segments_mut().map(|mut path| _ = path.pop_if_empty().push(name)) {
        Ok(()) => url.into(),
        Err(()) => below(location, name),
    }
}

/// The path of a location, without what a URL has around it.
pub(super) fn path_of(location: &str) -> String {
    parse_url(location).map_or_else(|| location.to_owned(), |url| url.path().to_owned())
}

/// Where something is.
pub(super) enum Place {
    Local(PathBuf),
    Store(Arc<dyn ObjectStore>, ObjectPath),
}

impl Place {
    pub(super) fn of(location: &str, runtime: &RuntimeEnv) -> Result<Self> {
        if location.is_empty() {
            return Err(Error::usage("the location is empty; it is a path or a URL"));
        }
        let Some(url) = parse_url(location) else {
            return Ok(Self::Local(Path::new(location).to_owned()));
        };
        let bad_url = |error: &dyn std::fmt::Display| {
            Error::usage(format!("'{location}' is not the URL of an object: {error}"))
        };
        if url.scheme() == "file" {
            let path = url.to_file_path().map_err(|()| {
                Error::usage(format!("'{location}' is not the URL of a local file"))
            })?;
            return Ok(Self::Local(path));
        }
        let base = ObjectStoreUrl::parse(&url[..url::Position::BeforePath]);
        let base = base.map_err(|error| bad_url(&error))?;
        let store = runtime.object_store(&base).map_err(|error| match error.find_root() {
            // A registry that makes stores on demand says what it needs.
            DataFusionError::Plan(message) => Error::usage(message.clone()),
            // DataFusion's own error asks for a bug report.
            _ => {
                let register = "`SessionContext::register_object_store` does that";
                let store = base.as_str();
                Error::usage(format!("no object store is registered for '{store}'; {register}"))
            }
        })?;
        let path = ObjectPath::from_url_path(url.path()).map_err(|error| bad_url(&error))?;
        Ok(Self::Store(store, path))
    }

    /// Whether a `.tet` file expected here can only be in a package. A store has no folders to ask
    /// about, so there the name decides.
    fn is_package(&self) -> bool {
        match self {
            Self::Local(path) => path.is_dir(),
            Self::Store(_, path) => path.as_ref().ends_with(".tet.d"),
        }
    }

    fn folder(
        self,
        location: &str,
        io: IoMode,
        many: Option<&Arc<OpenFiles>>,
    ) -> Result<Arc<dyn Folder>> {
        Ok(match (self, many) {
            (Self::Local(path), Some(files)) => Arc::new(LocalFolder::open_among(&path, files)?),
            (Self::Local(path), None) => Arc::new(LocalFolder::open(&path, io == IoMode::Mmap)?),
            (Self::Store(store, path), _) => {
                Arc::new(StoreFolder::new(location.to_owned(), store, path))
            }
        })
    }
}

/// A URL, but not a path that happens to look like one (`C:\data`).
pub(super) fn parse_url(location: &str) -> Option<Url> {
    location.contains("://").then(|| Url::parse(location).ok()).flatten()
}
