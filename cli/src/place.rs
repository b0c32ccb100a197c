//! What is at a path or URL of the command line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::scan::OpenedFile;
use gridfusion::{Error, GridCatalog, TetReadOptions, TileDbReadOptions, TileDbSchema};

use crate::store;

/// Something that holds arrays.
pub(crate) enum Place {
    /// A `.tet` file, or the current generation of a package.
    Tet(OpenedFile),
    /// A TileDB array, or a group or folder of such arrays.
    TileDb(TileDbSchema),
    /// A directory with `.tet` files or packages in it, and perhaps arrays.
    Directory(GridCatalog),
}

impl Place {
    /// Opens what is at `path`.
    ///
    /// # Errors
    /// If there is nothing, or nothing that holds arrays.
    pub(crate) async fn open(path: &str, runtime: &Arc<RuntimeEnv>) -> gridfusion::Result<Self> {
        if path.contains('*') && !path.contains("://") && !Path::new(path).exists() {
            let message = format!(
                "a pattern is a table in SQL: SELECT … FROM '{path}'; here is no such file"
            );
            return Err(Error::usage(message).in_file(path));
        }
        store::register(path, &HashMap::new(), runtime)?;
        let arrays = || TileDbSchema::open(path, TileDbReadOptions::default(), Arc::clone(runtime));
        let options = TetReadOptions::default();
        let is_dir = Path::new(path).is_dir();
        // What a store has at a URL is not known before it is asked for.
        let may_be_dir = is_dir || path.contains("://") && !path.ends_with(".tet");
        if may_be_dir && !is_package(path) {
            match GridCatalog::find(path, options.clone(), Arc::clone(runtime)).await {
                Ok(Some(catalog)) if catalog.has_tet() => return Ok(Self::Directory(catalog)),
                Ok(_) => return Ok(Self::TileDb(arrays().await?)),
                Err(error) if is_dir => return Err(error),
                Err(error) => log::debug!("no directory, so it should be a .tet file: {error}"),
            }
        }
        Ok(Self::Tet(gridfusion::open(path, &options, runtime).await?))
    }
}

/// Whether a folder is to be opened as a package rather than for the arrays in it.
fn is_package(path: &str) -> bool {
    path.trim_end_matches('/').ends_with(".tet.d") || Path::new(path).join("PROTOCOL").is_file()
}
