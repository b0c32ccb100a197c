//! From the stored layers of a chunk to one tile.
//!
//! ```text
//!   layer 0  ▒▒▒▒▒▒▒▒      tile  ▒▒▒▒▒▒▒▒      . fill value
//!            ▒▒▒▒▒▒▒▒  ─▶        ▒▒▒▓▓▓▓▓
//!   layer 1     ▓▓▓▓▓            ...▓▓▓▓▓      rows are copied run by run, oldest layer first
//!               ▓▓▓▓▓
//! ```
//!
//! A chunk that is one whole layer in row-major order, as nearly all are, is that layer's bytes.

use std::ops::Range;

use bytes::Bytes;

use super::Tile;
use super::runs::{cell_count, copy_cells, fill_cells, too_small};
use crate::error::{Error, Result};
use crate::format::{Decoded, Layer, Placement, Scratch, StoredChunk};

/// How the cells of a value are stored, and what stands for those that are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFormat {
    /// Bytes of a cell; `None` if they may be any number.
    pub width: Option<usize>,
    /// Whether a byte per cell says if it is NULL.
    pub nullable: bool,
    /// The bytes of a cell that was never written.
    pub fill: Vec<u8>,
    /// Whether a cell that was never written is a value rather than NULL, where cells can be NULL.
    pub fill_is_valid: bool,
}

impl CellFormat {
    /// Cells of `width` bytes that are all there.
    pub fn fixed(width: usize) -> Self {
        Self { width: Some(width), nullable: false, fill: vec![], fill_is_valid: true }
    }
}

/// A layer whose payloads have been decoded.
struct Open<'a> {
    placement: Option<&'a Placement>,
    values: Decoded,
    content: Option<Decoded>,
    validity: Option<Bytes>,
}

/// Decodes the fetched `payloads`, in the order of [`Layer::payloads`], and lays the layers over one
/// another: the cells of a chunk of these `extents`.
pub(super) fn decode(
    stored: &StoredChunk,
    payloads: &mut impl Iterator<Item = Bytes>,
    extents: &[u64],
    format: &CellFormat,
    spare: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<Tile> {
    let mut spare = Some(spare);
    let alone = stored.is_whole();
    let mut open = Vec::with_capacity(stored.layers.len());
    for layer in &stored.layers {
        // Where the decoded bytes are the tile, they take its memory.
        let memory = if alone { spare.take().unwrap_or_default() } else { vec![] };
        open.push(open_layer(layer, payloads, memory, scratch)?);
    }
    let cells = cell_count(extents)?;
    match format.width {
        Some(width) if alone => whole_fixed(open, cells, width, format),
        Some(width) => {
            let tile = fixed(&open, extents, cells, width, format, spare.unwrap_or_default())?;
            Ok(Tile::fixed(tile.into(), width).with_validity(validity(&open, extents, format)?))
        }
        None => {
            let (spans, content) = variable(&open, extents, cells, format)?;
            Ok(Tile::variable(spans, content)?.with_validity(validity(&open, extents, format)?))
        }
    }
}

fn open_layer<'a>(
    layer: &'a Layer,
    payloads: &mut impl Iterator<Item = Bytes>,
    memory: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<Open<'a>> {
    let missing = || Error::internal("a payload that was not fetched");
    let fixed = layer.content.is_none();
    let (for_values, for_content) = if fixed { (memory, vec![]) } else { (vec![], memory) };
    let mut next = || payloads.next().ok_or_else(missing);
    let values = layer.values.decode(next()?, for_values, scratch)?;
    let content = match &layer.content {
        Some(content) => Some(content.decode(next()?, for_content, scratch)?),
        None => None,
    };
    let validity = match &layer.validity {
        Some(validity) => Some(validity.decode(next()?, vec![], scratch)?.bytes),
        None => None,
    };
    Ok(Open { placement: layer.placement.as_ref(), values, content, validity })
}

/// Chunks that are more than one tile as it is are made, and a file can promise any size of them.
const MAX_MADE: usize = 1 << 31;

/// Fails for a chunk that is too large to be made.
fn makeable(cells: usize, width: usize) -> Result<usize> {
    let bytes = cells.checked_mul(width).filter(|&bytes| bytes <= MAX_MADE);
    bytes.ok_or_else(|| {
        let most = MAX_MADE >> 20;
        Error::unsupported(format!(
            "a chunk of {cells} cells of {width} bytes that is not one tile as stored; at most {most} MiB"
        ))
    })
}

/// A layer that is the chunk.
fn whole_fixed(
    open: Vec<Open<'_>>,
    cells: usize,
    width: usize,
    format: &CellFormat,
) -> Result<Tile> {
    let Some(layer) = open.into_iter().next() else {
        return Err(Error::internal("no layer where there is one"));
    };
    if Some(layer.values.bytes.len()) != cells.checked_mul(width) {
        return Err(too_small());
    }
    let validity = if format.nullable { layer.validity } else { None };
    if validity.as_ref().is_some_and(|validity| validity.len() != cells) {
        return Err(too_small());
    }
    Ok(Tile::fixed(layer.values.bytes, width).with_validity(validity))
}

