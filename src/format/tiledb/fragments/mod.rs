//! Fragments: each write leaves a folder with files of tiles and a footer, which says what the fragment
//! covers.

mod footer;
mod fragment;
mod tile_index;

pub(super) use footer::{Footer, footer_range};
pub use fragment::Fragment;
pub(super) use fragment::{CONTENT, METADATA_FILE, TileBox, VALIDITY, VALUES};
pub(super) use tile_index::{TileIndex, block_locations, locations};
