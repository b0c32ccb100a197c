//! Scan plans: which chunks a scan reads, in which order, and how tiles become rows.
//!
//! ```text
//!   ScanRequest ──▶ ScanPlan: chunks, partitions, orders ──▶ Pieces ──▶ Assembler ──▶ RecordBatch
//!                   (a plain value; no I/O)
//! ```
//!
//! A plan holds the selection and the touched chunks per axis, not their cross product, so a plan over a million chunks
//! is small. It holds no handles: tests compare plans, and `EXPLAIN` prints them.

mod assemble;
mod columns;
mod masks;
mod offset;
mod order;
mod partitions;
mod parts;
mod pieces;
mod pruned_chunks;
mod scan_plan;
mod shares;
mod task;
#[cfg(test)]
mod tests;
mod touched;

pub use assemble::{Assembler, Block, RowBlocks};
pub use columns::ChunkColumns;
pub use masks::ChunkMask;
pub use order::SlabShape;
pub use parts::PlanParts;
pub use pieces::{Piece, Pieces};
pub use pruned_chunks::{Account, PrunedChunks};
pub use scan_plan::{ScanPlan, ScanRequest};
pub use task::{TaskNumber, TaskRange};
pub use touched::{TouchedCounts, touched_chunks};
