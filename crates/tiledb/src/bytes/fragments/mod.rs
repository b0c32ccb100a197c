//! Fragments: the folders that writes add to an array. Each has files of tiles, and metadata with a
//! footer that gives the box of cells that the fragment covers.
//!
//! ```text
//!   footer.rs       the end of the metadata: box, file sizes, offsets of blocks; read on open
//!   fragment.rs     the fragment: which tiles it has
//!   field.rs        its fields: attributes, coordinates, times of cells; the names of their files
//!   tile_index.rs   blocks of the metadata: where each tile is; read when a query needs it
//! ```

mod field;
mod footer;
mod fragment;
mod tile_index;

pub use field::FieldSchema;
pub(super) use footer::{Footer, footer_range};
pub use fragment::Fragment;
pub(super) use fragment::{CONTENT, METADATA_FILE, TileBox, VALIDITY, VALUES};
pub(super) use tile_index::{TileIndex, block_locations, locations};
