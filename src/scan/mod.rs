//! From opened arrays to Arrow batches: grid, format and io put together. No DataFusion.
//!
//! ```text
//!   TetFile + ByteSource ──▶ GridArray: dimensions with labels, a value column, a schema
//!                                │
//!   ScanRequest ─────────▶ ScanPlan: which chunks, which cells of each, which partition   (no I/O)
//!                                │
//!                          locate, fetch, decode one chunk at a time                       (bytes)
//!                                │
//!                          Assembler: blocks of selected cells ──▶ RecordBatch
//! ```

mod array;
mod assemble;
mod cf_time;
mod drive;
mod labels;
mod opened;
mod plan;
pub mod reduce;
mod text_labels;
mod tile;
mod values;

pub use array::{Column, Dimension, GridArray, ReadOptions};
pub use assemble::{Assembler, Block, Blocks};
pub use drive::drive;
pub use labels::{LabelOrder, Labels};
pub use opened::OpenedFile;
pub use plan::{ChunkMask, ChunkTask, ScanPlan, ScanRequest, touched_chunks};
pub use tile::Tile;
pub use values::ValueColumn;
