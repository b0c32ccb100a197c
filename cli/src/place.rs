//! What is at a path or URL of the command line.

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::array::ReadOptions;
use gridfusion::source::TetReader;
use gridfusion::{Error, GridCatalog, TileDbSchema};

use crate::options::PathOptions;
use crate::store;

/// Something that holds arrays.
pub(crate) enum Place {
    /// A `.tet` file, or a generation of a package, and how to read it.
    Tet(TetReader, ReadOptions),
    /// A TileDB array, or a group or folder of such arrays.
    TileDb(TileDbSchema),
    /// A directory with `.tet` files or packages in it, and perhaps arrays.
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
        runtime: &Arc<RuntimeEnv>,
    ) -> gridfusion::Result<Self> {
        if path.contains('*') && !path.contains("://") && !Path::new(path).exists() {
            let message = format!(
                "a pattern is a table in SQL: SELECT … FROM '{path}'; here is no such file"
            );
            return Err(Error::usage(message).in_file(path));
        }
        store::register(path, options.for_store(), runtime)?;
        let is_dir = Path::new(path).is_dir();
        // What a store has at a URL is not known before it is asked for.
        let may_be_dir = is_dir || path.contains("://") && !path.ends_with(".tet");
        if may_be_dir && !is_package(path) {
            let mixed = options.in_directory();
            let (tet, tiledb) = (mixed.tet()?, mixed.tiledb()?);
            match GridCatalog::find_with(path, tet, tiledb, Arc::clone(runtime)).await {
                Ok(Some(catalog)) if catalog.has_tet() => return Ok(Self::Directory(catalog)),
                Ok(_) => {
                    let options = options.tiledb().map_err(|error| error.in_file(path))?;
                    let arrays = TileDbSchema::open(path, options, Arc::clone(runtime)).await?;
                    return Ok(Self::TileDb(arrays));
                }
                Err(error) if is_dir => return Err(error),
                Err(error) => log::debug!("no directory, so it should be a .tet file: {error}"),
            }
        }
        let options = options.tet().map_err(|error| error.in_file(path))?;
        Ok(Self::Tet(gridfusion::open(path, &options, runtime).await?, options.read()))
    }
}

/// Whether a folder is to be opened as a package rather than for the arrays in it.
fn is_package(path: &str) -> bool {
    path.trim_end_matches('/').ends_with(".tet.d") || Path::new(path).join("PROTOCOL").is_file()
}
