//! The Zarr format as an [`ArrayFormat`].

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;

use super::reference_tables::ReferenceTables;
use super::references::ReferenceFile;
use super::store::{ZarrReader, read_metadata};
use super::zip::{ZippedStore, is_zipped_store};
use crate::bytes::{has_reference_tables, is_references, is_zarr, is_zip, is_zipped_zarr};
use gridfusion_cf::conventions::{HierarchyGroup, HierarchyView, OPTIONS, VariableStore};
use gridfusion_core::format::{ByteRange, Entry, Location};
use gridfusion_core::io::is_not_found;
use gridfusion_core::options::{OptionInfo, ResolvedOptions};
use gridfusion_core::source::Place;
use gridfusion_core::source::{ArrayFormat, ArrayGroup, Ending, RecognisedFormat};
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};

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
            // Folders of references, but most of that name are Parquet files of rows.
            Ending::new(".parq", true, None),
        ];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        is_zarr(entries).then(|| RecognisedFormat::new("a Zarr store", false))
    }

    fn probe_file(&self, head: &[u8]) -> bool {
        is_references(head) || is_zipped_zarr(head)
    }

    /// The metadata in an archive may lie behind many chunks. References in Parquet are recognised by their documents.
    async fn probe_place(&self, place: &Place, head: Option<&[u8]>) -> Result<bool> {
        if head.is_none() && kind(place) == Kind::Folder {
            return are_reference_tables(place).await;
        }
        Ok(head.is_none_or(is_zip) && is_zipped_store(place).await?)
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

    /// Only folders of metadata and chunks are written.
    async fn check_takes_rows(&self, place: &Place) -> Result<()> {
        let what = match kind(place) {
            Kind::Archive => "new rows in a zip file, which is only read; unpack it",
            Kind::References => "new rows in references in JSON, which are only read",
            Kind::Folder if are_reference_tables(place).await? => {
                "new rows in references in Parquet, which are only read"
            }
            Kind::Folder => return Ok(()),
        };
        let separator = if what.contains(';') { ", or" } else { ";" };
        let message = format!("{what}{separator} COPY it to a new Zarr store");
        Err(Error::unsupported(message).in_file(place.location()))
    }
}

/// Whether the folder at a place has references in Parquet in place of chunks.
async fn are_reference_tables(place: &Place) -> Result<bool> {
    let folder = match place.folder() {
        Ok(folder) => folder,
        // The append tells that there is nothing.
        Err(error) if is_not_found(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let objects = Objects::many(folder);
    let documents = ["zarr.json", ".zmetadata"].map(|it| Location::new(it, ByteRange::Whole));
    let read = objects.read_if_present(&documents).await?;
    Ok(match read.as_slice() {
        [None, Some(consolidated)] => has_reference_tables(consolidated),
        _ => false,
    })
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
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let is_archive = is_named || (read.is_ok() && is_zip(&head));
    if is_archive { Kind::Archive } else { Kind::References }
}
