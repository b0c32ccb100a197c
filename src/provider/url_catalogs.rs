//! [`UrlCatalogs`]: catalogs that look up unknown table names as paths or URLs.
//!
//! DataFusion has such a wrapper too, but its `table_type` opens the table. `SHOW TABLES` would then read the
//! coordinates of every dataset of every file, and fail for one damaged dataset. This wrapper adds only a
//! second look-up of tables and passes all other calls to the wrapped catalogs.
//!
//! ```text
//!   SELECT … FROM 'x.tet'     UrlCatalogs ──▶ UrlCatalog ──▶ UrlSchema ──▶ inner.table("x.tet")   None
//!                                                                └───────▶ urls.try_new("x.tet")  a table
//! ```
//!
//! DataFusion takes an unqualified name for a table of the default schema, so the look-up ends in its
//! `UrlSchema`. A table that is registered under the text of a path wins over the file.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider, UrlTableFactory,
};
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use super::sql_secrets::without_secrets_in_sql;

/// The catalogs of a session, which also find tables by path or URL.
#[derive(Debug)]
pub struct UrlCatalogs {
    inner: Arc<dyn CatalogProviderList>,
    urls: Arc<dyn UrlTableFactory>,
}

impl UrlCatalogs {
    /// Wraps `inner`; `urls` makes the tables that `inner` does not have.
    pub fn new(inner: Arc<dyn CatalogProviderList>, urls: Arc<dyn UrlTableFactory>) -> Self {
        Self { inner, urls }
    }
}

impl CatalogProviderList for UrlCatalogs {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.inner.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.inner.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let inner = self.inner.catalog(name)?;
        Some(Arc::new(UrlCatalog { inner, urls: Arc::clone(&self.urls) }))
    }
}

/// A catalog whose schemas also find tables by path or URL.
#[derive(Debug)]
struct UrlCatalog {
    inner: Arc<dyn CatalogProvider>,
    urls: Arc<dyn UrlTableFactory>,
}

impl CatalogProvider for UrlCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.inner.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let inner = self.inner.schema(name)?;
        Some(Arc::new(UrlSchema { inner, urls: Arc::clone(&self.urls) }))
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.inner.register_schema(name, schema)
    }

    fn deregister_schema(
        &self,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.inner.deregister_schema(name, cascade)
    }
}

/// A schema that also finds tables by path or URL.
#[derive(Debug)]
struct UrlSchema {
    inner: Arc<dyn SchemaProvider>,
    urls: Arc<dyn UrlTableFactory>,
}

#[async_trait]
impl SchemaProvider for UrlSchema {
    fn owner_name(&self) -> Option<&str> {
        self.inner.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.inner.table(name).await? {
            Some(table) => Ok(Some(table)),
            None => self.urls.try_new(name).await,
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        // Only registered tables have a type here, because finding the type of a file would open it.
        self.inner.table_type(name).await
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.register_table(name, without_secrets_in_definition(table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        // Not asynchronous, so it cannot look for a file.
        self.inner.table_exist(name)
    }
}

/// Returns a view or a table of files whose definition, which `SHOW CREATE TABLE` shows, has no secrets.
fn without_secrets_in_definition(table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    let Some(definition) = table.get_table_definition() else { return table };
    let shown = without_secrets_in_sql(definition);
    if shown == definition {
        return table;
    }
    let any: &dyn Any = &*table;
    if let Some(view) = any.downcast_ref::<ViewTable>() {
        return Arc::new(ViewTable::new(view.logical_plan().clone(), Some(shown)));
    }
    match any.downcast_ref::<ListingTable>() {
        Some(files) => Arc::new(files.clone().with_definition(Some(shown))),
        None => table,
    }
}
