//! [`FactTable`]: a table of facts about arrays, which reads no cells.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::{self, BoxStream, StreamExt};

use crate::array::failed_to;
use crate::error::Result;

/// Facts as rows. They are streamed, because there may be too many for memory, such as one per chunk.
pub trait FactTable: Debug + Send + Sync {
    /// The schema of all columns.
    fn schema(&self) -> SchemaRef;

    /// Reads the `columns`, given as indices into the schema, in this order. Dropping the stream stops the
    /// reading.
    fn read(&self, columns: &[usize]) -> BoxStream<'static, Result<RecordBatch>>;
}

/// A fact table in memory.
#[derive(Debug)]
pub struct Facts(RecordBatch);

impl Facts {
    /// Makes a table of these rows.
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
