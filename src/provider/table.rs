//! [`GridTable`]: one array as a table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::variables::arrays_of;
use crate::array::GridArray;
use crate::error::Result as GridResult;
use crate::exec::GridScanExec;
use crate::exec::pruning::{FilterScope, planning};
use crate::io::last_part;
use crate::options::{TetReadOptions, TileDbReadOptions};
use crate::plan::ScanPlan;
use crate::source::{FileArrays, MosaicOptions, OpenedTileDb, TetReader};

/// One array as a table: a row per cell, a column per dimension, and a column per value.
///
/// What a query says about dimensions is settled before anything is read: a predicate over one
/// dimension is exact and leaves no filter behind; one over several dimensions, or over values of which
/// the writer noted the bounds, skips chunks.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{GridTable, TetReadOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = SessionContext::new();
/// let options = TetReadOptions::default().with_dataset("temperature");
/// let file = gridfusion::open("examples/data/stations.tet", &options, &ctx.runtime_env()).await?;
/// let table = GridTable::open(&file, &options).await?;
/// ctx.register_table("temperature", Arc::new(table))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GridTable {
    array: Arc<GridArray>,
}

impl GridTable {
    /// Opens a dataset of a file as a table. Without a dataset in the options, it is all data variables of
    /// the file, a column each, if they have the same dimensions.
    ///
    /// # Errors
    /// `Usage` if the dataset is not there or it is not clear which one is meant; otherwise those of
    /// [`TetReader::array`].
    pub async fn open(file: &TetReader, options: &TetReadOptions) -> GridResult<Self> {
        let arrays = arrays_of(file, options.dataset.as_deref(), &options.read()).await?;
        Self::of_file(arrays, &options.mosaic())
    }

    /// The table of a TileDB array.
    ///
    /// # Errors
    /// Those of [`OpenedTileDb::array`].
    pub fn of_tiledb(array: &OpenedTileDb, options: &TileDbReadOptions) -> GridResult<Self> {
        let (name, arrays) = (array.location().to_owned(), vec![array.array(&options.view())?]);
        Self::of_file(FileArrays { name, arrays }, &options.mosaic())
    }

    /// The table of the variables of one file.
    pub(super) fn of_file(mut file: FileArrays, options: &MosaicOptions) -> GridResult<Self> {
        if file.arrays.len() == 1
            && !options.file_column
            && let Some(array) = file.arrays.pop()
        {
            return Ok(Self::new(Arc::new(array)));
        }
        let name = last_part(&file.name).to_owned();
        Ok(Self::new(Arc::new(GridArray::combine(name, vec![file], options)?)))
    }

    /// The table of an opened array.
    pub fn new(array: Arc<GridArray>) -> Self {
        Self { array }
    }

    /// The array behind the table.
    pub fn array(&self) -> &Arc<GridArray> {
        &self.array
    }
}

#[async_trait]
impl TableProvider for GridTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.array.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| FilterScope::of(filter, &self.array).pushdown();
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let request = planning::request(&self.array, filters, limit, state).await?;
        let plan = ScanPlan::new(self.array.grid().clone(), request)?;
        let projection =
            projection.cloned().unwrap_or_else(|| (0..self.array.columns().len()).collect());
        let scan = GridScanExec::try_new(Arc::clone(&self.array), plan, projection)?;
        Ok(Arc::new(scan.with_memory_limit(&state.runtime_env().memory_pool.memory_limit())))
    }
}
