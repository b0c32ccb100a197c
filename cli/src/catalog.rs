//! Quoted paths and URLs as tables: arrays by the library, all else by datafusion-cli.
//!
//! ```text
//!   UrlCatalogs ──▶ catalogs
//!        └── UrlTables ──▶ GridUrlTables: .tet files, TileDB arrays
//!                 └──────▶ DynamicObjectStoreCatalog ──▶ DynamicFileCatalog: CSV, Parquet, …
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider, UrlTableFactory};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion_cli::catalog::substitute_tilde;
use gridfusion::GridUrlTables;
use gridfusion::exec::to_datafusion;

use crate::store;

/// Makes tables of names that no catalog has.
#[derive(Debug)]
pub(crate) struct UrlTables {
    pub(crate) arrays: GridUrlTables,
    /// The default schema as datafusion-cli wraps it.
    pub(crate) files: Arc<dyn SchemaProvider>,
    pub(crate) runtime: Arc<RuntimeEnv>,
}

#[async_trait]
impl UrlTableFactory for UrlTables {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let place = substitute_tilde(url.to_owned());
        // Without a store, datafusion-cli may know one, or says what is wrong.
        if let Err(error) = store::register_new(&place, &HashMap::new(), &self.runtime) {
            log::debug!("{error}");
        }
        match self.arrays.grid_table(&place).await.map_err(to_datafusion)? {
            Some(table) => Ok(Some(Arc::new(table))),
            None => self.files.table(url).await,
        }
    }
}
