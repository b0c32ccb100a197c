#![doc = include_str!("../README.md")]

mod append;
pub mod bytes;
mod document_text;
mod format;
mod icechunk;
mod journal;
mod reference_tables;
mod references;
mod store;
#[cfg(test)]
mod tests;
mod write;
mod zip;

use std::sync::Arc;

use gridfusion_core::Result;
use gridfusion_core::read::{Dataset, Opener};

pub use append::{ZarrTarget, listing_removal, listing_update};
pub use format::Zarr;
pub use icechunk::Icechunk;
pub use write::{ZarrBlosc, ZarrCompressor, ZarrEncoding, ZarrGroup, ZarrWriter};

/// Opens a Zarr store, references to one in JSON or Parquet, or an Icechunk repository, and reads its metadata.
///
/// An [`Opener`] has options, object stores and several formats.
///
/// # Errors
/// `Usage` if there is none; `Corrupt`, `Unsupported` or `Io` if the metadata cannot be read.
pub async fn open(location: &str) -> Result<Dataset> {
    Opener::new(vec![Arc::new(Zarr), Arc::new(Icechunk)]).open(location).await
}

/// Compiles and runs the blocks of the page about reading arrays.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/arrays.md")]
struct PageOfTheBook;
