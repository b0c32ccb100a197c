//! A file, package, array or group as a schema: each of its arrays is a table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use super::table::{GridTable, TableOrigin};
use crate::source::ArrayGroup;

/// The arrays of one place as tables, opened when they are first asked for.
///
/// Coordinates are tables too. An array that cannot be read does not spoil the list of tables; querying it by
/// name gives its error.
#[derive(Debug)]
pub struct ArraySchema {
    group: Arc<dyn ArrayGroup>,
    /// Without a dataset; `None` for arrays that were handed over opened.
    origin: Option<TableOrigin>,
    opened: Mutex<HashMap<String, Arc<GridTable>>>,
}

impl ArraySchema {
    /// The schema of opened arrays.
    pub fn new(group: Arc<dyn ArrayGroup>) -> Self {
        Self { group, origin: None, opened: Mutex::default() }
    }

    /// The same schema, whose tables say where they are from.
    #[must_use]
    pub(super) fn with_origin(self, origin: TableOrigin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// The arrays behind the tables.
    pub fn group(&self) -> &Arc<dyn ArrayGroup> {
        &self.group
    }

    /// The table of an array; `None` if there is none of this name.
    ///
    /// # Errors
    /// As [`ArrayGroup::arrays`].
    pub async fn grid_table(&self, name: &str) -> crate::Result<Option<Arc<GridTable>>> {
        if !self.group.has(name) {
            return Ok(None);
        }
        let held = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if held.is_some() {
            return Ok(held);
        }
        let array = self.group.array(name).await?.into_grid()?;
        let mut table = GridTable::new(Arc::new(array));
        if let Some(origin) = &self.origin {
            table = table.with_origin(origin.of_dataset(name));
        }
        let table = Arc::new(table);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(opened.entry(name.to_owned()).or_insert(table))))
    }
}

#[async_trait]
impl SchemaProvider for ArraySchema {
    fn table_names(&self) -> Vec<String> {
        self.group.names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = self.grid_table(name).await?;
        Ok(table.map(|table| table as Arc<dyn TableProvider>))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        // Known without opening the array, so that listing tables survives a bad one.
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.group.has(name)
    }
}
