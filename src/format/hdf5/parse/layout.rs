//! Where datasets have their cells.

use hdf5_reader::messages::layout::{ChunkIndexing, DataLayout};

use super::super::index::IndexKind;
use super::super::raw_header::{LAYOUT, RawMessage};
use crate::error::{Error, Result};

/// Where a dataset has its cells.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::format::hdf5) enum Layout {
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
}

/// Returns the layout of a dataset with `rank` axes. `raw` are the messages of its header.
pub(super) fn layout(
    layout: &DataLayout,
    rank: usize,
    has_filters: bool,
    raw: &[RawMessage],
) -> Result<Layout> {
    let message = raw.iter().find(|message| message.kind == LAYOUT && !message.is_shared);
    let version = message.and_then(|message| message.bytes.first().copied()).unwrap_or_default();
    Ok(match layout {
        DataLayout::Compact { data } => {
            // Version, class and length (2 bytes) come first, since version 3.
            let stored = message.filter(|message| {
                version >= 3 && message.bytes.get(4..4 + data.len()) == Some(data.as_slice())
            });
            let address = stored.map(|message| message.address.saturating_add(4));
            Layout::Compact { bytes: data.clone(), address }
        }
        DataLayout::Contiguous { address, .. } => Layout::Contiguous { address: *address },
        DataLayout::Chunked { address, dims, chunk_indexing, .. } => {
            let chunk_shape = dims.get(..rank).filter(|lens| !lens.contains(&0));
            let chunk_shape = chunk_shape.ok_or_else(|| {
                let message = format!("chunks of shape {dims:?} of a dataset of {rank} axes");
                Error::corrupt_region("data layout", message)
            })?;
            let flags = message.and_then(|message| message.bytes.get(2).copied());
            Layout::Chunked {
                chunk_shape: chunk_shape.iter().map(|&len| u64::from(len)).collect(),
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
