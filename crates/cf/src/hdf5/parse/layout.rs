//! Where datasets have their cells.

use std::sync::Arc;

use hdf5_reader::messages::layout::{ChunkIndexing, DataLayout};

use super::super::file_bytes::{Fields, FileBytes};
use super::super::global_heap::Collections;
use super::super::index::IndexKind;
use super::super::raw_header::{LAYOUT, RawMessage};
use super::super::virtual_layout::{Mapping, mappings};
use gridfusion_core::{Error, Result};

/// Where a dataset has its cells.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::hdf5) enum Layout {
    /// In the header: bytes, and their address if it is known.
    Compact { bytes: Vec<u8>, address: Option<u64> },
    /// In one piece.
    Contiguous { address: u64 },
    /// In chunks of this shape.
    Chunked {
        chunk_shape: Vec<u64>,
        index: IndexKind,
        address: u64,
        /// Whether chunks that the end of an axis cuts have no filters.
        are_cut_chunks_plain: bool,
    },
    /// In other datasets.
    Virtual(Arc<[Mapping]>),
}

/// Returns the layout of a dataset with `rank` axes, if its message is of version 1 or 2; addresses have this width.
///
/// The crate `hdf5-reader` expects too few reserved bytes in version 2, and an address in compact ones.
///
/// Format: HDF5 File Format Specification version 3.0, IV.A.2.i, "Layout: Layout Message Versions 1 and 2".
pub(super) fn old_layout(
    raw: &[RawMessage],
    rank: usize,
    address_width: u8,
) -> Result<Option<Layout>> {
    let Some(message) = layout_message(raw).filter(|it| matches!(it.bytes.first(), Some(1 | 2)))
    else {
        return Ok(None);
    };
    let mut fields = Fields::new("data layout", message.address, &message.bytes);
    let (_version, lens, class) = (fields.uint(1)?, fields.uint(1)?, fields.uint(1)?);
    fields.take(5)?;
    let address = if class == 0 { 0 } else { fields.uint(address_width)? };
    let lens = (0..lens).map(|_| fields.uint(4)).collect::<Result<Vec<u64>>>()?;
    Ok(Some(match class {
        0 => {
            let len = fields.uint(4)?;
            let at = message.address.saturating_add(fields.position() as u64);
            let bytes = fields.take(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec();
            Layout::Compact { bytes, address: Some(at) }
        }
        1 => Layout::Contiguous { address },
        2 => Layout::Chunked {
            chunk_shape: chunk_shape(&lens, rank)?,
            index: IndexKind::BTree1,
            address,
            are_cut_chunks_plain: false,
        },
        class => return Err(fields.corrupt(format!("class {class}, expected 0 to 2"))),
    }))
}

/// Returns the layout of a virtual dataset with `rank` axes; `None` if it is another.
pub(super) fn virtual_layout(
    file: &FileBytes,
    raw: &[RawMessage],
    rank: usize,
    heaps: &mut Collections,
) -> Result<Option<Layout>> {
    let message = layout_message(raw);
    let is_virtual = |it: &&RawMessage| {
        it.bytes.first_chunk().is_some_and(|[version, class]| *version >= 4 && *class == 3)
    };
    let message = message.filter(is_virtual);
    let Some(message) = message else { return Ok(None) };
    let mappings = mappings(file, &message.bytes, message.address, rank, heaps)?;
    Ok(Some(Layout::Virtual(mappings.into())))
}

/// Returns the message with the layout, if the header has it itself.
fn layout_message(raw: &[RawMessage]) -> Option<&RawMessage> {
    raw.iter().find(|message| message.kind == LAYOUT && !message.is_shared)
}

/// Returns the lengths of chunks of a dataset with `rank` axes. Bytes of a cell may follow them.
fn chunk_shape(lens: &[u64], rank: usize) -> Result<Vec<u64>> {
    let shape = lens.get(..rank).filter(|lens| !lens.contains(&0));
    shape.map(<[u64]>::to_vec).ok_or_else(|| {
        let message = format!("chunks of shape {lens:?} of a dataset of {rank} axes");
        Error::corrupt_region("data layout", message)
    })
}

/// Returns the layout of a dataset with `rank` axes, if [`old_layout`] does not have it. `raw` are the messages of its
/// header.
pub(super) fn layout(
    layout: &DataLayout,
    rank: usize,
    has_filters: bool,
    raw: &[RawMessage],
) -> Result<Layout> {
    let message = layout_message(raw);
    let version = message.and_then(|message| message.bytes.first().copied()).unwrap_or_default();
    Ok(match layout {
        DataLayout::Compact { data } => {
            // Version, class and length (2 bytes) come first.
            let stored = message
                .filter(|message| message.bytes.get(4..4 + data.len()) == Some(data.as_slice()));
            let address = stored.map(|message| message.address.saturating_add(4));
            Layout::Compact { bytes: data.clone(), address }
        }
        DataLayout::Contiguous { address, .. } => Layout::Contiguous { address: *address },
        DataLayout::Chunked { address, dims, chunk_indexing, .. } => {
            let lens: Vec<u64> = dims.iter().map(|&len| u64::from(len)).collect();
            let flags = message.and_then(|message| message.bytes.get(2).copied());
            Layout::Chunked {
                chunk_shape: chunk_shape(&lens, rank)?,
                index: index_kind(chunk_indexing.as_ref(), has_filters),
                address: *address,
                are_cut_chunks_plain: version >= 4 && flags.unwrap_or_default() & 1 != 0,
            }
        }
    })
}

fn index_kind(indexing: Option<&ChunkIndexing>, has_filters: bool) -> IndexKind {
    match indexing {
        None => IndexKind::BTree1,
        Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => IndexKind::Single {
            size: Some(*filtered_size).filter(|_| has_filters),
            skipped: *filters,
        },
        Some(ChunkIndexing::Implicit) => IndexKind::Implicit,
        Some(ChunkIndexing::FixedArray { .. }) => IndexKind::FixedArray,
        Some(ChunkIndexing::ExtensibleArray { .. }) => IndexKind::ExtensibleArray,
        Some(ChunkIndexing::BTreeV2) => IndexKind::BTree2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    fn message(bytes: &[&[u8]]) -> RawMessage {
        let (kind, is_shared, address) = (LAYOUT, false, 100);
        RawMessage { kind, is_shared, address, bytes: bytes.concat().into() }
    }

    #[test]
    fn layouts_of_old_versions() {
        for version in [1, 2] {
            let head = |lens: u8, class: u8| [version, lens, class, 0, 0, 0, 0, 0];
            let (address, lens) =
                (0x0800_u64.to_le_bytes(), [3_u32, 4, 2].map(u32::to_le_bytes).concat());
            let found = |parts: &[&[u8]]| old_layout(&[message(parts)], 2, 8);
            assert_eq!(
                found(&[&head(3, 1), &address, &lens]).unwrap(),
                Some(Layout::Contiguous { address: 0x0800 })
            );
            let chunked = Layout::Chunked {
                chunk_shape: vec![3, 4],
                index: IndexKind::BTree1,
                address: 0x0800,
                are_cut_chunks_plain: false,
            };
            assert_eq!(found(&[&head(3, 2), &address, &lens]).unwrap(), Some(chunked));
            let compact = found(&[&head(1, 0), &lens[..4], &2_u32.to_le_bytes(), b"ab"]);
            let expected = Layout::Compact { bytes: b"ab".to_vec(), address: Some(116) };
            assert_eq!(compact.unwrap(), Some(expected));
            for wrong in [
                vec![&head(3, 3)[..], &address, &lens],
                vec![&head(3, 2)[..], &address, &lens[..8]],
                vec![&head(1, 2)[..], &address, &lens],
                vec![&head(1, 0)[..], &lens[..4], &[255; 4], b"ab"],
            ] {
                assert_eq!(found(&wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong:?}");
            }
        }
        assert_eq!(old_layout(&[message(&[&[3, 1, 0]])], 2, 8).unwrap(), None);
    }
}
