//! A file, package, array or group as a schema that is opened when it is first asked for something.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::TableType;

use super::holding::Holding;
use super::table_function::wait;
use super::{TetSchema, TileDbSchema, open};
use crate::error::Result as GridResult;
use crate::exec::to_datafusion;
use crate::options::{TetReadOptions, TileDbReadOptions};

/// How everything in a catalog is read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) tet: TetReadOptions,
    pub(super) tiledb: TileDbReadOptions,
    pub(super) runtime: Arc<RuntimeEnv>,
}

/// What is at one place, once somebody wants it.
#[derive(Debug)]
pub(super) struct LazySchema {
    pub(super) location: String,
    pub(super) holding: Holding,
    pub(super) reading: Arc<Reading>,
    /// Not a lock to wait for: whoever lists tables blocks its thread, which may be the one that opens.
    opened: OnceLock<Arc<dyn SchemaProvider>>,
}

impl LazySchema {
    pub(super) fn new(location: String, holding: Holding, reading: Arc<Reading>) -> Self {
        Self { location, holding, reading, opened: OnceLock::new() }
    }

    async fn opened(&self) -> GridResult<&Arc<dyn SchemaProvider>> {
        match self.opened.get() {
            Some(schema) => Ok(schema),
            None => {
                let schema = self.open().await?;
                Ok(self.opened.get_or_init(|| schema))
            }
        }
    }

    async fn open(&self) -> GridResult<Arc<dyn SchemaProvider>> {
        let Reading { tet, tiledb, runtime } = &*self.reading;
        Ok(match self.holding {
            Holding::Tet | Holding::Package => {
                Arc::new(TetSchema::new(open(&self.location, tet, runtime).await?, tet.read()))
            }
            Holding::Array | Holding::Group => {
                let runtime = Arc::clone(runtime);
                Arc::new(TileDbSchema::open(&self.location, tiledb.clone(), runtime).await?)
            }
        })
    }

    /// For callers that cannot wait. What cannot be opened has no tables, so that the others can be listed.
    fn opened_now(&self) -> Option<&Arc<dyn SchemaProvider>> {
        if let Some(schema) = self.opened.get() {
            return Some(schema);
        }
        let warn = |error: &dyn Display| log::warn!("left out of the list of tables: {error}");
        match wait(async { Ok(self.opened().await) }) {
            Ok(Ok(schema)) => return Some(schema),
            Ok(Err(error)) => warn(&error),
            Err(error) => warn(&error),
        }
        None
    }
}

#[async_trait]
impl SchemaProvider for LazySchema {
    fn table_names(&self) -> Vec<String> {
        self.opened_now().map(|schema| schema.table_names()).unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.opened().await.map_err(to_datafusion)?.table(name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.opened().await.map_err(to_datafusion)?.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.opened_now().is_some_and(|schema| schema.table_exist(name))
    }
}
