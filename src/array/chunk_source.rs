//! Where the chunks of an array come from: what every format offers to a scan.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::{MemoryBudget, StoredChunk, Zones};
use crate::grid::{ChunkTask, Selection};
use crate::tile::Objects;

/// The stored side of an array. Values are numbered as the array's columns number them.
#[async_trait]
pub(crate) trait ChunkSource: Debug + Send + Sync {
    /// The objects that the array is stored in.
    fn objects(&self) -> &Arc<Objects>;

    /// What the writer suggests about memory.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::default()
    }

    /// Finds where `values` of the chunks of `tasks` are stored: per task one entry per value.
    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>>;

    /// The zone maps of the chunks of `value`, at least those that hold a cell of
    /// `selection`, with NULL as the table has it; `None` if there is nothing, it cannot be believed, or
    /// reading it costs too much beside `bytes_to_read` of payloads.
    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>>;
}
