//! Tables of facts about arrays: rows that are known without reading cells.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::{self, BoxStream, StreamExt};

use crate::array::failed_to;
use crate::error::Result;

/// Facts as rows, which may be too many to hold: one per chunk, for instance.
pub trait FactTable: Debug + Send + Sync {
    /// All columns.
    fn schema(&self) -> SchemaRef;

    /// Reads the columns of these numbers, in this order; whoever drops the stream ends the reading.
    fn read(&self, columns: &[usize]) -> BoxStream<'static, Result<RecordBatch>>;
}

/// A few facts that are known already.
#[derive(Debug)]
pub struct Facts(RecordBatch);

impl Facts {
    /// These rows.
    pub fn new(rows: RecordBatch) -> Self {
        Self(rows)
    }
}

impl FactTable for Facts {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn read(&self, columns: &[usize]) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = self.0.project(columns).map_err(failed_to("make rows of facts"));
        stream::iter([rows]).boxed()
    }
}
