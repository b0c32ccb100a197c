//! Sources of arrays: what each format opens, and arrays put together from several places.

pub(crate) mod mosaic;
pub(crate) mod tet;
pub(crate) mod tiledb;

pub use mosaic::{FileArrays, MosaicOptions};
pub use tet::{
    ChunkInfo, ChunkList, DatasetInfo, DimensionInfo, IndexScan, StoredCodec, StoredInfo, TetReader,
};
pub use tiledb::{OpenedTileDb, TileDbView};
