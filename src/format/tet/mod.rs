//! The Tetration `.tet` file format, layout version 1. The bytes are drawn in `docs/format-tet.md`.
//!
//! ```text
//!  0          32                        aligned to 8                               end of file
//!  ├ superblock ┼ dataset directory ┼ chunk index (TIDX) ┼ payloads … ┼ spills, JSON, THST tail ┤
//!        │              │                    │                  ▲                │
//!   superblock.rs   directory.rs         index.rs ──────────────┘            footer.rs
//!                                       locate.rs                     metadata.rs, zone.rs
//! ```
//!
//! [`Open`] reads the superblock, the directory, the index header and the footer, so opening costs
//! O(datasets). The index itself stays where it is: [`TetFile::locate`] reads just the rows of the
//! chunks that a query wants.
//!
//! A package is a folder of such files, the generations of one; [`OpenPackage`] finds the current one.

mod directory;
mod footer;
mod index;
mod labels;
mod locate;
mod metadata;
mod open;
mod package;
mod superblock;
mod zone;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub use directory::Dataset;
pub use index::MemoryBudget;
pub use labels::{DimSpec, LabelSource};
pub use locate::Locate;
pub use metadata::DatasetMetadata;
pub use open::Open;
pub use package::{Generation, OpenPackage};
pub use zone::{ReadZoneMaps, ZoneMaps};

use crate::error::{Error, Result};
use crate::format::Location;
use metadata::Metadata;

/// An opened `.tet` file: everything but the index rows and the payloads.
#[derive(Debug)]
pub struct TetFile {
    datasets: Vec<Dataset>,
    /// Ids by name; of datasets with one name, the first.
    by_name: HashMap<String, usize>,
    metadata: Metadata,
    /// Datasets that label the axes of others through a `coordinates` attribute.
    listed_coordinates: HashSet<usize>,
    /// The `source` of each history event, in file order.
    history_sources: Vec<String>,
    index: index::Index,
    /// Payloads end at or before this byte.
    payload_end: u64,
    zone_maps_at: Option<Range<u64>>,
    warnings: Vec<String>,
    /// Where each chunk's row is, built on the first surprise in the index.
    row_map: OnceLock<Arc<index::RowMap>>,
}

impl TetFile {
    /// The datasets in directory order; a dataset's id is its place here.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// The id of the dataset called `name`; of several, the first.
    pub fn dataset_id(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Attributes and axis metadata of a dataset, empty where the footer has none.
    pub fn metadata_of(&self, dataset: usize) -> &DatasetMetadata {
        self.metadata.of(self.datasets[dataset].name())
    }

    /// Whether values still carry CF packing (`scale_factor`, `add_offset`).
    ///
    /// The reference converter decodes packed floats of NetCDF and HDF5 but keeps the attributes; it
    /// copies Zarr data undecoded. Integers are never decoded.
    pub fn is_packed(&self, dataset: usize) -> bool {
        let metadata = self.metadata_of(dataset);
        let declared =
            ["scale_factor", "add_offset"].iter().any(|key| metadata.attrs.contains_key(*key));
        let integer = self.datasets[dataset].element().is_ok_and(|element| element.is_integer());
        let from_zarr = self.history_sources.iter().any(|source| source.starts_with("zarr"));
        declared && (integer || from_zarr)
    }

    /// Rows of the chunk index: stored chunks of all datasets.
    pub fn index_rows(&self) -> u64 {
        self.index.row_count
    }

    /// How much memory the writer suggests for reading.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.index.memory_budget
    }

    /// Where the zone maps are, if the footer points at any.
    pub fn zone_maps_at(&self) -> Option<Range<u64>> {
        self.zone_maps_at.clone()
    }

    /// What is odd about the file, though it can be read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A machine that finds where `chunks` (row-major chunk numbers) of `dataset` are stored, in
    /// the order given.
    ///
    /// # Errors
    /// Those of [`Dataset::grid`], for a dataset that cannot be read at all.
    pub fn locate(self: &Arc<Self>, dataset: usize, chunks: Vec<u64>) -> Result<Locate> {
        let layout = self.datasets[dataset].grid()?.clone();
        let element = self.datasets[dataset].element()?;
        Ok(Locate::new(Arc::clone(self), dataset, layout, element, chunks))
    }

    /// A machine that reads the zone maps of `dataset`, if the file has any.
    ///
    /// # Errors
    /// Those of [`Dataset::grid`].
    pub fn read_zone_maps(&self, dataset: usize) -> Result<Option<ReadZoneMaps>> {
        let Some(range) = self.zone_maps_at() else { return Ok(None) };
        let at = Location { object: "".into(), range };
        self.zone_maps_of(dataset, at, None).map(Some)
    }

    /// A machine that reads the zone maps of `dataset` from the zone file `at` of a package, which must
    /// be about the `generation` that this file is.
    ///
    /// # Errors
    /// `Corrupt` if the zone file is longer than what can be said of this file's chunks; else those of
    /// [`Dataset::grid`].
    pub fn read_zone_file(
        &self,
        dataset: usize,
        at: Location,
        generation: u64,
    ) -> Result<ReadZoneMaps> {
        /// More than what is said of one chunk with eight axes, and more than what comes before.
        const MOST_PER_CHUNK: u64 = 1024;
        let (len, chunks) = (at.len(), self.index_rows());
        if len > chunks.saturating_add(1).saturating_mul(MOST_PER_CHUNK) {
            let message = format!("{len} bytes, which is too much for {chunks} chunks");
            return Err(Error::corrupt("zone maps", 0, message).in_file(&at.object));
        }
        self.zone_maps_of(dataset, at, Some(generation))
    }

    fn zone_maps_of(
        &self,
        dataset: usize,
        at: Location,
        generation: Option<u64>,
    ) -> Result<ReadZoneMaps> {
        let grid = self.datasets[dataset].grid()?.clone();
        let element = self.datasets[dataset].element()?;
        Ok(ReadZoneMaps::new(at, generation, dataset, grid, element))
    }
}

/// An error about a dataset that cannot be read while the rest of the file can.
fn bad_dataset(name: &str, error: &Error) -> Error {
    Error::unsupported(format!("dataset \"{name}\" cannot be read: {error}"))
}
