//! Catalogs that open a table only when a query uses it.
//!
//! Two wrappers of DataFusion make quoted paths and URLs into tables, but they ask for the *type* of
//! a table by opening it. `SHOW TABLES` would then read the coordinates of every dataset of every
//! file, and one bad dataset would break it. So tables are fetched through the wrappers, and all
//! else is asked of what they wrap:
//!
//! ```text
//!   LazyCatalogs ──table──▶ DynamicObjectStoreCatalog ──▶ DynamicFileCatalog ──▶ plain catalogs
//!         └────────────────────── names, types, registration ───────────────────────▲
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

/// The outermost list of catalogs of a session.
#[derive(Debug)]
pub(crate) struct LazyCatalogs {
    /// The wrappers around `plain`.
    pub(crate) dynamic: Arc<dyn CatalogProviderList>,
    /// The catalogs that tables are registered in.
    pub(crate) plain: Arc<dyn CatalogProviderList>,
}

impl CatalogProviderList for LazyCatalogs {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.plain.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.plain.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let (dynamic, plain) = (self.dynamic.catalog(name)?, self.plain.catalog(name)?);
        Some(Arc::new(LazyCatalog { dynamic, plain }))
    }
}

#[derive(Debug)]
struct LazyCatalog {
    dynamic: Arc<dyn CatalogProvider>,
    plain: Arc<dyn CatalogProvider>,
}

impl CatalogProvider for LazyCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.plain.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let (dynamic, plain) = (self.dynamic.schema(name)?, self.plain.schema(name)?);
        Some(Arc::new(LazySchema { dynamic, plain }))
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.plain.register_schema(name, schema)
    }

    fn deregister_schema(
        &self,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.plain.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct LazySchema {
    dynamic: Arc<dyn SchemaProvider>,
    plain: Arc<dyn SchemaProvider>,
}

#[async_trait]
impl SchemaProvider for LazySchema {
    fn owner_name(&self) -> Option<&str> {
        self.plain.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.plain.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.dynamic.table(name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.plain.table_type(name).await
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.plain.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.plain.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.plain.table_exist(name)
    }
}
