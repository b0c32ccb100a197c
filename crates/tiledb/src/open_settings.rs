//! Opening of TileDB arrays with the options of a table.
//!
//! A group opens many arrays with the same options, so they are taken apart once.

use super::reader::{TileDbReader, open_options};
use super::view::TileDbView;
use crate::bytes::OpenOptions;
use gridfusion_core::Result;
use gridfusion_core::options::ResolvedOptions;
use gridfusion_core::source::OpenedArray;
use gridfusion_core::source::Place;

/// The settings for opening arrays and for showing them as tables.
#[derive(Debug, Clone)]
pub(super) struct OpenSettings {
    pub(super) open: OpenOptions,
    pub(super) view: TileDbView,
}

impl OpenSettings {
    /// Takes the settings from the options. Fails if the encryption key has the wrong length.
    pub(super) fn new(options: &ResolvedOptions) -> Result<Self> {
        Ok(Self { open: open_options(options)?, view: TileDbView::new(options) })
    }

    /// Opens the array at a place.
    pub(super) async fn open(&self, place: &Place) -> Result<TileDbReader> {
        TileDbReader::open(place.folder()?, self.open.clone()).await
    }

    /// Opens the array at a place as a table.
    pub(super) async fn array(&self, place: &Place) -> Result<OpenedArray> {
        self.open(place).await?.array(&self.view)
    }
}
