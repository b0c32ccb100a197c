//! [`LazySchema`]: a schema of a catalog, which is opened when a query first uses it.
//!
//! [`GridCatalog`](super::GridCatalog) makes one per file. A query that names a table opens only that file.
//! Listing the tables of one schema opens all files side by side, because `SHOW TABLES` lists those of every
//! schema, one after the other.
//!
//! A failed attempt is not kept, so the next use tries again. If two tasks open the schema at the same
//! time, both read the file and the first result is kept.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use futures::stream::{self, StreamExt};

use super::ArrayOpener;
use crate::error::Result as GridResult;
use crate::exec::wait;
use crate::options::ArrayOptions;

/// The most files that are opened at once. Requests to object stores have their own limit.
const MOST_OPENING: usize = 64;

/// The opener and the options that all schemas of a catalog share.
#[derive(Debug)]
pub(super) struct SharedOpener {
    opener: ArrayOpener,
    options: ArrayOptions,
    /// All schemas of the catalog.
    schemas: OnceLock<Vec<Weak<LazySchema>>>,
    /// Whether tables were listed, so that all schemas have been opened.
    is_listed: AtomicBool,
}

impl SharedOpener {
    pub(super) fn new(opener: ArrayOpener, options: ArrayOptions) -> Self {
        Self { opener, options, schemas: OnceLock::new(), is_listed: AtomicBool::new(false) }
    }

    /// Makes `schemas` known as all schemas of the catalog.
    pub(super) fn of_all<'a>(&self, schemas: impl Iterator<Item = &'a Arc<LazySchema>>) {
        self.schemas.get_or_init(|| schemas.map(Arc::downgrade).collect());
    }

    /// Opens all schemas side by side, the first time. A schema that fails reports the error when it is used.
    fn open_all(&self) {
        if self.is_listed.swap(true, Ordering::Relaxed) {
            return;
        }
        let schemas = self.schemas.get().map(Vec::as_slice).unwrap_or_default();
        let schemas: Vec<_> = schemas.iter().filter_map(Weak::upgrade).collect();
        let opening = self.opener.opening();
        opening.begin(schemas.len());
        let open = schemas.iter().map(|schema| async {
            let opened = schema.opened().await;
            opening.end();
            opened.is_ok()
        });
        let opened = stream::iter(open.collect::<Vec<_>>()).buffer_unordered(MOST_OPENING);
        if let Err(error) = wait(async { Ok(opened.count().await) }) {
            log::warn!("the files of the catalog are opened one after another: {error}");
        }
    }
}

/// The schema of one file, package, array or group, which is opened on first use.
#[derive(Debug)]
pub(super) struct LazySchema {
    pub(super) location: String,
    /// The name of the format that the catalog recognised.
    pub(super) format: &'static str,
    reading: Arc<SharedOpener>,
    /// Not a lock: listing tables blocks the thread, and the task that would hold the lock may
    /// need that thread.
    opened: OnceLock<Arc<dyn SchemaProvider>>,
}

impl LazySchema {
    pub(super) fn new(location: String, format: &'static str, reading: Arc<SharedOpener>) -> Self {
        Self { location, format, reading, opened: OnceLock::new() }
    }

    /// Returns the `options` that this schema's format has; a catalog may hold several formats.
    pub(super) fn options_of(&self, options: &ArrayOptions) -> ArrayOptions {
        let formats = self.reading.opener.formats();
        match formats.get(self.format) {
            Some(format) => formats.options_of(format, options),
            None => options.clone(),
        }
    }

    /// Returns the opened schema, and opens it if it is not open yet.
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
        let SharedOpener { opener, options, .. } = &*self.reading;
        let options = self.options_of(options);
        Ok(Arc::new(opener.schema(&self.location, Some(self.format), &options).await?))
    }

    /// Opens the schema for callers that are not async. Logs a warning and returns `None` if it cannot be
    /// opened, so that the tables of other schemas can be listed.
    fn opened_now(&self) -> Option<&Arc<dyn SchemaProvider>> {
        if let Some(schema) = self.opened.get() {
            return Some(schema);
        }
        let warn = |error: &dyn Display| log::warn!("left out of the list of tables: {error}");
        // The outer result is that of the thread, the inner one that of opening.
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
        self.reading.open_all();
        self.opened_now().map(|schema| schema.table_names()).unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.opened().await?.table(name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        self.opened().await?.table_type(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.opened_now().is_some_and(|schema| schema.table_exist(name))
    }
}
