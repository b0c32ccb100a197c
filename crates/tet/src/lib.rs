//! `.tet` files and packages of them as arrays.
//!
//! The bytes are parsed in `crate::bytes`. This module reads them, and makes tables, facts and
//! reports of them.
//!
//! ```text
//!   format ──▶ reader ──┬─▶ dataset, dimension, trusted_zones ──▶ GridArray           queries
//!              package  ├─▶ info, chunk_list, index_scan ──▶ info_table, chunk_table  tet_info, tet_chunks
//!                       │                               └──▶ describe                 gridfusion info
//!                       ├─▶ attributes                                                tet_attributes
//!                       └─▶ verify                                                    gridfusion verify
//! ```
//!
//! A dataset is named by its *id*, its number in the directory, because names may repeat.

pub mod bytes;
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
#[cfg(test)]
mod plain_group;
mod reader;
mod trusted_zones;
mod verify;

pub use chunk_list::{ChunkInfo, ChunkList};
pub use dataset::open_dataset;
pub use format::Tet;
pub use index_scan::IndexScan;
pub use info::{DatasetInfo, DimensionInfo, StoredCodec, StoredInfo, dataset_info, dimension_info};
pub use reader::TetReader;
pub use verify::verify;
