//! TileDB arrays as tables.

mod reader;
mod verify;

pub use reader::{OpenedTileDb, TileDbView};
