//! [`GridTable`]: the DataFusion table provider of one array.

use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchemaRef, not_impl_err};
use datafusion::error::Result;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::inserts::insert_plan;
use super::merges::merge_plan;
use crate::array::GridArray;
use crate::error::Result as GridResult;
use crate::exec::GridScanExec;
use crate::exec::pruning::{FilterScope, planning};
use crate::plan::ScanPlan;
use crate::source::{FileArrays, MosaicOptions, TableOrigin};

/// One array as a table: a row per cell, a column per dimension, and a column per variable.
///
/// Filters are pushed down. A predicate on one dimension is exact: the scan reads only the chunks it selects,
/// and no row filter remains. Predicates on several dimensions, or on variables with chunk statistics, skip
/// chunks.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOpener, ArrayOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = SessionContext::new();
/// let options = ArrayOptions::default().with_dataset("temperature");
/// let table = ArrayOpener::from_session(&ctx.state()).table("examples/data/stations.tet", None, &options).await?;
/// assert_eq!(table.as_grid().map(|grid| grid.shape()), Some(vec![1440, 6]));
/// ctx.register_table("temperature", table.into_provider())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GridTable {
    /// The array, which is opened again when rows are inserted.
    array: Arc<RwLock<Arc<GridArray>>>,
    /// `None` if the caller opened the array.
    origin: Option<Arc<TableOrigin>>,
}

impl GridTable {
    /// Makes a table of the variables of one file.
    pub(super) fn from_file(file: FileArrays, options: &MosaicOptions) -> GridResult<Self> {
        Ok(Self::new(Arc::new(file.into_array(options)?)))
    }

    /// Makes a table of an opened array, without an origin.
    pub fn new(array: Arc<GridArray>) -> Self {
        Self { array: Arc::new(RwLock::new(array)), origin: None }
    }

    /// Sets the origin of the table.
    #[must_use]
    pub(super) fn with_origin(self, origin: TableOrigin) -> Self {
        Self { origin: Some(Arc::new(origin)), ..self }
    }

    /// The locations, format and options that open the table again in another process. `None` if
    /// [`GridTable::new`] made the table.
    pub fn origin(&self) -> Option<&TableOrigin> {
        self.origin.as_deref()
    }

    /// The number of positions along each axis.
    pub fn shape(&self) -> Vec<u64> {
        self.array().grid().shape().to_vec()
    }

    /// The array behind the table.
    pub fn array(&self) -> Arc<GridArray> {
        Arc::clone(&self.array.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another array into the place of the table's, with the same columns.
    pub(super) fn replace(&self, array: Arc<GridArray>) {
        *self.array.write().unwrap_or_else(PoisonError::into_inner) = array;
    }
}

#[async_trait]
impl TableProvider for GridTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.array().schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let array = self.array();
        let support = |filter: &&Expr| FilterScope::new(filter, &array).pushdown();
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Labels and chunk statistics decide here which chunks to read. No payload is read before the plan
        // runs.
        let array = self.array();
        let request = planning::request(&array, filters, limit, state).await?;
        let plan = ScanPlan::new(array.grid().clone(), request)?;
        let projection =
            projection.cloned().unwrap_or_else(|| (0..array.columns().len()).collect());
        let scan = GridScanExec::try_new(array, plan, projection)?.with_origin(self.origin.clone());
        Ok(Arc::new(scan.with_memory_limit(&state.runtime_env().memory_pool.memory_limit())))
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        insert_plan(self, state, input, op).await
    }

    async fn merge_into(
        &self,
        state: &dyn Session,
        source: Arc<dyn ExecutionPlan>,
        schema: DFSchemaRef,
        on: Expr,
        clauses: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        merge_plan(self, state, source, &schema, on, clauses).await
    }

    async fn delete_from(&self, _: &dyn Session, _: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!("DELETE: a cell of an array stays; UPDATE sets its variables to NULL")
    }
}
