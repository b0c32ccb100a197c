//! Indexes of chunks: where a dataset stores its chunks.
//!
//! Format: HDF5 File Format Specification version 3.0, VII "Appendix C: Types of Indexes for Dataset Chunks", and
//! III.A for B-trees. A query looks up only the chunks that are wanted, and never reads a whole index.

mod boxes;
pub(super) mod btree1;
pub(super) mod btree2;
mod chunk_index;
mod lookup;
mod range;

pub(super) use boxes::{ChunkBox, boxes};
pub(super) use chunk_index::{ChunkIndex, IndexKind};
pub(super) use lookup::lookup;

/// Where a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The HDF5 address of the first byte.
    pub(super) address: u64,
    /// The number of stored bytes; `None` if the chunk has no filters, and so has the bytes of its cells.
    pub(super) size: Option<u64>,
    /// A bit per filter that was not applied.
    pub(super) skipped: u32,
}
