//! An opened file and its metadata. Each machine that reads more of the file has a module of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::directory::Dataset;
use super::footer::Tail;
use super::index::{Index, RowMap};
use super::metadata::{DatasetMetadata, HistoryEvent, Metadata};
use super::superblock::SUPERBLOCK_LEN;
use gridfusion_core::format::MemoryBudget;
use gridfusion_core::{Error, Result};

/// An opened `.tet` file: its metadata, without index rows, zone maps and payloads.
#[derive(Debug)]
pub struct TetFile {
    pub(super) datasets: Vec<Dataset>,
    /// Ids by name; the first id where several datasets share a name.
    pub(super) by_name: HashMap<String, usize>,
    pub(super) metadata: Metadata,
    /// Datasets that label the axes of others through a `coordinates` attribute.
    pub(super) listed_coordinates: HashSet<usize>,
    pub(super) history: Vec<HistoryEvent>,
    pub(super) index: Index,
    /// Payloads end at or before this byte.
    pub(super) payload_end: u64,
    pub(super) zone_maps_at: Option<Range<u64>>,
    /// The tail of the footer, if there is one.
    pub(super) tail: Option<Tail>,
    pub(super) warnings: Vec<String>,
    /// The row of each chunk, built once the rows prove not to be in writer's order.
    pub(super) row_map: OnceLock<Arc<RowMap>>,
}

impl TetFile {
    /// Returns the datasets in directory order; a dataset's id is its position in this slice.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// Returns the id of the dataset `name`, the first id if several datasets have this name.
    pub fn dataset_id(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the dataset with this id, or a `Usage` error if the file has no such dataset.
    pub(super) fn dataset(&self, id: usize) -> Result<&Dataset> {
        let count = self.datasets.len();
        let none = || Error::usage(format!("no dataset number {id}; the file has {count}"));
        self.datasets.get(id).ok_or_else(none)
    }

    /// Returns the attributes and axis metadata of a dataset. They are empty if the footer has none, and for
    /// an unknown id.
    pub fn metadata_of(&self, dataset: usize) -> &DatasetMetadata {
        self.metadata.of(self.datasets.get(dataset).map(Dataset::name))
    }

    /// Whether values still carry CF packing (`scale_factor`, `add_offset`).
    ///
    /// The reference converter decodes packed floats of NetCDF and HDF5 but keeps the attributes; it
    /// copies Zarr data undecoded. Integers are never decoded.
    pub fn is_packed(&self, dataset: usize) -> bool {
        let metadata = self.metadata_of(dataset);
        let declared =
            ["scale_factor", "add_offset"].iter().any(|key| metadata.attrs.contains_key(*key));
        let element = self.dataset(dataset).and_then(Dataset::element);
        let integer = element.is_ok_and(|element| element.is_integer());
        let from_zarr = self.history.iter().any(|event| event.source.starts_with("zarr"));
        declared && (integer || from_zarr)
    }

    /// Returns the attributes of the file itself, such as the tool that wrote it.
    pub fn file_attributes(&self) -> &BTreeMap<String, String> {
        &self.metadata.file
    }

    /// Returns the events in the file's history, in the order of the footer.
    pub fn history(&self) -> &[HistoryEvent] {
        &self.history
    }

    /// Returns the number of rows in the chunk index: the stored chunks of all datasets.
    pub fn index_rows(&self) -> u64 {
        self.index.row_count
    }

    /// Returns the part of the file where payloads may be.
    pub fn payload_area(&self) -> Range<u64> {
        let index = self.index.bytes_of(0..self.index.row_count);
        index.end.max(SUPERBLOCK_LEN)..self.payload_end
    }

    /// Returns the amount of memory that the writer suggests for reading.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.index.memory_budget
    }

    /// Returns the bytes of the zone maps, if the footer refers to any.
    pub fn zone_maps_at(&self) -> Option<Range<u64>> {
        self.zone_maps_at.clone()
    }

    /// Returns warnings about faults that do not prevent reading.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::bytes::open_file::OpenFile;
    use gridfusion_core::ErrorKind;
    use gridfusion_core::format::{Machine, Replies, Step};

    #[test]
    fn an_id_of_no_dataset_is_a_mistake_and_no_panic() {
        // A superblock with a dataset count of 0 is a whole file.
        let mut bytes = [0; SUPERBLOCK_LEN as usize];
        bytes[..5].copy_from_slice(b"TETR\x01");
        bytes[16] = 32;
        let mut open = OpenFile::new(SUPERBLOCK_LEN);
        open.step(Replies::Start).unwrap();
        let replies = Replies::Bytes(vec![Bytes::copy_from_slice(&bytes)]);
        let Step::Done(file) = open.step(replies).unwrap() else { panic!("bytes are missing") };
        let file = Arc::new(file);
        assert!(file.datasets().is_empty());
        assert!(file.metadata_of(3).attrs.is_empty() && !file.is_packed(3));
        assert!(!file.is_coordinate(3) && file.dimensions(3).0.is_empty());
        let error = file.locate(3, vec![0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.to_string(), "no dataset number 3; the file has 0");
        assert!(file.read_zone_maps(3).unwrap().is_none());
    }
}
