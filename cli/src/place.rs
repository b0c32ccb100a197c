//! Opens the paths and URLs of the command line.

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::context::SessionContext;
use gridfusion::source::Ending;
use gridfusion::{ArrayOpener, ArraySchema, Error, Formats, GridCatalog};

use crate::options::PathOptions;

/// The arrays at a path or URL.
pub(crate) enum OpenedPlace {
    /// A file, a package, an array, or a group of arrays.
    Group(Arc<ArraySchema>),
    /// A directory of files, packages, arrays and groups.
    Directory(GridCatalog),
}

impl OpenedPlace {
    /// Opens what is at `path`.
    ///
    /// # Errors
    /// If nothing is there, or nothing that holds arrays, or the options are for other formats.
    pub(crate) async fn open(
        path: &str,
        options: &PathOptions,
        ctx: &SessionContext,
    ) -> gridfusion::Result<Self> {
        if path.contains('*') && !path.contains("://") && !Path::new(path).exists() {
            let message = format!(
                "there is no such file; quote a pattern in SQL instead: SELECT … FROM '{path}'"
            );
            return Err(Error::usage(message).in_file(path));
        }
        let opener = ArrayOpener::from_session(&ctx.state());
        let place = opener.place(path)?;
        let (array_options, formats) = (options.for_arrays(), opener.formats());
        let looked = formats.at(&place).await;
        // A folder that is no array may be a directory of arrays. If it is not, the first error is reported.
        if !matches!(looked, Ok(Some(_))) && may_be_folder(path, formats) {
            match GridCatalog::find(path, array_options, &opener).await {
                Ok(Some(catalog)) => return Ok(Self::Directory(catalog)),
                Ok(None) => {}
                Err(error) if Path::new(path).is_dir() => return Err(error),
                Err(error) => log::debug!("not a directory of arrays: {error}"),
            }
        }
        let format = looked?;
        if let Some(format) = &format {
            let refused = options.refuse_other_formats(&**format, formats);
            refused.map_err(|error| error.in_file(path))?;
        }
        let name = format.as_ref().map(|format| format.name());
        let schema = opener.schema(path, name, array_options).await;
        Ok(Self::Group(Arc::new(schema.map_err(|error| error.in_file(path))?)))
    }
}

/// Whether a directory may be at `path`. For a URL, only a listing can tell.
fn may_be_folder(path: &str, formats: &Formats) -> bool {
    let mut endings = formats.iter().flat_map(|format| format.endings());
    let is_file = |ending: &Ending| !ending.folder && path.ends_with(ending.ending);
    Path::new(path).is_dir() || path.contains("://") && !endings.any(is_file)
}
