//! Statistics of some chunks, in the form that DataFusion's pruning uses.
//!
//! Each array has one entry per chunk. NULL means that nothing is known of the chunk, which is then kept:
//!
//! ```text
//!   chunks 3     bounds["value"]        [250, NULL, 280], [310, NULL, 295]
//!                null_counts["value"]   [0, NULL, 4]
//!                cells                  [1440, 1440, 720]
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column as ColumnName, ScalarValue};

/// Statistics of some chunks, by column name. DataFusion's pruning calls a chunk a container.
#[derive(Default)]
pub(crate) struct ContainerStatistics {
    pub(crate) chunks: usize,
    /// The least and the greatest label or value of each chunk.
    pub(crate) bounds: HashMap<String, (ArrayRef, ArrayRef)>,
    /// The number of NULLs of each chunk. A chunk in which they are as many as the cells has no value.
    pub(crate) null_counts: HashMap<String, UInt64Array>,
    /// The number of cells of each chunk; `None` without statistics of a variable.
    pub(crate) cells: Option<ArrayRef>,
}

impl PruningStatistics for ContainerStatistics {
    fn min_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(least, _)| Arc::clone(least))
    }

    fn max_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(_, greatest)| Arc::clone(greatest))
    }

    fn num_containers(&self) -> usize {
        self.chunks
    }

    fn null_counts(&self, column: &ColumnName) -> Option<ArrayRef> {
        let counts = self.null_counts.get(column.name())?;
        Some(Arc::new(counts.clone()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        self.cells.clone()
    }

    // Chunks have no lists or Bloom filters of their values.
    fn contained(&self, _: &ColumnName, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
