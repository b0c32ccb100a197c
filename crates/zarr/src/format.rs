//! The Zarr format as an [`ArrayFormat`].

use std::sync::Arc;

use async_trait::async_trait;

use super::reference_tables::ReferenceTables;
use super::references::ReferenceFile;
use super::store::{ZarrReader, read_metadata};
use crate::bytes::{is_references, is_zarr};
use gridfusion_cf::conventions::{HierarchyGroup, HierarchyView, OPTIONS, VariableStore};
use gridfusion_core::Result;
use gridfusion_core::format::Entry;
use gridfusion_core::options::{OptionInfo, ResolvedOptions};
use gridfusion_core::source::Place;
use gridfusion_core::source::{ArrayFormat, ArrayGroup, Ending, RecognisedFormat};
use gridfusion_core::tile::Objects;

/// Folders with Zarr groups and arrays, of versions 2 and 3, and references to such in JSON or Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zarr;

#[async_trait]
impl ArrayFormat for Zarr {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn title(&self) -> &'static str {
        "Zarr"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &["Zarr store"]
    }

    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] = &[Ending::new(".zarr", true, Some("a Zarr store"))];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        is_zarr(entries).then(|| RecognisedFormat::new("a Zarr store", false))
    }

    fn probe_file(&self, head: &[u8]) -> bool {
        is_references(head)
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let view = HierarchyView::new(options, &self.read_defaults());
        let store: Arc<dyn VariableStore> = match is_file(place) {
            true => Arc::new(ReferenceFile::open(place).await?),
            false => open_folder(place).await?,
        };
        Ok(Arc::new(HierarchyGroup::new(place.location(), store, view)?))
    }
}

/// Opens the store in a folder, or the references in Parquet to one.
pub(super) async fn open_folder(place: &Place) -> Result<Arc<dyn VariableStore>> {
    let objects = Arc::new(Objects::many_rewritten(place.folder()?));
    let store = read_metadata(&objects, &place.documents()).await?;
    Ok(match store.record_size() {
        Some(rows) => Arc::new(ReferenceTables::try_new(place, objects, store, rows)?),
        None => Arc::new(ZarrReader::try_new(store, objects).await?),
    })
}

/// Whether a place is a reference file rather than a store. In an object store, its name decides.
fn is_file(place: &Place) -> bool {
    match place.local_path() {
        Some(path) => path.is_file(),
        None => place.path().to_ascii_lowercase().ends_with(".json"),
    }
}
