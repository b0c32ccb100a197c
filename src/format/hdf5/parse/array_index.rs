//! Fixed and extensible arrays of chunks.

use hdf5_reader::chunk_index::ChunkEntry;
use hdf5_reader::{extensible_array, fixed_array};

use super::super::file_bytes::FileBytes;
use super::super::index::{ChunkBox, ChunkIndex, Entry};
use super::converted;
use super::storage::KnownBytes;
use crate::error::{Error, Result};

/// The kind of an array of chunks.
#[derive(Debug, Clone, Copy)]
pub(in crate::format::hdf5) enum ArrayIndex {
    /// The index of a dataset that cannot grow without bound.
    Fixed,
    /// The index of a dataset with one unlimited axis.
    Extensible,
}

/// Returns the chunks in a box that are stored, by coordinates.
pub(in crate::format::hdf5) fn array_index(
    file: &FileBytes,
    index: &ChunkIndex,
    kind: ArrayIndex,
    chunks: &ChunkBox,
) -> Result<Vec<(Vec<u64>, Entry)>> {
    let storage = KnownBytes::new(file);
    let (address, length) = (file.widths.address, file.widths.length);
    let chunk_shape = index.chunk_shape.iter().map(|&len| u32::try_from(len));
    let chunk_shape = chunk_shape.collect::<std::result::Result<Vec<_>, _>>();
    let chunk_shape = chunk_shape.map_err(|_| Error::unsupported("a chunk of 4 Gi elements"))?;
    let bounds = Some((chunks.first.as_slice(), chunks.last.as_slice()));
    let entries = match kind {
        // Chunks are numbered as if the dataset had its greatest shape.
        ArrayIndex::Fixed => fixed_array::collect_fixed_array_chunk_entries_storage(
            &storage,
            index.address,
            address,
            length,
            &index.max_shape,
            &chunk_shape,
            bounds,
        ),
        ArrayIndex::Extensible => extensible_array::collect_extensible_array_chunk_entries_storage(
            &storage,
            index.address,
            address,
            length,
            &index.shape,
            Some(&index.max_shape),
            &chunk_shape,
            bounds,
        ),
    };
    let coordinates = |entry: &ChunkEntry| -> Vec<u64> {
        entry.offsets.iter().zip(&index.chunk_shape).map(|(at, len)| at / (*len).max(1)).collect()
    };
    let entries = entries.map_err(converted)?.into_iter().map(|entry| {
        let size = Some(entry.size).filter(|_| index.has_filters);
        let (address, skipped) = (entry.address, entry.filter_mask);
        (coordinates(&entry), Entry { address, size, skipped })
    });
    Ok(entries.collect())
}
