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
use crate::error::{Error, Result};
use crate::format::{Decoded, Layer, Placement, Scratch, StoredChunk};
use crate::grid::unravel;

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

fn cell_count(extents: &[u64]) -> Result<usize> {
    let cells = extents.iter().try_fold(1_u64, |cells, &len| cells.checked_mul(len));
    let cells = cells.and_then(|cells| usize::try_from(cells).ok());
    cells.ok_or_else(|| Error::unsupported(format!("a chunk of {extents:?} cells")))
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

fn too_small() -> Error {
    Error::internal("a tile of another size than its chunk")
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
        copy_cells(layer.placement, extents, &layer.values.bytes, &mut tile, width)?;
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
            Some(validity) => copy_cells(layer.placement, extents, validity, &mut tile, 1)?,
            None => each_run(layer.placement, extents, |run| {
                tile.get_mut(run.to..run.to + run.len).ok_or_else(too_small)?.fill(1);
                Ok(())
            })?,
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
        each_run(layer.placement, extents, |run| {
            let cells = tile.get_mut(run.to..run.to + run.len).ok_or_else(too_small)?;
            for (at, cell) in cells.iter_mut().enumerate() {
                let span = spans.get(run.from + at * run.stride);
                *cell = span.ok_or_else(|| wrong_count(&spans))?.clone();
            }
            Ok(())
        })?;
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

/// Copies the cells of one stored tile to their places in the chunk's.
fn copy_cells(
    placement: Option<&Placement>,
    extents: &[u64],
    from: &[u8],
    to: &mut [u8],
    width: usize,
) -> Result<()> {
    each_run(placement, extents, |run| {
        let to = to.get_mut(run.to * width..(run.to + run.len) * width).ok_or_else(too_small)?;
        if run.stride == 1 {
            let from = from.get(run.from * width..(run.from + run.len) * width);
            to.copy_from_slice(from.ok_or_else(too_small)?);
            return Ok(());
        }
        for (at, cell) in to.chunks_exact_mut(width).enumerate() {
            let start = (run.from + at * run.stride) * width;
            cell.copy_from_slice(from.get(start..start + width).ok_or_else(too_small)?);
        }
        Ok(())
    })
}

/// Neighbours on the last axis of a chunk: so many cells, in the chunk from `to` on, in the stored
/// tile from `from` on and `stride` apart.
struct Run {
    to: usize,
    from: usize,
    len: usize,
    stride: usize,
}

/// Calls `visit` with every run of a layer's cells.
fn each_run(
    placement: Option<&Placement>,
    extents: &[u64],
    mut visit: impl FnMut(Run) -> Result<()>,
) -> Result<()> {
    let Some(placement) = placement else {
        return visit(Run { to: 0, from: 0, len: cell_count(extents)?, stride: 1 });
    };
    let Placement { region, tile_shape, origin, column_major } = placement;
    cell_count(tile_shape)?; // no place in the tile overflows then
    let strides = if *column_major { column_strides(tile_shape) } else { row_strides(tile_shape) };
    let chunk_strides = row_strides(extents);
    let counts: Vec<u64> = region.iter().map(|range| range.end - range.start).collect();
    let Some((len, outer)) = counts.split_last() else { return Ok(()) };
    let last = outer.len();
    let rows: u64 = outer.iter().product();
    for row in 0..if *len == 0 { 0 } else { rows } {
        let mut at = unravel(row, outer);
        at.push(0);
        let (mut to, mut from) = (0, 0);
        for axis in 0..at.len() {
            let cell = region[axis].start + at[axis];
            to += cell * chunk_strides[axis];
            from += (origin[axis] + cell) * strides[axis];
        }
        let (to, from, len) = (to as usize, from as usize, *len as usize);
        visit(Run { to, from, len, stride: strides[last] as usize })?;
    }
    Ok(())
}

/// Cells between neighbours on each axis.
fn row_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

fn column_strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    strides
}
