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

mod check_footer;
mod check_index;
mod check_zones;
mod directory;
mod footer;
mod index;
mod labels;
mod limits;
mod locate;
mod metadata;
mod open;
mod package;
mod read_index;
mod superblock;
mod zone;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub use check_footer::{CheckFooter, CheckedFooter};
pub use check_index::{CheckIndex, CheckedRow, RowField};
pub use check_zones::{CheckZoneMaps, CheckedZoneMaps, ZoneFault};
pub use directory::Dataset;
pub use index::MemoryBudget;
pub use labels::{DimSpec, LabelSource};
pub use locate::Locate;
pub use metadata::{DatasetMetadata, HistoryEvent};
pub use open::Open;
pub use package::{Generation, OpenPackage, is_package};
pub use read_index::{IndexEntry, ReadIndex};
pub use zone::{ReadAllZoneMaps, ReadZoneMaps, ZoneMaps};

use crate::error::{Error, Result};
use crate::format::Location;
use metadata::Metadata;
use zone::{Target, ZoneText};

/// An opened `.tet` file: everything but the index rows and the payloads.
#[derive(Debug)]
pub struct TetFile {
    datasets: Vec<Dataset>,
    /// Ids by name; of datasets with one name, the first.
    by_name: HashMap<String, usize>,
    metadata: Metadata,
    /// Datasets that label the axes of others through a `coordinates` attribute.
    listed_coordinates: HashSet<usize>,
    history: Vec<HistoryEvent>,
    index: index::Index,
    /// Payloads end at or before this byte.
    payload_end: u64,
    zone_maps_at: Option<Range<u64>>,
    /// The end of the footer, if there is one.
    tail: Option<footer::Tail>,
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
        let from_zarr = self.history.iter().any(|event| event.source.starts_with("zarr"));
        declared && (integer || from_zarr)
    }

    /// What the writer says of the file itself, such as the tool that it is.
    pub fn file_attributes(&self) -> &BTreeMap<String, String> {
        &self.metadata.file
    }

    /// How the file came to be, in the order of the footer.
    pub fn history(&self) -> &[HistoryEvent] {
        &self.history
    }

    /// Rows of the chunk index: stored chunks of all datasets.
    pub fn index_rows(&self) -> u64 {
        self.index.row_count
    }

    /// The part of the file where payloads may be.
    pub fn payload_area(&self) -> Range<u64> {
        let index = self.index.bytes_of(0..self.index.row_count);
        index.end.max(superblock::SUPERBLOCK_LEN)..self.payload_end
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
        let grid = self.datasets[dataset].grid()?.clone();
        Ok(Locate::new(Arc::clone(self), dataset, grid, chunks))
    }

    /// A machine that reads these `rows` of the chunk index, those of one `dataset` or of all that can
    /// be read. Rows beyond the last are none.
    pub fn read_index(self: &Arc<Self>, rows: Range<u64>, dataset: Option<usize>) -> ReadIndex {
        ReadIndex::new(Arc::clone(self), rows, dataset)
    }

    /// A machine that reads these `rows` of the chunk index with all that is wrong with each.
    pub fn check_index(self: &Arc<Self>, rows: Range<u64>) -> CheckIndex {
        CheckIndex::new(Arc::clone(self), rows)
    }

    /// A machine that looks for what is wrong with the footer, though it can be read; `None` if the file
    /// has none.
    pub fn check_footer(&self) -> Option<CheckFooter> {
        self.tail.clone().map(|tail| CheckFooter::new(tail, self.payload_end))
    }

    /// A machine that reads the zone maps in the file with all that is wrong with them; `None` if the
    /// file has none.
    pub fn check_zone_maps(&self) -> Option<CheckZoneMaps> {
        self.embedded_zones().map(|text| CheckZoneMaps::new(text, self.zone_targets()))
    }

    /// The same for the zone file `at` of a package, see [`TetFile::read_zone_file`].
    ///
    /// # Errors
    /// `Corrupt` if the zone file is too long.
    pub fn check_zone_file(&self, at: Location, generation: u64) -> Result<CheckZoneMaps> {
        let text = self.zones_beside(at, generation)?;
        Ok(CheckZoneMaps::new(text, self.zone_targets()))
    }

    /// A machine that reads the zone maps of `dataset`, if the file has any.
    ///
    /// # Errors
    /// Those of [`Dataset::grid`].
    pub fn read_zone_maps(&self, dataset: usize) -> Result<Option<ReadZoneMaps>> {
        let Some(text) = self.embedded_zones() else { return Ok(None) };
        Ok(Some(ReadZoneMaps::new(text, self.zone_target(dataset)?)))
    }

    /// A machine that reads the zone maps of all datasets: those in the file or, if it has none, those
    /// beside it as the `generation` of a package that it is.
    ///
    /// # Errors
    /// `Corrupt` as for [`TetFile::read_zone_file`].
    pub fn read_all_zone_maps(
        &self,
        generation: Option<&Generation>,
    ) -> Result<Option<ReadAllZoneMaps>> {
        let text = match (self.embedded_zones(), generation) {
            (Some(text), _) => text,
            (None, Some(Generation { number, zone_file: Some(at), .. })) => {
                self.zones_beside(at.clone(), *number)?
            }
            (None, _) => return Ok(None),
        };
        Ok(Some(ReadAllZoneMaps::new(text, self.zone_targets())))
    }

    fn embedded_zones(&self) -> Option<ZoneText> {
        let at = Location::new("", self.zone_maps_at()?);
        Some(ZoneText { at, generation: None })
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
        Ok(ReadZoneMaps::new(self.zones_beside(at, generation)?, self.zone_target(dataset)?))
    }

    fn zones_beside(&self, at: Location, generation: u64) -> Result<ZoneText> {
        /// More than what is said of one chunk with eight axes, and more than what comes before.
        const MOST_PER_CHUNK: u64 = 1024;
        let (len, chunks) = (at.range.most().unwrap_or_default(), self.index_rows());
        if len > chunks.saturating_add(1).saturating_mul(MOST_PER_CHUNK) {
            let message = format!("{len} bytes, which is too much for {chunks} chunks");
            return Err(Error::corrupt("zone maps", 0, message).in_file(&at.object));
        }
        Ok(ZoneText { at, generation: Some(generation) })
    }

    fn zone_targets(&self) -> Vec<Result<Target>> {
        (0..self.datasets.len()).map(|dataset| self.zone_target(dataset)).collect()
    }

    fn zone_target(&self, dataset: usize) -> Result<Target> {
        let grid = self.datasets[dataset].grid()?.clone();
        let element = self.datasets[dataset].element()?;
        Ok(Target { dataset, grid, element })
    }
}

/// An error about a dataset that cannot be read while the rest of the file can.
fn bad_dataset(name: &str, error: &Error) -> Error {
    Error::unsupported(format!("dataset \"{name}\" cannot be read: {error}"))
}
