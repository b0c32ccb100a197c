//! Where the chunks of an array come from: what every format offers to a scan.
//!
//! ```text
//!   ChunkTask ──locate──▶ StoredChunk: layers, oldest first ──fetch──▶ payloads ──▶ Tile
//!                           each: where, how encoded, in which order, which cells
//! ```
//!
//! A source says where the bytes are and never reads them itself. It need not know whether they are there,
//! or how many they are:
//!
//! - A chunk that was never written has no layers, if the source knows; otherwise a layer that
//!   [may be absent](crate::format::Layer::may_be_absent). Either way its cells are the fill value of the
//!   value's [`CellFormat`](crate::tile::CellFormat), which must have one.
//! - An object that is one chunk is [`ByteRange::Whole`](crate::format::ByteRange::Whole); its tile's
//!   length stands in for its own where memory is planned.
//! - Cells in another order than row-major, or only a part of the chunk, have a
//!   [`Placement`](crate::format::Placement); words in another order than little-endian a
//!   [`ByteOrder`](crate::format::ByteOrder).
//! - What a writer noted about values is [`Zones`]. A format that has no such notes answers `None`; chunks
//!   are then pruned by labels alone.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::{MemoryBudget, StoredChunk, Zones};
use crate::grid::{ChunkTask, Selection};
use crate::tile::Objects;

/// The stored side of an array. Values are numbered as the array's columns number them.
#[async_trait]
pub trait ChunkSource: Debug + Send + Sync {
    /// The objects that the array is stored in.
    fn objects(&self) -> &Arc<Objects>;

    /// What the writer suggests about memory.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::default()
    }

    /// Finds where `values` of the chunks of `tasks` are stored: per task, in their order, one entry per
    /// value, in their order.
    ///
    /// Many chunks are asked for at once, so that one request serves all of them where an index must be
    /// read. What is found is worth keeping: each partition asks, and so does each query.
    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>>;

    /// The zone maps of the chunks of `value`, if the writer noted any: of those that hold a cell of
    /// `selection`, with NULL as the table has it; `None` if there is nothing, it cannot be believed, or
    /// reading it costs too much beside `bytes_to_read` of payloads.
    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        let _ = (value, selection, bytes_to_read);
        None
    }
}
