//! Texts of any length: from the references in a chunk to the texts in the global heap.

use std::ops::Range;

use super::field::{HeapField, HeapPart};
use super::file_bytes::{FileBytes, Widths};
use super::global_heap::{Collections, Reference};
use gridfusion_core::grid::{AxisSelection, for_each_run};
use gridfusion_core::{Error, Result};

/// The most bytes of text in the chunks that are located together.
const MAX_TEXT: u64 = 1 << 30;
/// The most bytes of text per byte of the heap. Writers store each text once per cell.
const MAX_RATIO: u64 = 16;

/// Returns the first `extents` cells per axis of a tile of `tile_shape`, of `width` bytes each.
pub(super) fn cells(
    tile: &[u8],
    tile_shape: &[u64],
    extents: &[u64],
    width: usize,
) -> Result<Vec<u8>> {
    let axes = tile_shape.iter().zip(extents);
    let selection: Vec<_> =
        axes.map(|(&len, &extent)| AxisSelection::from_range(len, 0..extent)).collect();
    let width = width as u64;
    let mut found = vec![];
    for_each_run(&selection, |run: Range<u64>| {
        let bytes = usize::try_from(run.start.saturating_mul(width)).ok();
        let end = usize::try_from(run.end.saturating_mul(width)).ok();
        let bytes = bytes.zip(end).and_then(|(start, end)| tile.get(start..end));
        found.extend_from_slice(bytes.unwrap_or_default());
    });
    let cells: u64 = extents.iter().product();
    if found.len() as u64 != cells.saturating_mul(width) {
        let found = found.len() as u64 / width.max(1);
        let message = format!("{found} references to texts of {cells}");
        return Err(Error::corrupt_region("chunk payload", message));
    }
    Ok(found)
}

/// Returns the references in cells of `width` bytes, cell by cell.
pub(super) fn references(
    cells: &[u8],
    width: usize,
    parts: &[HeapPart],
    widths: Widths,
) -> Result<Vec<Reference>> {
    let len = widths.reference();
    let of_part = |cell: &[u8], part: &HeapPart| -> Result<Reference> {
        let bytes = cell.get(part.offset..part.offset + len).unwrap_or_default();
        let outside = || Error::internal("a reference outside of its cell");
        Reference::all(bytes, widths).next().ok_or_else(outside)?
    };
    let of_cell = |cell| parts.iter().map(move |part| of_part(cell, part));
    cells.chunks_exact(width.max(1)).flat_map(of_cell).collect()
}

/// Returns the cells of a field as a column reads them: the bytes in the cell, in which references are places, and the values behind.
pub(super) fn packed(cells: &[u8], field: &HeapField, values: &Texts) -> Texts {
    let mut packed = Texts::default();
    packed.bytes.reserve_exact(cells.len() + values.bytes.len());
    let mut starts = values.offsets.iter().map(|&start| start as usize).peekable();
    for cell in cells.chunks_exact(field.bytes.len().max(1)) {
        let start = packed.bytes.len();
        packed.offsets.push(start as u64);
        packed.bytes.extend_from_slice(cell);
        for part in field.parts.iter() {
            let Some(from) = starts.next() else { break };
            let to = starts.peek().copied().unwrap_or(values.bytes.len());
            let value = values.bytes.get(from..to).unwrap_or_default();
            let place = [packed.bytes.len() - start, value.len(), 0, 0].map(|it| it as u32);
            let at = start + part.offset;
            let words = packed.bytes.get_mut(at..).unwrap_or_default().chunks_exact_mut(4);
            for (word, number) in words.zip(place) {
                word.copy_from_slice(&number.to_le_bytes());
            }
            packed.bytes.extend_from_slice(value);
        }
    }
    packed
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
    chunks: &[&[Reference]],
    heaps: &mut Collections,
) -> Result<()> {
    let references = chunks.iter().copied().flatten().filter(|it| !it.is_empty(file.widths));
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

/// Looks up the texts of chunks, or their lists, in collections that were read. Each cell refers to values of these items.
pub(super) fn texts(
    file: &FileBytes,
    chunks: &[&[Reference]],
    heaps: &mut Collections,
    parts: &[HeapPart],
) -> Result<Vec<Texts>> {
    let most = heaps.bytes().saturating_mul(MAX_RATIO).min(MAX_TEXT);
    let (mut all, mut total) = (vec![], 0_u64);
    for references in chunks {
        let mut texts = Texts::default();
        texts.offsets.reserve_exact(references.len());
        for (reference, part) in references.iter().zip(parts.iter().cycle()) {
            let items = part.items;
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
