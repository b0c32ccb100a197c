//! Merging of a chunk's stored layers into one tile.
//!
//! ```text
//!   layer 0  ▒▒▒▒▒▒▒▒      tile  ▒▒▒▒▒▒▒▒      . fill value
//!            ▒▒▒▒▒▒▒▒  ─▶        ▒▒▒▓▓▓▓▓
//!   layer 1     ▓▓▓▓▓            ...▓▓▓▓▓      rows are copied run by run, oldest layer first
//!               ▓▓▓▓▓
//! ```
//!
//! Layers are decoded one at a time, each in the memory of the one before. Nearly every chunk is a
//! single whole layer in row-major order: its decoded bytes are the tile.
//!
//! Tiles are copied only at the border of the table, in column-major order, or of several fragments. Decoding takes the
//! memory of the largest layer and of the tile.

use std::ops::Range;

use bytes::Bytes;

use super::cells::Tile;
use super::runs::{cell_count, copy_cells, fill_cells, too_small};
use crate::error::{Error, Result};
use crate::format::{DecodedPayload, Layer, Payload, Placement, Scratch, StoredChunk};

/// How the cells of a variable are stored, and the element of cells that were never written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellFormat {
    /// Bytes of a cell; `None` if cells may have any length.
    pub width: Option<usize>,
    /// Whether cells can be NULL: then a validity byte per cell is stored.
    pub nullable: bool,
    /// The bytes of a cell that was never written.
    pub fill: Vec<u8>,
    /// Whether a cell that was never written is a value rather than NULL. Matters only if cells can be
    /// NULL.
    pub fill_is_valid: bool,
}

impl CellFormat {
    /// Returns the format of cells of `width` bytes, or of any length. Cells that were never written have the bytes `fill`, and
    /// are NULL unless `fill_is_valid`.
    pub fn new(width: Option<usize>, nullable: bool, fill: Vec<u8>, fill_is_valid: bool) -> Self {
        Self { width, nullable, fill, fill_is_valid }
    }

    /// Returns the format of cells of `width` bytes that are never NULL and all written.
    pub fn fixed(width: usize) -> Self {
        Self { width: Some(width), nullable: false, fill: vec![], fill_is_valid: true }
    }
}

/// Decodes the fetched `payloads` into the tile of a chunk with these `extents`. Newer layers override
/// older ones. Payloads come layer by layer, in the order of [`Layer::payloads`]. `spare` is memory to reuse
/// for the tile.
pub fn decode(
    stored: &StoredChunk,
    payloads: &mut impl Iterator<Item = Bytes>,
    extents: &[u64],
    format: &CellFormat,
    spare: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<Tile, Undecodable> {
    let member = stored.layers.first().map_or(0, |layer| layer.values.at.member);
    let mut decoder = LayerDecoder { payloads, scratch, member };
    let tile = cell_count(extents).and_then(|cells| {
        let chunk = ChunkFormat { extents, cells, format };
        match (stored.layers.as_slice(), format.width) {
            ([layer], width) if layer.placement.is_none() => {
                whole(decoder.decode_layer(layer, spare)?, &chunk, width)
            }
            (layers, Some(width)) => fixed(layers, &chunk, width, spare, &mut decoder),
            (layers, None) => variable(layers, &chunk, spare, &mut decoder),
        }
    });
    tile.map_err(|error| Undecodable { error, member: decoder.member })
}

/// The error of a chunk that could not be decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct Undecodable {
    /// Names the object, unless the array is a single object.
    pub error: Error,
    /// The number of the array with the object, where several arrays are read as one.
    pub member: u32,
}

/// The chunk that layers are merged into.
struct ChunkFormat<'a> {
    extents: &'a [u64],
    cells: usize,
    format: &'a CellFormat,
}

