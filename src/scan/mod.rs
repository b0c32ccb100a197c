//! From opened arrays to Arrow batches: grid, format and io put together. No DataFusion.
//!
//! ```text
//!   a format + Objects ──▶ GridArray: dimensions with labels, values, a schema
//!                                │
//!   ScanRequest ─────────▶ ScanPlan: which chunks, which cells of each, which partition   (no I/O)
//!                                │
//!                          locate, fetch, decode one chunk at a time                       (bytes)
//!                                │
//!                          Assembler: blocks of selected cells ──▶ RecordBatch
//! ```

mod array;
mod arrow_error;
mod assemble;
mod cf_time;
mod chunk_list;
mod counter;
mod index_scan;
mod labels;
mod layers;
mod mosaic;
mod objects;
mod opened;
mod package;
mod pieces;
mod plan;
pub mod reduce;
mod remarks;
mod runs;
mod source;
mod tet_info;
mod text_labels;
mod tile;
mod tiledb;
mod trusted_zones;
mod values;
pub mod verify;

pub use array::{Column, Dimension, GridArray, ReadOptions, Workspace};
pub use assemble::{Assembler, Block, Blocks};
pub use chunk_list::{ChunkInfo, ChunkList};
pub use counter::Counter;
pub use index_scan::IndexScan;
pub use labels::{LabelOrder, Labels};
pub use layers::CellFormat;
pub use mosaic::{FileArrays, MosaicOptions};
pub(crate) use objects::AT_ONCE;
pub use objects::{Objects, drive};
pub use opened::OpenedFile;
pub use pieces::{Piece, Pieces};
pub use plan::{ChunkMask, ChunkTask, Pruned, ScanPlan, ScanRequest, SlabShape, touched_chunks};
pub use tet_info::{DatasetInfo, DimensionInfo, StoredCodec, StoredInfo};
pub use tile::Tile;
pub(crate) use tiledb::last_part;
pub use tiledb::{OpenedTileDb, TileDbView};
pub use values::{CellColumn, CellKind, Encoding, NumberColumn, Scalar, Temporal, ValueColumn};
