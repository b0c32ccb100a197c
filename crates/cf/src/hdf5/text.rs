//! Texts of any length: from the references in a chunk to the texts in the global heap.

use std::ops::Range;

use super::field::HeapItems;
use super::file_bytes::{FileBytes, Widths};
use super::global_heap::{Collections, Reference};
use gridfusion_core::grid::{AxisSelection, for_each_run};
use gridfusion_core::{Error, Result};

/// The most bytes of text in the chunks that are located together.
const MAX_TEXT: u64 = 1 << 30;
/// The most bytes of text per byte of the heap. Writers store each text once per cell.
const MAX_RATIO: u64 = 16;

/// Returns the references of the first `extents` cells per axis of a tile of `tile_shape`.
pub(super) fn references(
    tile: &[u8],
    tile_shape: &[u64],
    extents: &[u64],
    widths: Widths,
) -> Result<Vec<Reference>> {
    let axes = tile_shape.iter().zip(extents);
    let selection: Vec<_> =
        axes.map(|(&len, &extent)| AxisSelection::from_range(len, 0..extent)).collect();
    let width = widths.reference() as u64;
    let mut failed = None;
    let mut references = vec![];
    for_each_run(&selection, |run: Range<u64>| {
        let bytes = usize::try_from(run.start.saturating_mul(width)).ok();
        let end = usize::try_from(run.end.saturating_mul(width)).ok();
        let bytes = bytes.zip(end).and_then(|(start, end)| tile.get(start..end));
        for reference in Reference::all(bytes.unwrap_or_default(), widths) {
            match reference {
                Ok(reference) => references.push(reference),
                Err(error) => failed = Some(error),
            }
        }
    });
    let cells: u64 = extents.iter().product();
    if references.len() as u64 != cells {
        let message = format!("{} references to texts of {cells}", references.len());
        failed.get_or_insert(Error::corrupt_region("chunk payload", message));
    }
    failed.map_or(Ok(references), Err)
}

/// Texts, one after another, and the start of each.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    pub(super) offsets: Vec<u64>,
}

/// Reads the collections that references are to. Fails after all of them if bytes of some are missing.
pub(super) fn read_heaps(
    file: &FileBytes,
    chunks: &[Vec<Reference>],
    heaps: &mut Collections,
) -> Result<()> {
    let references = chunks.iter().flatten().filter(|it| !it.is_empty(file.widths));
    let mut addresses: Vec<u64> = references.map(|reference| reference.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut failed = Ok(());
    for address in addresses {
        match heaps.get(file, address) {
            Ok(_) => {}
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

/// Looks up the texts of chunks, or their lists of these items, in collections that were read.
pub(super) fn texts(
    file: &FileBytes,
    chunks: &[Vec<Reference>],
    heaps: &mut Collections,
    items: HeapItems,
) -> Result<Vec<Texts>> {
    let most = heaps.bytes().saturating_mul(MAX_RATIO).min(MAX_TEXT);
    let (mut all, mut total) = (vec![], 0_u64);
    for references in chunks {
        let mut texts = Texts::default();
        texts.offsets.reserve_exact(references.len());
        for reference in references {
            texts.offsets.push(texts.bytes.len() as u64);
            if reference.is_empty(file.widths) {
                continue;
            }
            let collection = heaps.get(file, reference.address)?;
            let text = collection.value(reference, items.width)?;
            let end = match items.is_text {
                true => text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1),
                false => text.len(),
            };
            total = total.saturating_add(end as u64);
            if total > most {
                return Err(Error::unsupported(format!(
                    "the texts of its chunks have more than {most} bytes; read fewer chunks"
                )));
            }
            // The bytes as they are: the column knows their character set.
            let start = texts.bytes.len();
            texts.bytes.extend_from_slice(text.get(..end).unwrap_or_default());
            if items.is_big_endian {
                let added = texts.bytes.get_mut(start..).unwrap_or_default();
                added.chunks_exact_mut(items.width.max(1) as usize).for_each(<[u8]>::reverse);
            }
        }
        all.push(texts);
    }
    Ok(all)
}
