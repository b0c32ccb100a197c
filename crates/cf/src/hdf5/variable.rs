//! From a parsed dataset to a variable, and how it is stored.

use std::sync::Arc;

use super::attributes::{attributes, check_readable};
use super::context::Context;
use super::field::FixedFields;
use super::filters::{Filters, Trim};
use super::index::ChunkIndex;
use super::parse::{Dataset, Layout, StoredCell};
use super::segment::Segment;
use super::stored_variable::{ChunkPlace, ChunkPlaces, StoredVariable};
use super::virtual_layout::Mapping;
use crate::hierarchy::{Axis, CellType, Multiples, Variable};
use gridfusion_core::format::ByteOrder;
use gridfusion_core::format::codecs::StepDecoder;
use gridfusion_core::{Error, Result};

/// Bytes of a chunk of a dataset that is stored in one piece.
const CONTIGUOUS_CHUNK: u64 = 1 << 20;
/// The most bytes of a chunk of a virtual dataset.
const VIRTUAL_CHUNK: u64 = 16 << 20;
/// The most bytes of a cell.
const MAX_CELL: u64 = 64 << 10;
/// The most bytes of a chunk without filters: that of the HDF5 library.
const MAX_CHUNK: u64 = u32::MAX as u64;

/// Returns the variable that a dataset is, without its path, and how it is stored.
pub(super) fn variable(
    context: &Context<'_>,
    address: u64,
    dataset: &Dataset,
) -> Result<(Variable, StoredVariable)> {
    let cell = dataset.cell.clone();
    let cell = cell.map_err(|kind| Error::unsupported(format!("cells are {kind}")))?;
    check_readable(&dataset.attributes)?;
    let is_elsewhere = matches!(dataset.layout, Layout::Virtual(_)) || dataset.external.is_some();
    if is_elsewhere && matches!(cell.cell, CellType::Record(_)) && cell.cell.has_references() {
        return Err(Error::unsupported(
            "cells are compounds with texts or lists of any length, in other files or datasets",
        ));
    }
    let axes = context.dimensions.axes(address, dataset);
    let is_text = context.is_netcdf && context.dimensions.counts_characters(address, dataset);
    let shaped = CellDataset::new(dataset, cell, axes, is_text)?;
    let fill = shaped.fill(dataset);
    let (place, chunk_shape) = shaped.place(context, dataset)?;
    let is_text = shaped.cell.cell == CellType::Text;
    let width = shaped.cell.width as usize;
    let trim = shaped.cell.after_text.map(|after| Trim { width, after });
    let trim = trim.map(|trim| Arc::new(trim) as Arc<dyn StepDecoder>);
    let bits = shaped.cell.bits.map(|bits| Arc::new(bits) as Arc<dyn StepDecoder>);
    let multiples = shaped.cell.multiples.map(|it| Arc::new(it) as Arc<dyn StepDecoder>);
    let fixed = shaped.fixed_fields().map(|it| Arc::new(it) as Arc<dyn StepDecoder>);
    let last = trim.or(bits).or(multiples).or(fixed);
    let word = match shaped.cell.is_big_endian {
        true => shaped.cell.cell.word() as usize,
        false => 1,
    };
    let filters = Filters::new(dataset.filters.clone(), shaped.filtered_width, last)?;
    let stored = StoredVariable {
        shape: shaped.shape,
        chunk_shape: chunk_shape.clone(),
        width: shaped.cell.width,
        byte_order: ByteOrder::big(word),
        is_text,
        has_characters: shaped.has_characters,
        heap: shaped.cell.fields.heap.clone(),
        filters,
        place,
        found: ChunkPlaces::default(),
    };
    let variable = Variable {
        path: String::new(),
        axes: shaped.axes,
        chunk_shape,
        cell: shaped.cell.cell,
        fill,
        fill_is_missing: false,
        attributes: attributes(&dataset.attributes).into(),
    };
    Ok((variable, stored))
}

/// A dataset whose last axis is part of the cell, if it is one of characters.
struct CellDataset {
    cell: StoredCell,
    axes: Vec<Axis>,
    shape: Vec<u64>,
    has_characters: bool,
    /// Bytes per cell of the dataset, which filters shuffle.
    filtered_width: u64,
}

