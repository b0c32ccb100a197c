//! Where datasets have their cells.

use std::sync::Arc;

use super::super::file_bytes::{Fields, FileBytes, Widths};
use super::super::global_heap::Collections;
use super::super::index::IndexKind;
use super::super::raw_header::{LAYOUT, RawMessage};
use super::super::virtual_layout::{Mapping, mappings};
use gridfusion_core::{Error, Result};

/// Where a dataset has its cells.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::hdf5) enum Layout {
    /// In the header: bytes, and their address; `None` if the file has other bytes there, because a cache image counts.
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

/// Returns the layout of a dataset with `rank` axes that is not virtual; `None` if its header has none.
///
/// The crate `hdf5-reader` reads lengths of single chunks and of contiguous cells as 8 bytes, also if those of the file have another width. In version 2, it
/// expects too few reserved bytes, and an address in compact ones.
///
/// Format: HDF5 File Format Specification version 3.0, IV.A.2.i "The Data Layout Message". `H5Olayout.c` of HDF5 2.0 has version 5.
pub(super) fn layout(
    file: &FileBytes,
    raw: &[RawMessage],
    rank: usize,
    has_filters: bool,
) -> Result<Option<Layout>> {
    let widths = file.widths;
    let Some(message) = layout_message(raw) else { return Ok(None) };
    let mut fields = Fields::new("data layout", message.address, &message.bytes);
    let fields = &mut fields;
    let version = fields.uint(1)?;
    let found = match version {
        1 | 2 => old_layout(fields, rank, widths)?,
        3..=5 => newer_layout(fields, version, rank, has_filters, widths)?,
        _ => return Err(Error::unsupported(format!("a data layout of version {version}"))),
    };
    Ok(Some(match found {
        Layout::Compact { bytes, .. } if file.blocks.has_image() => {
            Layout::Compact { bytes, address: None }
        }
        found => found,
    }))
}

/// Returns the layout of a message of version 3, 4 or 5, from its second byte on.
fn newer_layout(
    fields: &mut Fields<'_>,
    version: u64,
    rank: usize,
    has_filters: bool,
    widths: Widths,
) -> Result<Layout> {
    Ok(match (fields.uint(1)?, version) {
        (0, _) => compact(fields, 2)?,
        (1, _) => Layout::Contiguous { address: fields.address(widths)? },
        (2, 3) => {
            let count = fields.uint(1)?;
            let address = fields.address(widths)?;
            Layout::Chunked {
                chunk_shape: old_chunk_shape(&lens(fields, count, 4)?, rank)?,
                index: IndexKind::BTree1,
                address,
                are_cut_chunks_plain: false,
            }
        }
        (2, _) => chunked(fields, rank, has_filters, widths)?,
        (class, _) => {
            return Err(
                fields.corrupt(format!("class {class}, expected 0 to 2, or 3 in versions 4 and 5"))
            );
        }
    })
}

/// Returns the layout of a message of version 1 or 2, from its second byte on.
fn old_layout(fields: &mut Fields<'_>, rank: usize, widths: Widths) -> Result<Layout> {
    let (count, class) = (fields.uint(1)?, fields.uint(1)?);
    fields.take(5)?;
    let address = if class == 0 { 0 } else { fields.address(widths)? };
    let lens = lens(fields, count, 4)?;
    Ok(match class {
        0 => compact(fields, 4)?,
        1 => Layout::Contiguous { address },
        2 => Layout::Chunked {
            chunk_shape: old_chunk_shape(&lens, rank)?,
            index: IndexKind::BTree1,
            address,
            are_cut_chunks_plain: false,
        },
        class => return Err(fields.corrupt(format!("class {class}, expected 0 to 2"))),
    })
}

/// Returns the chunks of a message of version 4 or 5, from their flags on.
fn chunked(
    fields: &mut Fields<'_>,
    rank: usize,
    has_filters: bool,
    widths: Widths,
) -> Result<Layout> {
    let (flags, count, width) = (fields.uint(1)?, fields.uint(1)?, fields.uint(1)?);
    let lens = lens(fields, count, u8::try_from(width).unwrap_or(u8::MAX))?;
    let index = match fields.uint(1)? {
        1 => {
            let is_filtered = flags & 2 != 0;
            let size = if is_filtered { Some(fields.length(widths)?) } else { None };
            let skipped = if is_filtered { fields.uint(4)? as u32 } else { 0 };
            IndexKind::Single { size: size.filter(|_| has_filters), skipped }
        }
        2 => IndexKind::Implicit,
        3 => {
            fields.take(1)?;
            IndexKind::FixedArray
        }
        4 => {
            fields.take(5)?;
            IndexKind::ExtensibleArray
        }
        5 => {
            fields.take(6)?;
            IndexKind::BTree2
        }
        kind => {
            return Err(fields.corrupt(format!("a chunk index of kind {kind}, expected 1 to 5")));
        }
    };
    Ok(Layout::Chunked {
        chunk_shape: chunk_shape(&lens, rank)?,
        index,
        address: fields.address(widths)?,
        are_cut_chunks_plain: flags & 1 != 0,
    })
}

