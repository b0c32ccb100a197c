//! The Zarr format as an [`ArrayFormat`].

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;

use super::reference_tables::ReferenceTables;
use super::references::ReferenceFile;
use super::store::{ZarrReader, read_metadata};
use super::zip::ZippedStore;
use crate::bytes::{is_references, is_zarr, is_zipped_zarr};
use gridfusion_cf::conventions::{HierarchyGroup, HierarchyView, OPTIONS, VariableStore};
use gridfusion_core::Result;
use gridfusion_core::format::Entry;
use gridfusion_core::options::{OptionInfo, ResolvedOptions};
use gridfusion_core::source::Place;
use gridfusion_core::source::{ArrayFormat, ArrayGroup, Ending, RecognisedFormat};
use gridfusion_core::tile::Objects;

/// Folders with Zarr groups and arrays, of versions 2 and 3, archives of such folders, and references to such in JSON or Parquet.
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
        const ENDINGS: &[Ending] = &[
            Ending::new(".zarr", true, Some("a Zarr store")),
            Ending::new(".zarr.zip", false, Some("a zipped Zarr store")),
            // Most archives hold something else.
            Ending::new(".zip", false, None),
        ];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        is_zarr(entries).then(|| RecognisedFormat::new("a Zarr store", false))
    }

    fn probe_file(&self, head: &[u8]) -> bool {
        is_references(head) || is_zipped_zarr(head)
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let view = HierarchyView::new(options, &self.read_defaults());
        let store: Arc<dyn VariableStore> = match kind(place) {
            Kind::Archive => Arc::new(ZippedStore::open(place).await?),
            Kind::References => Arc::new(ReferenceFile::open(place).await?),
            Kind::Folder => open_folder(place).await?,
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

/// The forms of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    References,
    Archive,
}

/// Returns the form of the store at a place. In an object store, its name decides.
fn kind(place: &Place) -> Kind {
    let name = place.path().to_ascii_lowercase();
    let is_named = name.ends_with(".zip");
    let Some(path) = place.local_path() else {
        return match name.ends_with(".json") {
            true => Kind::References,
            false if is_named => Kind::Archive,
            false => Kind::Folder,
        };
    };
    if !path.is_file() {
        return Kind::Folder;
    }
    let mut head = [0; ARCHIVE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let is_archive = is_named || (read.is_ok() && head == ARCHIVE);
    if is_archive { Kind::Archive } else { Kind::References }
}

/// The first bytes of an archive.
const ARCHIVE: [u8; 4] = *b"PK\x03\x04";
