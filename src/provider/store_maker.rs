//! [`StoreMaker`]: object stores that a program makes on demand for the arrays of a session.
//!
//! DataFusion's registry of stores serves DataFusion's own formats too, which also list and write. They expect a store that repeats
//! failed requests. Arrays expect one that does not, because [`Remote`](crate::io::Remote) repeats and counts them itself. A
//! [`CheckedStore`](crate::io::CheckedStore) for the registry is made of both.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::prelude::SessionConfig;
use object_store::ObjectStore;
use url::Url;

use crate::error::{Error, Result};
use crate::options::is_of_store;

/// Makes object stores for arrays. A session has it as a [`MakesStores`] extension of its config.
pub trait StoreMaker: Debug + Send + Sync {
    /// Returns the store of a URL, whose path is `/`. The same URL gives the same store.
    ///
    /// # Errors
    /// `Usage` if there is no store for the URL, or settings are missing.
    fn store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>>;

    /// Returns the store of a URL that a file names and not the user. `by` is the URL of that file, unless it is local.
    ///
    /// A remote file may come from anybody. So its references should get no headers and passwords of the user, and reach no
    /// private address: [`is_public`](crate::io::is_public) tells.
    ///
    /// # Errors
    /// As [`StoreMaker::store`], and `Usage` for a place that files may not name.
    fn referenced(&self, url: &Url, by: Option<&Url>) -> Result<Arc<dyn ObjectStore>>;

    /// Sets options such as `aws.region` for the store of a location, which may also be a local path.
    ///
    /// # Errors
    /// `Usage` for an unknown option, or as [`StoreMaker::store`].
    fn configure(&self, location: &str, options: &HashMap<String, String>) -> Result<()>;
}

/// The extension of a session's config that holds a [`StoreMaker`].
#[derive(Debug, Clone)]
pub struct MakesStores(pub Arc<dyn StoreMaker>);

impl MakesStores {
    /// Returns the maker of a session; `None` if only registered stores are used.
    pub(super) fn in_session(config: &SessionConfig) -> Option<Arc<Self>> {
        config.get_extension::<Self>()
    }
}

/// Sets the options of object stores that a table function got.
///
/// # Errors
/// `Usage` if the session cannot set them, and as [`StoreMaker::configure`].
pub(super) fn configure(
    session: &dyn Session,
    locations: &[String],
    options: &HashMap<String, String>,
) -> Result<()> {
    let of_store = options.iter().filter(|(name, _)| is_of_store(name));
    let of_store: HashMap<String, String> =
        of_store.map(|(name, value)| (name.clone(), value.clone())).collect();
    let Some(name) = of_store.keys().min() else { return Ok(()) };
    let maker = MakesStores::in_session(session.config()).ok_or_else(|| {
        Error::usage(format!(
            "option '{name}' is for an object store: set it where the store is registered with the session"
        ))
    })?;
    locations.iter().try_for_each(|location| maker.0.configure(location, &of_store))
}
