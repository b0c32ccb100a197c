//! What is at a path or URL of the command line.

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use gridfusion::{ArrayGroup, ArrayOpener, ArrayOptions, Error, GridCatalog};

use crate::options::PathOptions;
use crate::store;

/// Something that holds arrays.
pub(crate) enum Place {
    /// A file, a package, an array, or a group of arrays.
    Group(Arc<dyn ArrayGroup>),
    /// A directory of such.
    Directory(GridCatalog),
}

impl Place {
    /// Opens what is at `path`.
    ///
    /// # Errors
    /// If there is nothing, or nothing that holds arrays, or the options are about something else.
    pub(crate) async fn open(
        path: &str,
        options: &PathOptions,
        ctx: &SessionContext,
    ) -> gridfusion::Result<Self> {
        if path.contains('*') && !path.contains("://") && !Path::new(path).exists() {
            let message = format!(
                "a pattern is a table in SQL: SELECT … FROM '{path}'; here is no such file"
            );
            return Err(Error::usage(message).in_file(path));
        }
        store::register(path, options.for_store(), &ctx.runtime_env())?;
        let opener = ArrayOpener::of(&ctx.state());
        let place = opener.place(path)?;
        let said = options.for_arrays();
        let found = opener.formats().recognise(&place).await;
        let is_folder = found.as_ref().is_none_or(|found| found.recognised.nests);
        if is_folder && may_be_folder(path) {
            // To a format, a folder may be a group of arrays.
            if let Some(format) = opener.group_format(&place).await {
                return group(path, Some(format), said, &opener).await;
            }
            match GridCatalog::find(path, said, &opener).await {
                Ok(Some(catalog)) => return Ok(Self::Directory(catalog)),
                Ok(None) => {}
                Err(error) if Path::new(path).is_dir() && found.is_none() => return Err(error),
                Err(error) => log::debug!("not a directory of arrays: {error}"),
            }
        }
        group(path, None, said, &opener).await
    }
}

async fn group(
    path: &str,
    format: Option<&str>,
    options: &ArrayOptions,
    opener: &ArrayOpener,
) -> gridfusion::Result<Place> {
    let group = opener.group(path, format, options).await.map_err(|error| error.in_file(path));
    Ok(Place::Group(group?))
}

/// What a store has at a URL is not known before it is asked for.
fn may_be_folder(path: &str) -> bool {
    Path::new(path).is_dir() || path.contains("://") && !path.ends_with(".tet")
}