impl CellDataset {
    /// NetCDF-4 stores text of a fixed length as single characters, with an axis of them.
    fn new(
        dataset: &Dataset,
        mut cell: StoredCell,
        mut axes: Vec<Axis>,
        is_text: bool,
    ) -> Result<Self> {
        let (filtered_width, mut shape) = (cell.width, dataset.shape.clone());
        let len = shape.last().copied().unwrap_or_default();
        let is_virtual = matches!(dataset.layout, Layout::Virtual(_));
        let has_characters = is_text && len > 0 && !is_virtual;
        if has_characters {
            if let Layout::Chunked { chunk_shape, .. } = &dataset.layout
                && chunk_shape.last() != Some(&len)
            {
                let of = chunk_shape.last().copied().unwrap_or_default();
                return Err(Error::unsupported(format!(
                    "texts of {len} characters in chunks of {of} characters; `nccopy -c` makes chunks of whole texts"
                )));
            }
            cell.width = len;
            cell.cell = CellType::FixedUtf8(u32::try_from(len).unwrap_or(u32::MAX));
            axes.pop();
            shape.pop();
        }
        if cell.width > MAX_CELL || cell.width == 0 {
            let message = format!("cells of {} bytes, expected 1 to {MAX_CELL}", cell.width);
            return Err(Error::unsupported(message));
        }
        let cells = shape.iter().chain(axes.iter().map(|axis| &axis.len));
        let bytes = shape.iter().try_fold(cell.width, |bytes, len| bytes.checked_mul(*len));
        if bytes.is_none() || cells.clone().any(|&len| len > u64::MAX / 2) {
            return Err(Error::unsupported(format!("cells of shape {shape:?} are too many")));
        }
        Ok(Self { cell, axes, shape, has_characters, filtered_width })
    }

    /// Returns what is done with the fields of compounds.
    fn fixed_fields(&self) -> Option<FixedFields> {
        let (width, fixes) = (self.cell.width as usize, self.cell.fields.fixes.clone());
        (!fixes.is_empty()).then_some(FixedFields { width, fixes })
    }

    /// Returns the bytes of a cell that was never written.
    fn fill(&self, dataset: &Dataset) -> Vec<u8> {
        let Some(width) = self.cell.cell.width() else { return vec![] };
        let width = width as usize;
        // Behind the end of an external file, the HDF5 library reads zeros.
        let stored = dataset.fill.as_ref().filter(|_| dataset.external.is_none());
        let stored = stored.filter(|fill| fill.len() as u64 == self.filtered_width);
        let Some(stored) = stored else { return vec![0; width] };
        let mut fill: Vec<u8> = stored.iter().copied().cycle().take(width).collect();
        if let Some(bits) = self.cell.bits {
            bits.apply(&mut fill);
        }
        if self.cell.is_big_endian {
            fill.chunks_mut(self.cell.cell.word() as usize).for_each(<[u8]>::reverse);
        }
        if let Some(after) = self.cell.after_text {
            Trim { width, after }.apply(&mut fill);
        }
        // A fill value that cannot be a time is one as stored.
        if let Some(fixed) = self.fixed_fields() {
            _ = fixed.apply(&mut fill);
        }
        if let Some(multiples) = self.cell.multiples.map(Multiples::of_little_endian) {
            _ = multiples.apply(&mut fill);
        }
        fill
    }

    /// Returns where the chunks are, and their shape.
    fn place(&self, context: &Context<'_>, dataset: &Dataset) -> Result<(ChunkPlace, Vec<u64>)> {
        let widths = context.widths;
        let bytes = self.shape.iter().fold(self.cell.width, |bytes, len| bytes * len);
        if let Some(segments) = &dataset.external {
            return self.external(context, dataset, segments, bytes);
        }
        match &dataset.layout {
            Layout::Compact { bytes: stored, address } => {
                if (stored.len() as u64) < bytes {
                    let message = format!("{} bytes of {bytes}", stored.len());
                    return Err(Error::corrupt_region("compact dataset", message));
                }
                let whole: Vec<u64> = self.shape.iter().map(|&len| len.max(1)).collect();
                let start = address.and_then(|address| address.checked_add(widths.base));
                let place = match start {
                    Some(start) => ChunkPlace::Contiguous(start),
                    None => ChunkPlace::Inline(stored.clone().into()),
                };
                Ok((place, whole))
            }
            Layout::Virtual(mappings) => {
                let chunk_shape = virtual_chunks(&self.shape, self.cell.width, mappings)?;
                Ok((ChunkPlace::Virtual(Arc::clone(mappings)), chunk_shape))
            }
            Layout::Contiguous { address } => {
                let chunk_shape = pieces(&self.shape, self.cell.width, CONTIGUOUS_CHUNK);
                if widths.is_undefined(*address) {
                    return Ok((ChunkPlace::Nowhere, chunk_shape));
                }
                let start = address.checked_add(widths.base);
                let end = start.and_then(|start| start.checked_add(bytes));
                match (start, end.filter(|&end| end <= context.file_len)) {
                    (Some(start), Some(_)) => Ok((ChunkPlace::Contiguous(start), chunk_shape)),
                    _ => Err(Error::corrupt(
                        "contiguous dataset",
                        start.unwrap_or(*address),
                        format!("{bytes} bytes in a file of {} bytes", context.file_len),
                    )),
                }
            }
            Layout::Chunked { chunk_shape, index, address, are_cut_chunks_plain } => {
                let cells = chunk_shape.iter().try_fold(1_u64, |all, len| all.checked_mul(*len));
                let len = cells.and_then(|cells| cells.checked_mul(self.filtered_width));
                let chunk_len = len.filter(|&len| len <= MAX_CHUNK).ok_or_else(|| {
                    Error::unsupported(format!("chunks of {chunk_shape:?} cells are too large"))
                })?;
                let index = ChunkIndex {
                    kind: *index,
                    address: *address,
                    max_shape: dataset.max_shape.clone(),
                    chunk_shape: chunk_shape.clone(),
                    chunk_len,
                    has_filters: !dataset.filters.is_empty(),
                };
                let mut chunk_shape = chunk_shape.clone();
                chunk_shape.truncate(self.shape.len());
                let are_cut_chunks_plain = *are_cut_chunks_plain;
                Ok((ChunkPlace::Chunked { index, are_cut_chunks_plain }, chunk_shape))
            }
        }
    }
}

