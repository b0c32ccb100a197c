//! `.tet` files and packages of them as arrays.

mod chunk_list;
mod index_scan;
mod info;
mod package;
mod reader;
mod trusted_zones;
mod verify;

pub use chunk_list::{ChunkInfo, ChunkList};
pub use index_scan::IndexScan;
pub use info::{DatasetInfo, DimensionInfo, StoredCodec, StoredInfo};
pub use reader::TetReader;
