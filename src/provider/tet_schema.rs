//! A file as a schema: each of its datasets is a table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use super::GridTable;
use crate::array::ReadOptions;
use crate::exec::to_datafusion;
use crate::source::TetReader;

/// The datasets of one file as tables, opened when they are first asked for.
///
/// Coordinate datasets are tables too. A dataset that cannot be read is not listed, so that it does
/// not spoil `information_schema` for the others; querying it by name gives its error.
#[derive(Debug)]
pub struct TetSchema {
    file: TetReader,
    options: ReadOptions,
    opened: Mutex<HashMap<String, Arc<GridTable>>>,
}

impl TetSchema {
    /// The schema of an opened file.
    pub fn new(file: TetReader, options: ReadOptions) -> Self {
        Self { file, options, opened: Mutex::default() }
    }

    /// The table of a dataset.
    ///
    /// # Errors
    /// Those of [`TetReader::array`].
    pub async fn grid_table(&self, dataset: &str) -> crate::Result<Arc<GridTable>> {
        let held = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(dataset).cloned();
        if let Some(table) = held {
            return Ok(table);
        }
        let array = self.file.array(dataset, &self.options).await?;
        let table = Arc::new(GridTable::new(Arc::new(array)));
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(opened.entry(dataset.to_owned()).or_insert(table)))
    }
}

#[async_trait]
impl SchemaProvider for TetSchema {
    fn table_names(&self) -> Vec<String> {
        let tet = self.file.tet();
        let is_readable = |name: &String| {
            tet.dataset_id(name).is_some_and(|id| tet.datasets()[id].grid().is_ok())
        };
        self.file.dataset_names().into_iter().filter(is_readable).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.table_exist(name) {
            return Ok(None);
        }
        let table = self.grid_table(name).await.map_err(to_datafusion)?;
        Ok(Some(table))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        // Known without opening the dataset, so that listing tables survives a bad one.
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.file.tet().dataset_id(name).is_some()
    }
}
