//! What is at a path or URL of the command line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::scan::OpenedFile;
use gridfusion::{TetReadOptions, TileDbReadOptions, TileDbSchema};

use crate::store;

/// Something that holds arrays.
pub(crate) enum Place {
    /// A `.tet` file, or the current generation of a package.
    Tet(OpenedFile),
    /// A TileDB array, or a group or folder of such arrays.
    TileDb(TileDbSchema),
}

impl Place {
    /// Opens what is at `path`.
    ///
    /// # Errors
    /// If there is nothing, or nothing that holds arrays.
    pub(crate) async fn open(path: &str, runtime: &Arc<RuntimeEnv>) -> gridfusion::Result<Self> {
        store::register(path, &HashMap::new(), runtime)?;
        let arrays = || TileDbSchema::open(path, TileDbReadOptions::default(), Arc::clone(runtime));
        let is_package = is_package(path);
        if Path::new(path).is_dir() && !is_package {
            return Ok(Self::TileDb(arrays().await?));
        }
        // What a store has at a URL is not known before it is asked for.
        if path.contains("://") && !path.ends_with(".tet") && !is_package {
            match arrays().await {
                Ok(arrays) => return Ok(Self::TileDb(arrays)),
                Err(error) => log::debug!("not TileDB, so it should be a .tet file: {error}"),
            }
        }
        Ok(Self::Tet(gridfusion::open(path, &TetReadOptions::default(), runtime).await?))
    }
}

/// Whether a folder is to be opened as a package rather than for the arrays in it.
fn is_package(path: &str) -> bool {
    path.trim_end_matches('/').ends_with(".tet.d") || Path::new(path).join("PROTOCOL").is_file()
}