fn wrong_count(spans: &[Range<u64>]) -> Error {
    let message = format!("{} values, another number than the tile has cells", spans.len());
    Error::corrupt("offsets of a tile", 0, message)
}

/// Cells of one width, layer over layer, in the memory of `spare`.
fn fixed(
    open: &[Open<'_>],
    extents: &[u64],
    cells: usize,
    width: usize,
    format: &CellFormat,
    spare: Vec<u8>,
) -> Result<Vec<u8>> {
    let bytes = makeable(cells, width)?;
    let mut tile = spare;
    if covers(open, extents) {
        tile.resize(bytes, 0); // every cell is written below
    } else if format.fill.len() != width {
        return Err(Error::internal("a fill value of another width than its cells"));
    } else {
        tile.clear();
        tile.reserve_exact(bytes);
        (0..cells).for_each(|_| tile.extend_from_slice(&format.fill));
    }
    for layer in open {
        lay_fixed(layer.placement, extents, width, &layer.values.bytes, &mut tile)?;
    }
    Ok(tile)
}

/// Whether one of the layers holds every cell of the chunk.
fn covers(open: &[Open<'_>], extents: &[u64]) -> bool {
    let whole = |placement: &Placement| {
        placement.region.iter().zip(extents).all(|(region, &len)| *region == (0..len))
    };
    open.iter().any(|layer| layer.placement.is_none_or(whole))
}

/// One byte per cell, 0 for NULL; `None` if no cell can be NULL.
fn validity(open: &[Open<'_>], extents: &[u64], format: &CellFormat) -> Result<Option<Bytes>> {
    if !format.nullable {
        return Ok(None);
    }
    let mut tile = vec![u8::from(format.fill_is_valid); makeable(cell_count(extents)?, 1)?];
    for layer in open {
        match &layer.validity {
            Some(validity) => copy_cells(layer.placement, extents, 1, validity, &mut tile)?,
            None => fill_cells(layer.placement, extents, &1, &mut tile)?,
        }
    }
    Ok(Some(tile.into()))
}

/// Spans of all cells, and the bytes that they are spans of: those of every layer, then the fill.
fn variable(
    open: &[Open<'_>],
    extents: &[u64],
    cells: usize,
    format: &CellFormat,
) -> Result<(Vec<Range<u64>>, Bytes)> {
    let content = |layer: &Open<'_>| match &layer.content {
        Some(content) => Ok(content.bytes.clone()),
        None => Err(Error::internal("values of any length without their content")),
    };
    if let [layer] = open
        && layer.placement.is_none()
    {
        let content = content(layer)?;
        let spans = spans(layer, &content, 0)?;
        return if spans.len() == cells { Ok((spans, content)) } else { Err(wrong_count(&spans)) };
    }
    makeable(cells, size_of::<Range<u64>>())?;
    let mut contents = Vec::new();
    let mut all = Vec::with_capacity(open.len());
    for layer in open {
        let content = content(layer)?;
        all.push(spans(layer, &content, contents.len() as u64)?);
        contents.extend_from_slice(&content);
    }
    let fill = contents.len() as u64;
    contents.extend_from_slice(&format.fill);
    let mut tile = vec![fill..contents.len() as u64; cells];
    for (layer, spans) in open.iter().zip(all) {
        let stored_shape = layer.placement.map_or(extents, |placement| &placement.tile_shape);
        if spans.len() != cell_count(stored_shape)? {
            return Err(wrong_count(&spans));
        }
        copy_cells(layer.placement, extents, 1, &spans, &mut tile)?;
    }
    Ok((tile, contents.into()))
}

/// The spans of a layer's cells, moved by `base`.
fn spans(layer: &Open<'_>, content: &Bytes, base: u64) -> Result<Vec<Range<u64>>> {
    let stored: Vec<u64>;
    let starts = match layer.content.as_ref().and_then(|content| content.offsets.as_ref()) {
        Some(offsets) => offsets,
        None => {
            let (offsets, _) = layer.values.bytes.as_chunks::<8>();
            stored = offsets.iter().map(|offset| u64::from_le_bytes(*offset)).collect();
            &stored
        }
    };
    let ends = starts.iter().skip(1).copied().chain([content.len() as u64]);
    let span = |(&start, end): (&u64, u64)| {
        if start > end || end > content.len() as u64 {
            let len = content.len();
            let message = format!("a value at bytes {start}..{end} of {len}");
            return Err(Error::corrupt("offsets of a tile", 0, message));
        }
        Ok(base + start..base + end)
    };
    starts.iter().zip(ends).map(span).collect()
}

/// Copies cells of `width` bytes; as elements of that width where that is a common one, because single
/// cells of a width that is not known beforehand are slow to copy.
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
