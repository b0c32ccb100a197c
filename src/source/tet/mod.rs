//! `.tet` files and packages of them as arrays.

mod attributes;
mod chunk_list;
mod chunk_table;
mod dataset;
mod describe;
mod dimension;
mod format;
mod index_scan;
mod info;
mod info_table;
mod package;
mod reader;
mod trusted_zones;
mod verify;

pub use chunk_list::{ChunkInfo, ChunkList};
pub use dataset::open_dataset;
pub(crate) use format::Tet;
pub use index_scan::IndexScan;
pub use info::{DatasetInfo, DimensionInfo, StoredCodec, StoredInfo, dataset_info, dimension_info};
pub use reader::TetReader;
pub use verify::verify;