/// Returns the bytes that [`decode`] allocates for a chunk of `cells` cells, including its tile.
pub(crate) fn bytes_decoded(stored: &StoredChunk, cells: u64, format: &CellFormat) -> u64 {
    let of_payload = |payload: &Payload| if payload.is_view() { 0 } else { payload.raw_len };
    let of_layer = |layer: &Layer| layer.payloads().map(of_payload).fold(0, u64::saturating_add);
    // Merging needs the tile and the largest layer at the same time. The contents of values of any
    // length are collected from all layers.
    let layers = stored.layers.iter().map(of_layer).max().unwrap_or_default();
    let contents = stored.layers.iter().filter_map(|layer| layer.content.as_ref());
    let contents = contents.map(|content| content.raw_len).fold(0, u64::saturating_add);
    let made = |width: usize| cells.saturating_mul((width + usize::from(format.nullable)) as u64);
    // If a layer turns out to be absent, the tile is made of fill values.
    let is_tile = stored.is_whole() && !stored.layers.iter().any(|layer| layer.may_be_absent);
    let span = size_of::<Range<u64>>();
    let tile = match (format.width, is_tile) {
        (Some(_), true) => 0,
        (Some(width), false) => made(width),
        (None, true) => made(span),
        (None, false) => made(span).saturating_add(contents),
    };
    // The offsets of a layer become numbers, and for merging spans, beside those of the tile.
    let temporary = match (format.width, is_tile) {
        (Some(_), _) => 0,
        (None, true) => cells.saturating_mul(size_of::<u64>() as u64),
        (None, false) => {
            let cells = stored.layers.iter().map(|layer| stored_cells(layer, cells)).max();
            cells.unwrap_or_default().saturating_mul((size_of::<u64>() + span) as u64)
        }
    };
    layers.saturating_add(tile).saturating_add(temporary)
}

/// Returns the cells of a layer as stored, in a chunk of `cells` cells.
fn stored_cells(layer: &Layer, cells: u64) -> u64 {
    let shape = layer.placement.as_ref().map(|placement| placement.tile_shape.as_slice());
    shape.map_or(cells, |shape| shape.iter().copied().fold(1, u64::saturating_mul))
}

/// A decoder of layers, which takes their payloads in order.
struct LayerDecoder<'a, P> {
    payloads: &'a mut P,
    scratch: &'a mut Scratch,
    /// The [`Location::member`](crate::format::Location::member) of the latest payload.
    member: u32,
}

/// A layer whose payloads have been decoded.
struct DecodedLayer {
    values: DecodedPayload,
    content: Option<DecodedPayload>,
    validity: Option<Bytes>,
}

impl<P: Iterator<Item = Bytes>> LayerDecoder<'_, P> {
    /// Decodes a layer. `memory` is reused for the content if there is one, otherwise for the values.
    fn decode_layer(&mut self, layer: &Layer, memory: Vec<u8>) -> Result<DecodedLayer> {
        let fixed = layer.content.is_none();
        let (for_values, for_content) = if fixed { (memory, vec![]) } else { (vec![], memory) };
        let values = self.decode(&layer.values, for_values)?;
        let content = layer.content.as_ref().map(|content| self.decode(content, for_content));
        let content = content.transpose()?;
        let validity = layer.validity.as_ref().map(|validity| self.decode(validity, vec![]));
        let validity = validity.transpose()?.map(|validity| validity.bytes);
        Ok(DecodedLayer { values, content, validity })
    }

    fn decode(&mut self, payload: &Payload, memory: Vec<u8>) -> Result<DecodedPayload> {
        self.member = payload.at.member;
        let stored = self.payloads.next();
        let stored = stored.ok_or_else(|| Error::internal("a payload that was not fetched"))?;
        let decoded = payload.decode(stored, memory, self.scratch);
        let object = &payload.at.object;
        decoded.map_err(|error| if object.is_empty() { error } else { error.in_file(object) })
    }
}

impl DecodedLayer {
    /// Returns the bytes that contain values of any length: those of the content, or those of the values if their
    /// encoding has the lengths.
    fn content(&self) -> Result<&Bytes> {
        let values = Some(&self.values).filter(|values| values.offsets.is_some());
        let content = self.content.as_ref().or(values).map(|content| &content.bytes);
        content.ok_or_else(|| Error::internal("values of any length without content"))
    }

    /// Returns the offsets of values of any length, if their encoding has the lengths.
    fn offsets(&self) -> Option<&[u64]> {
        self.content.as_ref().unwrap_or(&self.values).offsets.as_deref()
    }

    /// Returns the memory of the content, or else of the values, for the next layer.
    fn into_memory(self) -> Vec<u8> {
        let largest = self.content.unwrap_or(self.values).bytes;
        largest.try_into_mut().map(Vec::from).unwrap_or_default()
    }
}

