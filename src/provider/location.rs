//! From what a user calls a place to an opened file.

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::path::Path as ObjectPath;
use url::Url;

use super::IoMode;
use crate::error::{Error, Result};
use crate::io::{ByteSource, FileSource, MmapSource, ObjectSource};
use crate::scan::OpenedFile;

/// Opens the `.tet` file at `location`: a path, a `file://` URL, or the URL of an object in a store
/// that is registered with the session (`s3://bucket/key`, `https://host/path`, …).
///
/// # Errors
/// `Usage` for a URL whose store is not registered, `Io` if the file cannot be read, `Corrupt` if
/// it is not a `.tet` file.
pub async fn open(location: &str, io: IoMode, runtime: &RuntimeEnv) -> Result<OpenedFile> {
    let source: Arc<dyn ByteSource> = match parse_url(location) {
        None => local(Path::new(location), io)?,
        Some(url) if url.scheme() == "file" => {
            let path = url.to_file_path().map_err(|()| {
                Error::usage(format!("'{location}' is not the URL of a local file"))
            })?;
            local(&path, io)?
        }
        Some(url) => Arc::new(object(location, &url, runtime).await?),
    };
    OpenedFile::open(source).await
}

/// A URL, but not a path that happens to look like one (`C:\data`).
fn parse_url(location: &str) -> Option<Url> {
    location.contains("://").then(|| Url::parse(location).ok()).flatten()
}

fn local(path: &Path, io: IoMode) -> Result<Arc<dyn ByteSource>> {
    Ok(match io {
        IoMode::Mmap => Arc::new(MmapSource::open(path)?),
        IoMode::Pread => Arc::new(FileSource::open(path)?),
    })
}

async fn object(location: &str, url: &Url, runtime: &RuntimeEnv) -> Result<ObjectSource> {
    let base = ObjectStoreUrl::parse(&url[..url::Position::BeforePath]).map_err(|error| {
        Error::usage(format!("'{location}' is not the URL of an object: {error}"))
    })?;
    let store = runtime.object_store(&base).map_err(|error| {
        Error::usage(format!("no object store is registered for '{}': {error}", base.as_str()))
    })?;
    let path = ObjectPath::from_url_path(url.path()).map_err(|error| {
        Error::usage(format!("'{location}' is not the URL of an object: {error}"))
    })?;
    ObjectSource::open(location.to_owned(), store, path).await
}
