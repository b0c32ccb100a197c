//! [`Opener`]: opens places with some formats and object stores.

use std::fmt;
use std::sync::Arc;

use object_store::ObjectStore;
use url::Url;

use super::dataset::Dataset;
use crate::error::{Error, Result, shown_location};
use crate::io::{Remote, RemoteLimits, RemoteStore, check_reference, is_same_origin};
use crate::options::ArrayOptions;
use crate::source::{ArrayFormat, Formats, Place, Stores};

/// Opens files, folders and URLs, in one of several formats. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use gridfusion_core::read::Opener;
/// use gridfusion_core::source::ArrayFormat;
///
/// /// Opens a place with the formats that a program links, such as `Arc::new(gridfusion_zarr::Zarr)`.
/// async fn names(formats: Vec<Arc<dyn ArrayFormat>>) -> gridfusion_core::Result<Vec<String>> {
///     Ok(Opener::new(formats).open("x.zarr").await?.names())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Opener {
    formats: Formats,
    stores: OwnStores,
    options: ArrayOptions,
}

impl Opener {
    /// Makes an opener of these formats, which are tried in this order. It reads local files.
    #[must_use]
    pub fn new(formats: Vec<Arc<dyn ArrayFormat>>) -> Self {
        let (stores, options) = (OwnStores::default(), ArrayOptions::default());
        Self { formats: Formats::new(formats), stores, options }
    }

    /// Reads URLs with the scheme and host of `url` from an object store. Stores share the limits.
    #[must_use]
    pub fn with_store(mut self, url: &Url, store: Arc<dyn ObjectStore>) -> Self {
        let store = self.stores.remote.store(store);
        self.stores.stores.push((url.clone(), store));
        self
    }

    /// Sets the limits of requests to object stores.
    #[must_use]
    pub fn with_limits(self, limits: RemoteLimits) -> Self {
        self.stores.remote.set_limits(limits);
        self
    }

    /// Sets options of the arrays, such as `fill_as_null`; each format lists its own.
    #[must_use]
    pub fn with_options(self, options: ArrayOptions) -> Self {
        Self { options, ..self }
    }

    /// Opens the arrays at a path or URL. This reads metadata, and no cells.
    ///
    /// # Errors
    /// `Usage` if no format recognises the place, for a URL without a store, and for an unknown option. `Usage` for the
    /// option `stack`, which is for many files. `Corrupt`, `Unsupported` or `Io` if the metadata cannot be read.
    pub async fn open(&self, location: &str) -> Result<Dataset> {
        let place = Place::new(location, Arc::new(self.stores.clone()))?;
        let format = self.formats.of_place(&place, None).await?;
        let options = self.formats.resolve(&format, &self.options, &ArrayOptions::default())?;
        if options.contains("stack") {
            let message = "option 'stack' is for tables of many files, and this is one place";
            return Err(Error::usage(message).in_file(location));
        }
        Dataset::open(&self.formats, format, place, options).await
    }
}

/// Object stores by scheme and host.
#[derive(Clone, Default)]
struct OwnStores {
    stores: Vec<(Url, RemoteStore)>,
    remote: Remote,
}

/// Shows no password and no signature of a URL, and nothing of a store, which may hold a key.
impl fmt::Debug for OwnStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.stores.iter().map(|(url, _)| shown_location(url.as_str())))
            .finish()
    }
}

impl Stores for OwnStores {
    fn store(&self, url: &Url) -> Result<RemoteStore> {
        let found = self.stores.iter().rev().find(|(known, _)| is_same_origin(known, url));
        found.map(|(_, store)| store.clone()).ok_or_else(|| {
            let shown = shown_location(url.as_str());
            Error::usage(format!(
                "no object store is known for '{shown}'; add one with `Opener::with_store`"
            ))
        })
    }

    fn referenced(&self, url: &Url, by: Option<&Url>) -> Result<RemoteStore> {
        check_reference(url, by, &self.remote.limits())?;
        self.store(url)
    }
}