/// The largest tile of merged layers, in bytes. A file can declare a chunk of any size.
const MAX_MERGED_BYTES: usize = 1 << 31;

/// Returns the bytes of a merged tile. Fails if they exceed [`MAX_MERGED_BYTES`].
fn merged_len(cells: usize, width: usize) -> Result<usize> {
    let bytes = cells.checked_mul(width).filter(|&bytes| bytes <= MAX_MERGED_BYTES);
    bytes.ok_or_else(|| {
        let most = MAX_MERGED_BYTES >> 20;
        Error::unsupported(format!(
            "a chunk of {cells} cells of {width} bytes; a chunk that is not stored as one whole tile may have at most {most} MiB"
        ))
    })
}

/// Returns the tile of a layer that is the whole chunk in row-major order.
fn whole(decoded: DecodedLayer, chunk: &ChunkFormat<'_>, width: Option<usize>) -> Result<Tile> {
    let validity = decoded.validity.clone().filter(|_| chunk.format.nullable);
    if validity.as_ref().is_some_and(|validity| validity.len() != chunk.cells) {
        return Err(too_small());
    }
    let tile = match width {
        Some(width) if Some(decoded.values.bytes.len()) != chunk.cells.checked_mul(width) => {
            return Err(too_small());
        }
        Some(width) => Tile::fixed(decoded.values.bytes, width),
        None => Tile::variable(spans(&decoded, chunk.cells, 0)?, decoded.content()?.clone())?,
    };
    Ok(tile.with_validity(validity))
}

/// Returns cells of `width` bytes in the memory of `spare`, before any layer is copied. They are fill
/// values, or arbitrary bytes if one layer covers the chunk.
fn unwritten(
    layers: &[Layer],
    chunk: &ChunkFormat<'_>,
    width: usize,
    spare: Vec<u8>,
) -> Result<Vec<u8>> {
    let bytes = merged_len(chunk.cells, width)?;
    let mut tile = spare;
    if covers(layers, chunk.extents) {
        tile.resize(bytes, 0); // every cell will be written
    } else if chunk.format.fill.len() != width {
        return Err(Error::internal("the fill value and its cells differ in width"));
    } else if chunk.format.fill.iter().all(|byte| *byte == 0) {
        tile.clear();
        tile.resize(bytes, 0);
    } else {
        tile.clear();
        tile.reserve_exact(bytes);
        (0..chunk.cells).for_each(|_| tile.extend_from_slice(&chunk.format.fill));
    }
    Ok(tile)
}

/// Whether one of the layers holds every cell of the chunk.
fn covers(layers: &[Layer], extents: &[u64]) -> bool {
    let whole = |placement: &Placement| {
        placement.region.iter().zip(extents).all(|(region, &len)| *region == (0..len))
    };
    layers.iter().any(|layer| layer.placement.as_ref().is_none_or(whole))
}

/// Returns one byte per cell, 0 for NULL, before any layer is copied; `None` if no cell can be NULL.
fn unwritten_validity(chunk: &ChunkFormat<'_>) -> Result<Option<Vec<u8>>> {
    let byte = u8::from(chunk.format.fill_is_valid);
    chunk.format.nullable.then(|| Ok(vec![byte; merged_len(chunk.cells, 1)?])).transpose()
}

/// Copies the validity bytes of a layer to those of the tile. A layer without them has no NULL.
fn lay_validity(
    layer: &Layer,
    decoded: &DecodedLayer,
    extents: &[u64],
    tile: &mut [u8],
) -> Result<()> {
    let placement = layer.placement.as_ref();
    match &decoded.validity {
        Some(validity) => copy_cells(placement, extents, 1, validity, tile),
        None => fill_cells(placement, extents, &1, tile),
    }
}

/// Merges layers of cells of `width` bytes.
fn fixed<P: Iterator<Item = Bytes>>(
    layers: &[Layer],
    chunk: &ChunkFormat<'_>,
    width: usize,
    spare: Vec<u8>,
    decoder: &mut LayerDecoder<'_, P>,
) -> Result<Tile> {
    let mut tile = unwritten(layers, chunk, width, spare)?;
    let mut validity = unwritten_validity(chunk)?;
    let mut memory = vec![];
    for layer in layers {
        let decoded = decoder.decode_layer(layer, memory)?;
        let values = &decoded.values.bytes;
        lay_fixed(layer.placement.as_ref(), chunk.extents, width, values, &mut tile)?;
        if let Some(validity) = &mut validity {
            lay_validity(layer, &decoded, chunk.extents, validity)?;
        }
        memory = decoded.into_memory();
    }
    Ok(Tile::fixed(tile.into(), width).with_validity(validity.map(Bytes::from)))
}

