//! [`SparseTable`]: the DataFusion table provider of one sparse array.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::array::SparseArray;
use crate::exec::SparseScanExec;
use crate::exec::sparse::{planning, pushdown};
use crate::source::TableOrigin;

/// One sparse array as a table: a row per visible cell, a column per dimension, and a column per variable.
///
/// The scan evaluates all filters itself. Filters over dimensions also skip fragments and tiles by their
/// rectangles, and filters over variables skip tiles by their statistics.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use gridfusion::{ArrayOpener, ArrayOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = SessionContext::new();
/// let options = ArrayOptions::default();
/// let table = ArrayOpener::from_session(&ctx.state()).table("examples/data/ships", None, &options).await?;
/// assert_eq!(table.as_sparse().map(|table| table.array().rank()), Some(2));
/// ctx.register_table("ships", table.into_provider())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SparseTable {
    array: Arc<SparseArray>,
    /// `None` if the caller opened the array.
    origin: Option<Arc<TableOrigin>>,
}

impl SparseTable {
    /// Makes a table of an opened array, without an origin.
    pub fn new(array: Arc<SparseArray>) -> Self {
        Self { array, origin: None }
    }

    /// Sets the origin of the table.
    #[must_use]
    pub(super) fn with_origin(self, origin: TableOrigin) -> Self {
        Self { origin: Some(Arc::new(origin)), ..self }
    }

    /// The locations, format and options that open the table again in another process. `None` if
    /// [`SparseTable::new`] made the table.
    pub fn origin(&self) -> Option<&TableOrigin> {
        self.origin.as_deref()
    }

    /// The array behind the table.
    pub fn array(&self) -> &Arc<SparseArray> {
        &self.array
    }
}

#[async_trait]
impl TableProvider for SparseTable {
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
        Ok(filters.iter().map(|filter| pushdown(filter)).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Rectangles and statistics decide here which tiles to read. No cell is read before the plan runs.
        let plan = planning::plan(&self.array, filters, limit, state).await?;
        let columns = self.array.schema().fields().len();
        let projection = projection.cloned().unwrap_or_else(|| (0..columns).collect());
        let scan = SparseScanExec::try_new(Arc::clone(&self.array), plan, projection)?;
        Ok(Arc::new(scan.with_origin(self.origin.clone())))
    }
}
