//! The records of B-trees that name objects of fractal heaps.

use std::collections::HashMap;

use hdf5_reader::btree_v2::{self, BTreeV2Header, BTreeV2Record};

use super::super::file_bytes::FileBytes;
use super::super::heap_place::{FilteredBlock, Huge};
use super::converted;
use super::storage::KnownBytes;
use gridfusion_core::{Error, Result};

/// Returns all records of the version 2 B-tree at `address`.
pub(super) fn records(file: &FileBytes, address: u64) -> Result<Vec<BTreeV2Record>> {
    let storage = KnownBytes::new(file);
    let (offset, length) = (file.widths.address, file.widths.length);
    let header = BTreeV2Header::parse_at_storage(&storage, address, offset, length);
    let header = header.map_err(converted)?;
    let records = btree_v2::collect_btree_v2_records_storage(
        &storage,
        &header,
        offset,
        length,
        None,
        &[],
        None,
    );
    let (records, expected) = (records.map_err(converted)?, header.total_records);
    if records.len() as u64 != expected {
        let message = format!("{} records, expected {expected}", records.len());
        return Err(Error::corrupt("B-tree of names", address, message));
    }
    Ok(records)
}

/// Returns the places of the objects that are longer than the blocks of a heap, by number, from their B-tree.
pub(in crate::hdf5) fn huge_objects(file: &FileBytes, address: u64) -> Result<HashMap<u64, Huge>> {
    if file.widths.is_undefined(address) {
        return Ok(HashMap::new());
    }
    let place = |record| match record {
        BTreeV2Record::HugeIndirectNonFiltered { address, length, object_id } => {
            Some((object_id, Huge { address, len: length, stored: FilteredBlock::default() }))
        }
        BTreeV2Record::HugeIndirectFiltered {
            address,
            filtered_length,
            filter_mask,
            memory_length,
            object_id,
        } => {
            let stored = FilteredBlock { len: filtered_length, skipped: filter_mask };
            Some((object_id, Huge { address, len: memory_length, stored }))
        }
        _ => None,
    };
    Ok(records(file, address)?.into_iter().filter_map(place).collect())
}
