#![doc = include_str!("../README.md")]

pub mod bytes;
mod chunks;
mod columns;
mod describe;
mod described_array;
mod fact_rows;
mod format;
mod group;
mod known_attributes;
mod labels;
mod members;
mod open_settings;
mod reader;
mod sparse;
mod verify;
mod view;
mod write;

use std::sync::Arc;

use gridfusion_core::Result;
use gridfusion_core::read::{Dataset, Opener};

pub use format::TileDb;
pub use reader::TileDbReader;
pub use verify::verify;
pub use view::TileDbView;
pub use write::{TileDbEncoding, TileDbFilter, TileDbTarget, TileDbWriter};

/// Opens a TileDB array, group or folder of arrays, and reads its metadata.
///
/// An [`Opener`] has options, object stores and several formats.
///
/// # Errors
/// `Usage` if there is none; `Corrupt`, `Unsupported` or `Io` if the metadata cannot be read.
pub async fn open(location: &str) -> Result<Dataset> {
    Opener::new(vec![Arc::new(TileDb)]).open(location).await
}
