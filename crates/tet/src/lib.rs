#![doc = include_str!("../README.md")]

mod attributes;
pub mod bytes;
mod chunk_list;
mod chunk_table;
mod dataset;
mod describe;
mod dimension;
mod format;
mod index_scan;
mod info;
mod known_dataset;
mod package;
#[cfg(test)]
mod plain_group;
mod reader;
mod trusted_zones;
mod verify;
mod write;

use std::sync::Arc;

use gridfusion_core::Result;
use gridfusion_core::read::{Dataset, Opener};

pub use chunk_list::{ChunkInfo, ChunkList};
pub use dataset::open_dataset;
pub use format::Tet;
pub use index_scan::IndexScan;
pub use info::{DatasetInfo, DimensionInfo, StoredCodec, StoredInfo, dataset_info, dimension_info};
pub use reader::TetReader;
pub use verify::verify;
pub use write::{TetEncoding, TetPackageTarget, TetPackageWriter, TetWriter};

/// Opens a `.tet` file or package, and reads its metadata.
///
/// An [`Opener`] has options, object stores and several formats.
///
/// # Errors
/// `Usage` if there is none; `Corrupt`, `Unsupported` or `Io` if the metadata cannot be read.
pub async fn open(location: &str) -> Result<Dataset> {
    Opener::new(vec![Arc::new(Tet)]).open(location).await
}
