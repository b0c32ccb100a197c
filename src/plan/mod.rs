//! Plans: what a scan will read, in which order, and how rows are put together from tiles.
//!
//! ```text
//!   ScanRequest ──▶ ScanPlan: chunks, partitions, orders ──▶ Pieces ──▶ Assembler ──▶ RecordBatch
//!                   (a plain value; no I/O)
//! ```

mod assemble;
mod cut;
mod order;
mod pieces;
mod scan_plan;

pub use assemble::{Assembler, Block, Blocks};
pub use order::SlabShape;
pub use pieces::{Piece, Pieces};
pub use scan_plan::{ChunkMask, Pruned, ScanPlan, ScanRequest, touched_chunks};