/// Copies cells of `width` bytes. Common widths are compile-time constants, because single cells of a
/// width known only at run time are slow to copy.
fn lay_fixed(
    placement: Option<&Placement>,
    extents: &[u64],
    width: usize,
    stored: &[u8],
    tile: &mut [u8],
) -> Result<()> {
    fn lay<const WIDTH: usize>(
        placement: Option<&Placement>,
        extents: &[u64],
        stored: &[u8],
        tile: &mut [u8],
    ) -> Result<()> {
        let (stored, tile) = (stored.as_chunks::<WIDTH>().0, tile.as_chunks_mut::<WIDTH>().0);
        copy_cells(placement, extents, 1, stored, tile)
    }
    match width {
        2 => lay::<2>(placement, extents, stored, tile),
        4 => lay::<4>(placement, extents, stored, tile),
        8 => lay::<8>(placement, extents, stored, tile),
        _ => copy_cells(placement, extents, width, stored, tile),
    }
}

/// Merges layers of values of any length. The spans of the tile refer to the fill value and to the
/// contents of all layers.
fn variable<P: Iterator<Item = Bytes>>(
    layers: &[Layer],
    chunk: &ChunkFormat<'_>,
    spare: Vec<u8>,
    decoder: &mut LayerDecoder<'_, P>,
) -> Result<Tile> {
    merged_len(chunk.cells, size_of::<Range<u64>>())?;
    let mut contents = spare;
    contents.clear();
    contents.extend_from_slice(&chunk.format.fill);
    let mut tile = vec![0..contents.len() as u64; chunk.cells];
    let mut validity = unwritten_validity(chunk)?;
    let mut memory = vec![];
    for layer in layers {
        let placement = layer.placement.as_ref();
        let decoded = decoder.decode_layer(layer, memory)?;
        let stored_shape = placement.map_or(chunk.extents, |placement| &placement.tile_shape);
        let spans = spans(&decoded, cell_count(stored_shape)?, contents.len() as u64)?;
        copy_cells(placement, chunk.extents, 1, &spans, &mut tile)?;
        contents.extend_from_slice(decoded.content()?);
        if let Some(validity) = &mut validity {
            lay_validity(layer, &decoded, chunk.extents, validity)?;
        }
        memory = decoded.into_memory();
    }
    Ok(Tile::variable(tile, contents.into())?.with_validity(validity.map(Bytes::from)))
}

/// Returns the spans of the `cells` values of a stored tile, moved by `base`. The offsets 0, 4 in 10 bytes
/// of content give 0..4 and 4..10: a value ends where the next one begins.
fn spans(decoded: &DecodedLayer, cells: usize, base: u64) -> Result<Vec<Range<u64>>> {
    let len = decoded.content()?.len() as u64;
    let stored: Vec<u64>;
    let starts = match decoded.offsets() {
        Some(offsets) => offsets,
        None => {
            let (offsets, _) = decoded.values.bytes.as_chunks::<8>();
            stored = offsets.iter().map(|offset| u64::from_le_bytes(*offset)).collect();
            stored.as_slice()
        }
    };
    if starts.len() != cells {
        let message = format!("{} offsets for {cells} cells", starts.len());
        return Err(Error::corrupt_region("offsets of a tile", message));
    }
    if !starts.is_sorted() || starts.last().is_some_and(|last| *last > len) {
        let ends = starts.iter().skip(1).copied().chain([len]);
        let wrong = starts.iter().zip(ends).find(|(start, end)| *start > end || *end > len);
        let (start, end) = wrong.unwrap_or((&0, 0));
        let message =
            format!("a value at bytes {start}..{end}, not a range in {len} bytes of content");
        return Err(Error::corrupt_region("offsets of a tile", message));
    }
    let mut spans = Vec::with_capacity(starts.len());
    spans.extend(starts.windows(2).map(|pair| base + pair[0]..base + pair[1]));
    spans.extend(starts.last().map(|last| base + last..base + len));
    Ok(spans)
}

#[cfg(test)]
mod tests;