/// Returns the cells in the message itself, after their length of this width.
fn compact(fields: &mut Fields<'_>, width: u8) -> Result<Layout> {
    let len = fields.uint(width)?;
    let address = Some(fields.address_of_next());
    let bytes = fields.take(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec();
    Ok(Layout::Compact { bytes, address })
}

fn lens(fields: &mut Fields<'_>, count: u64, width: u8) -> Result<Vec<u64>> {
    (0..count).map(|_| fields.uint(width)).collect()
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
        it.bytes
            .first_chunk()
            .is_some_and(|[version, class]| (4..=5).contains(version) && *class == 3)
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

/// As `chunk_shape`, in versions 1 to 3: the bytes of a cell follow the lengths.
fn old_chunk_shape(lens: &[u64], rank: usize) -> Result<Vec<u64>> {
    chunk_shape(if lens.len() > rank { lens } else { &[] }, rank)
}

/// Returns the lengths of chunks of a dataset with `rank` axes. Bytes of a cell may follow them.
fn chunk_shape(lens: &[u64], rank: usize) -> Result<Vec<u64>> {
    let shape = lens.get(..rank).filter(|lens| !lens.contains(&0));
    shape.map(<[u64]>::to_vec).ok_or_else(|| {
        let message = format!("chunks of shape {lens:?} of a dataset of {rank} axes");
        Error::corrupt_region("data layout", message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::blocks::FileBlocks;
    use super::*;
    use gridfusion_core::ErrorKind;

    fn message(bytes: &[&[u8]]) -> RawMessage {
        let (kind, is_shared, address) = (LAYOUT, false, 100);
        RawMessage { kind, is_shared, address, bytes: bytes.concat().into() }
    }

    fn file(address: u8, length: u8) -> FileBytes {
        let blocks = Arc::new(FileBlocks::new(0));
        FileBytes { blocks, widths: Widths { base: 0, address, length } }
    }

    #[test]
    fn lengths_and_addresses_have_the_widths_of_the_file() {
        for version in [4, 5] {
            for (address, length) in [(8, 8), (8, 4), (4, 8), (4, 4), (2, 2)] {
                let file = file(address, length);
                let number = |value: u64, width: u8| value.to_le_bytes()[..width.into()].to_vec();
                let place = number(0x0800, address);
                // Chunks of 300 × 7 cells of 4 bytes, in 2 bytes each.
                let head = |flags: u8| [version, 2, flags, 3, 2, 44, 1, 7, 0, 4, 0];
                let found = |parts: &[&[u8]], has_filters| {
                    layout(&file, &[message(parts)], 2, has_filters).unwrap().unwrap()
                };
                let chunked = |index, are_cut_chunks_plain| Layout::Chunked {
                    chunk_shape: vec![300, 7],
                    index,
                    address: 0x0800,
                    are_cut_chunks_plain,
                };
                let single = |size, skipped| IndexKind::Single { size, skipped };
                let len = number(0x9b, length);
                let filtered = found(&[&head(2), &[1], &len, &[1, 0, 0, 0], &place], true);
                assert_eq!(filtered, chunked(single(Some(0x9b), 1), false));
                let plain = found(&[&head(0), &[1], &place], false);
                assert_eq!(plain, chunked(single(None, 0), false));
                for (kind, rest, index) in [
                    (2, 0, IndexKind::Implicit),
                    (3, 1, IndexKind::FixedArray),
                    (4, 5, IndexKind::ExtensibleArray),
                    (5, 6, IndexKind::BTree2),
                ] {
                    let parts: [&[u8]; 4] = [&head(1), &[kind], &[9; 6][..rest], &place];
                    assert_eq!(found(&parts, true), chunked(index, true));
                }
                let contiguous = found(&[&[version, 1], &place, &len], false);
                assert_eq!(contiguous, Layout::Contiguous { address: 0x0800 });
                let compact = found(&[&[version, 0, 3, 0], b"abc"], false);
                assert_eq!(compact, Layout::Compact { bytes: b"abc".to_vec(), address: Some(104) });
            }
        }
        let error = |bytes: &[u8]| layout(&file(8, 8), &[message(&[bytes])], 1, false).unwrap_err();
        assert_eq!(error(&[6, 1]).kind(), ErrorKind::Unsupported);
        for wrong in [&[4, 4][..], &[4, 2, 0, 2, 9], &[4, 2, 0, 2, 1, 1, 1, 6], &[3, 0, 9, 0]] {
            assert_eq!(error(wrong).kind(), ErrorKind::Corrupt, "{wrong:?}");
        }
        assert_eq!(layout(&file(8, 8), &[], 1, false).unwrap(), None);
    }

    #[test]
    fn layouts_of_old_versions() {
        for version in [1, 2] {
            let head = |lens: u8, class: u8| [version, lens, class, 0, 0, 0, 0, 0];
            let (address, lens) =
                (0x0800_u64.to_le_bytes(), [3_u32, 4, 2].map(u32::to_le_bytes).concat());
            let found = |parts: &[&[u8]]| layout(&file(8, 8), &[message(parts)], 2, false);
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
                vec![&head(2, 2)[..], &address, &lens],
                vec![&head(1, 0)[..], &lens[..4], &[255; 4], b"ab"],
            ] {
                assert_eq!(found(&wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong:?}");
            }
        }
    }
}
