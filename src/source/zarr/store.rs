//! An opened Zarr store: its metadata, and the machine that finds chunks.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::StoredChunk;
use crate::format::hierarchy::Hierarchy;
use crate::format::zarr::{OpenZarr, ZarrStore};
use crate::source::hierarchy::VariableStore;
use crate::source::place::Place;
use crate::tile::{Objects, drive};

/// An opened store.
#[derive(Debug)]
pub(super) struct ZarrReader {
    store: ZarrStore,
    objects: Arc<Objects>,
}

impl ZarrReader {
    /// Reads the metadata of all arrays in the folder at `place`.
    ///
    /// # Errors
    /// `Usage` if it is not a Zarr store; `Corrupt` if its root cannot be parsed.
    pub(super) async fn open(place: &Place) -> Result<Self> {
        let objects = Arc::new(Objects::many(place.folder()?));
        let store = drive(OpenZarr::new(), &objects).await?;
        Ok(Self { store, objects })
    }
}

#[async_trait]
impl VariableStore for ZarrReader {
    fn hierarchy(&self) -> &Hierarchy {
        self.store.hierarchy()
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        drive(self.store.locate(variable, chunks)?, &self.objects).await
    }
}