impl CellDataset {
    /// Returns the place of a dataset whose `bytes` are in other files, and the shape of its chunks.
    fn external(
        &self,
        context: &Context<'_>,
        dataset: &Dataset,
        segments: &Arc<[Segment]>,
        bytes: u64,
    ) -> Result<(ChunkPlace, Vec<u64>)> {
        let is_elsewhere = match &dataset.layout {
            Layout::Contiguous { address } => context.widths.is_undefined(*address),
            _ => false,
        };
        if !is_elsewhere || !dataset.filters.is_empty() || self.cell.cell == CellType::Text {
            return Err(Error::unsupported(
                "cells in external files that are chunked, filtered, or texts of any length",
            ));
        }
        let held = segments.iter().try_fold(0_u64, |all, it| all.checked_add(it.len?));
        if held.is_some_and(|held| held < bytes) {
            let message = format!("{} bytes of {bytes}", held.unwrap_or_default());
            return Err(Error::corrupt_region("external file list", message));
        }
        let chunk_shape = pieces(&self.shape, self.cell.width, CONTIGUOUS_CHUNK);
        Ok((ChunkPlace::External(Arc::clone(segments)), chunk_shape))
    }
}

/// Returns the shape of the chunks of a virtual dataset, of at most `VIRTUAL_CHUNK` bytes: mostly one per mapping,
/// so that few chunks of other datasets are decoded more than once. If mappings grow, its shape is not known yet.
///
/// # Errors
/// `Corrupt` if a mapping has cells outside of the shape.
pub fn virtual_chunks(shape: &[u64], width: u64, mappings: &[Mapping]) -> Result<Vec<u64>> {
    if mappings.iter().any(Mapping::grows) {
        return Ok(pieces(shape, width, VIRTUAL_CHUNK));
    }
    for mapping in mappings {
        let axes = mapping.target.iter().flatten().zip(shape);
        if axes.into_iter().any(|(steps, len)| steps.end() > *len) {
            let message = format!("a mapping to {:?} in a shape of {shape:?}", mapping.target);
            return Err(Error::corrupt_region("virtual dataset", message));
        }
    }
    let first = mappings.first().and_then(|mapping| mapping.target.as_ref());
    let spans: Vec<u64> = match first {
        Some(axes) => axes.iter().map(|steps| steps.end().saturating_sub(steps.start)).collect(),
        None => shape.to_vec(),
    };
    Ok(pieces(&spans, width, VIRTUAL_CHUNK))
}

/// Returns the shape of pieces of a dataset that are contiguous in it, of about `most` bytes.
///
/// ```text
///   (365, 721, 1440) of 4 bytes ─▶ (1, 182, 1440): 1 MiB are 182 of the 721 rows
/// ```
fn pieces(shape: &[u64], width: u64, most: u64) -> Vec<u64> {
    let mut room = (most / width.max(1)).max(1);
    let mut piece: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&len| {
            let taken = len.clamp(1, room);
            // Axes before one that is not taken whole are taken one by one.
            room = if taken < len { 1 } else { room / taken };
            taken
        })
        .collect();
    piece.reverse();
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_contiguous() {
        for (shape, width, expected) in [
            (&[365, 721, 1440][..], 4, &[1, 182, 1440][..]),
            (&[10, 10], 8, &[10, 10]),
            (&[3, 1 << 20], 8, &[1, 1 << 17]),
            (&[1 << 30], 1, &[1 << 20]),
            (&[4, 0, 5], 4, &[4, 1, 5]),
            (&[], 4, &[]),
            (&[1000, 2, 256 << 10], 4, &[1, 1, 256 << 10]),
        ] {
            assert_eq!(pieces(shape, width, CONTIGUOUS_CHUNK), expected, "{shape:?}");
        }
    }
}
