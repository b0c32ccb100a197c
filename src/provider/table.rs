//! [`GridTable`]: one array as a table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::prune;
use super::pushdown::{self, Reach};
use super::variables::arrays_of;
use crate::array::GridArray;
use crate::error::Result as GridResult;
use crate::exec::{GridScanExec, to_datafusion};
use crate::grid::AxisSelection;
use crate::io::last_part;
use crate::options::{TetReadOptions, TileDbReadOptions};
use crate::plan::{ScanPlan, ScanRequest};
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
        Ok(Self::new(Arc::new(GridArray::side_by_side(name, vec![file], options)?)))
    }

    /// The table of an opened array.
    pub fn new(array: Arc<GridArray>) -> Self {
        Self { array }
    }

    /// The array behind the table.
    pub fn array(&self) -> &Arc<GridArray> {
        &self.array
    }

    /// What a scan with these filters reads.
    async fn request(
        &self,
        state: &dyn Session,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanRequest> {
        let mut request = ScanRequest::all(self.array.grid());
        let (mut over_axes, mut over_values) = (Vec::new(), Vec::new());
        for filter in filters {
            match pushdown::reach(filter, &self.array) {
                // Nothing is left to exclude, and nothing to evaluate that could fail.
                _ if request.selection.cells() == 0 => break,
                Reach::Axis(axis) => {
                    let candidates = &request.selection.axes()[axis];
                    let selected = pushdown::select(filter, &self.array, candidates, state)?;
                    request.selection.restrict(axis, &selected);
                }
                Reach::Axes => over_axes.push(filter.clone()),
                Reach::Values => over_values.push(filter.clone()),
                // The optimizer found out what an exact filter amounts to.
                Reach::Constant if pushdown::holds(filter, &self.array, state)? => {}
                Reach::Constant => {
                    let none = AxisSelection::from_range(self.array.grid().shape()[0], 0..0);
                    request.selection.restrict(0, &none);
                }
                Reach::Rows => return internal_err!("{filter} was pushed down but needs each row"),
            }
        }
        // Zone maps are looked at once for all that is said of values.
        for filter in over_axes.into_iter().chain(conjunction(over_values)) {
            let mask = prune::mask(&filter, &self.array, &request.selection, state).await?;
            request.masks.extend(mask);
        }
        request.limit = limit.map(|limit| limit as u64);
        request.partitions = state.config().target_partitions();
        Ok(request)
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
        let support = |filter: &&Expr| match pushdown::reach(filter, &self.array) {
            Reach::Axis(_) => TableProviderFilterPushDown::Exact,
            Reach::Axes | Reach::Values => TableProviderFilterPushDown::Inexact,
            Reach::Constant | Reach::Rows => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let request = self.request(state, filters, limit).await?;
        let plan = ScanPlan::new(self.array.grid().clone(), request).map_err(to_datafusion)?;
        let projection =
            projection.cloned().unwrap_or_else(|| (0..self.array.columns().len()).collect());
        let scan = GridScanExec::try_new(Arc::clone(&self.array), plan, projection)?;
        Ok(Arc::new(scan.with_memory_limit(&state.runtime_env().memory_pool.memory_limit())))
    }
}
