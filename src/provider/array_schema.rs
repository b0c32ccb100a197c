//! [`ArraySchema`]: a file, package or group as a SQL schema, with a table per array.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use super::array_table::ArrayTable;
use crate::source::{ArrayGroup, MosaicOptions, TableOrigin};

/// The arrays of one file, package or group as tables. An array is opened when its table is first needed.
///
/// Coordinates are tables too. An array that cannot be read does not prevent listing the other tables; a
/// query that names it returns the error.
#[derive(Debug)]
pub struct ArraySchema {
    group: Arc<dyn ArrayGroup>,
    /// The origin of the group, without a dataset; `None` if the caller opened the group.
    origin: Option<TableOrigin>,
    /// How an array and the coordinates beside it become one table.
    beside: MosaicOptions,
    opened: Mutex<HashMap<String, ArrayTable>>,
}

impl ArraySchema {
    /// Makes a schema of an opened group.
    pub fn new(group: Arc<dyn ArrayGroup>) -> Self {
        Self { group, origin: None, beside: MosaicOptions::default(), opened: Mutex::default() }
    }

    /// Sets the origin that each table reports, apart from its dataset, and how columns are combined.
    #[must_use]
    pub(super) fn with_origin(self, origin: TableOrigin, beside: MosaicOptions) -> Self {
        Self { origin: Some(origin), beside, ..self }
    }

    /// The arrays behind the tables.
    pub fn group(&self) -> &Arc<dyn ArrayGroup> {
        &self.group
    }

    /// Returns the table of the array `name`; `None` if there is no such array.
    ///
    /// # Errors
    /// As [`ArrayGroup::arrays`].
    pub async fn array_table(&self, name: &str) -> crate::Result<Option<ArrayTable>> {
        if !self.group.has(name) {
            return Ok(None);
        }
        let held = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if held.is_some() {
            return Ok(held);
        }
        let arrays = self.group.columns(Some(name)).await?;
        let mut table = ArrayTable::from_place(arrays, &self.beside)?;
        if let Some(origin) = &self.origin {
            table = table.with_origin(origin.of_dataset(name));
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(opened.entry(name.to_owned()).or_insert(table).clone()))
    }
}

#[async_trait]
impl SchemaProvider for ArraySchema {
    fn table_names(&self) -> Vec<String> {
        self.group.names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.array_table(name).await?.map(ArrayTable::into_provider))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        // Does not open the array, so that a damaged one does not fail the listing of tables.
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.group.has(name)
    }
}
