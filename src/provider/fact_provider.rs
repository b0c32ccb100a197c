//! [`FactProvider`]: serves a [`FactTable`] to DataFusion as a stream of batches.
//!
//! Table functions such as `array_chunks` return it. It pushes down the projection, so a fact that is
//! expensive to read is only read if the query has its column. It pushes down no filters: facts are few
//! compared with cells.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::StreamExt;

use crate::source::FactTable;

/// A [`FactTable`] as a DataFusion table. A `LIMIT` stops reading it early.
#[derive(Debug)]
pub(super) struct FactProvider(pub(super) Arc<dyn FactTable>);

#[async_trait]
impl TableProvider for FactProvider {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.0.schema();
        let columns = projection.cloned().unwrap_or_else(|| (0..all.fields().len()).collect());
        let schema: SchemaRef = Arc::new(Schema::project(&all, &columns)?);
        let rows = FactRows { facts: Arc::clone(&self.0), columns, schema: Arc::clone(&schema) };
        // One partition, because facts come from a single pass over the metadata.
        let rows: Vec<Arc<dyn PartitionStream>> = vec![Arc::new(rows)];
        Ok(Arc::new(StreamingTableExec::try_new(schema, rows, None, None, false, limit)?))
    }
}

/// The only partition of the scan: selected columns of the facts.
#[derive(Debug)]
struct FactRows {
    facts: Arc<dyn FactTable>,
    /// Indices into the schema of the facts, in the order of the projection.
    columns: Vec<usize>,
    /// The schema of `columns`.
    schema: SchemaRef,
}

impl PartitionStream for FactRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches =
            self.facts.read(&self.columns).map(|rows| rows.map_err(DataFusionError::from));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
