//! Fragments: the folders that writes add to an array. Each has files of tiles, and metadata with a
//! footer that gives the box of cells that the fragment covers.

mod footer;
mod fragment;
mod tile_index;

pub(super) use footer::{Footer, footer_range};
pub use fragment::Fragment;
pub(super) use fragment::{CONTENT, METADATA_FILE, TileBox, VALIDITY, VALUES};
pub(super) use tile_index::{TileIndex, block_locations, locations};
