//! [`TileEncoder`]: the filters of a pipeline in the direction of writing, from cells to a stored tile.
//!
//! ```text
//!   cells ──▶ chunks of at most 64 KiB, of whole cells ──▶ filter ──▶ filter ──▶ … ──▶ a tile of chunks
//! ```
//!
//! Between two filters, a chunk has parts of metadata, the last filter's first, and parts of data. Compressors encode each part by
//! itself, the metadata of earlier filters among them.

use std::borrow::Cow;

use md5::{Digest, Md5};
use sha2::Sha256;

use super::encode_words::{
    MOST_WINDOW, Windows, deltas, double_deltas, positive_deltas, reduce, run_lengths, xor,
};
use super::pipeline::{Filter, Pipeline};
use super::plan::{Field, is_positive_delta_byte, is_window_integer};
use super::word::Width;
use crate::bytes::datatype::Datatype;
use gridfusion_core::format::compress::Compressor;
use gridfusion_core::format::shuffle::{shuffle_bits, shuffle_bytes};
use gridfusion_core::{Error, Result};

/// The most bytes of a chunk, unless a single cell has more.
pub(in crate::bytes) const MOST_CHUNK: usize = 1 << 16;
/// Bit shuffling works on blocks of this length.
const BIT_BLOCK: usize = 8192;

/// A chunk between two filters: parts of metadata, the last filter's first, and parts of data.
#[derive(Debug, Clone, Default)]
pub(super) struct EncodedChunk<'a> {
    pub(super) metadata: Vec<Vec<u8>>,
    pub(super) data: Vec<Cow<'a, [u8]>>,
}

/// Encodes the tiles of one file.
#[derive(Debug, Clone)]
pub(crate) struct TileEncoder {
    filters: Vec<Filter>,
    field: Field,
}

impl TileEncoder {
    /// Makes the encoder of the tiles of `field`.
    pub(crate) fn new(pipeline: &Pipeline, field: Field) -> Self {
        Self { filters: pipeline.filters.clone(), field }
    }

    /// Encodes a tile of cells of one size.
    ///
    /// # Errors
    /// `Unsupported` for filters that cannot encode such cells, and for tiles that the format does not have.
    pub(crate) fn tile(&self, cells: &[u8]) -> Result<Vec<u8>> {
        let cell = usize::try_from(self.field.cell_size).unwrap_or(usize::MAX).max(1);
        let len = (MOST_CHUNK / cell).max(1).saturating_mul(cell);
        self.tile_of(cells.chunks(len).collect())
    }

    /// Encodes a tile of cells of any size, whose ends are given.
    ///
    /// # Errors
    /// As [`TileEncoder::tile`].
    pub(crate) fn tile_of_cells(
        &self,
        cells: &[u8],
        ends: impl Iterator<Item = usize>,
    ) -> Result<Vec<u8>> {
        let (mut chunks, mut start, mut last) = (vec![], 0, 0);
        for end in ends {
            if end - start > MOST_CHUNK && last > start {
                chunks.push(&cells[start..last]);
                start = last;
            }
            last = end;
        }
        chunks.push(&cells[start..]);
        self.tile_of(chunks)
    }

    /// Encodes a tile of chunks.
    fn tile_of(&self, mut chunks: Vec<&[u8]>) -> Result<Vec<u8>> {
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        let mut tile = (chunks.len() as u64).to_le_bytes().to_vec();
        for cells in chunks {
            let data = vec![Cow::Borrowed(cells)];
            let mut chunk = EncodedChunk { metadata: vec![], data };
            let mut datatype = self.field.datatype;
            for filter in &self.filters {
                let encoded = encode(*filter, datatype, &self.field, MOST_WINDOW, chunk)?;
                chunk = encoded.ok_or_else(|| not_encoded(*filter, datatype))?;
                datatype = filter.output_type(datatype);
            }
            append_chunk(&mut tile, cells.len(), &chunk)?;
        }
        Ok(tile)
    }
}

fn not_encoded(filter: Filter, datatype: Datatype) -> Error {
    let name = filter.name();
    match filter {
        Filter::PositiveDelta => {
            Error::unsupported(format!("the filter {name} of numbers that descend; choose delta"))
        }
        _ => Error::unsupported(format!("writing {datatype} cells through the filter {name}")),
    }
}

/// Appends the lengths of a chunk, its metadata and its data.
pub(super) fn append_chunk(
    tile: &mut Vec<u8>,
    raw_len: usize,
    chunk: &EncodedChunk<'_>,
) -> Result<()> {
    let data = chunk.data.iter().map(|part| part.len()).sum();
    let metadata = chunk.metadata.iter().map(Vec::len).sum();
    for len in [raw_len, data, metadata] {
        tile.extend(len_bytes(len)?);
    }
    chunk.metadata.iter().for_each(|part| tile.extend(part));
    chunk.data.iter().for_each(|part| tile.extend(part.iter()));
    Ok(())
}

/// Returns a length as the format stores it.
fn len_bytes(len: usize) -> Result<[u8; 4]> {
    let len = u32::try_from(len);
    let len = len.map_err(|_| Error::unsupported("TileDB cells of 4 GiB or more"))?;
    Ok(len.to_le_bytes())
}

/// Applies one filter to a chunk whose data has the type `datatype`; `None` if it cannot encode such data.
pub(super) fn encode<'a>(
    filter: Filter,
    datatype: Datatype,
    field: &Field,
    window: usize,
    chunk: EncodedChunk<'a>,
) -> Result<Option<EncodedChunk<'a>>> {
    let (width, is_signed) = (Width::new(datatype), datatype.is_signed());
    let compress =
        |with: Compressor, level| in_parts(&chunk, |part| with.compress(part, level).map(Some));
    Ok(match filter {
        Filter::Noop => Some(chunk),
        Filter::Gzip { level } => compress(Compressor::Gzip, level_or(level, 6))?,
        Filter::Zstd { level } => compress(Compressor::Zstd, level_or(level, 3))?,
        Filter::Bzip2 { level } => compress(Compressor::Bzip2, level_or(level, 9))?,
        Filter::RunLength => {
            let cell = usize::try_from(field.cell_size).unwrap_or_default();
            in_parts(&chunk, |part| Ok(run_lengths(cell, part)))?
        }
        Filter::Delta { .. } | Filter::DoubleDelta { .. } => {
            let Ok((width, is_signed)) = filter.delta_words(datatype) else { return Ok(None) };
            match filter {
                Filter::Delta { .. } => in_parts(&chunk, |part| Ok(deltas(width, part)))?,
                _ => in_parts(&chunk, |part| Ok(double_deltas(width, is_signed, part)))?,
            }
        }
        Filter::BitWidthReduction => {
            let is_reduced = is_window_integer(datatype, field) && width != Width::One;
            match is_reduced {
                true => in_windows(chunk, window, width, true, |it, windows| {
                    reduce(width, is_signed, it, windows);
                    true
                })?,
                false => Some(chunk),
            }
        }
        Filter::PositiveDelta => {
            let is_encoded = is_window_integer(datatype, field) || is_positive_delta_byte(datatype);
            match is_encoded {
                true => in_windows(chunk, window, width, false, |it, windows| {
                    positive_deltas(width, is_signed, it, windows)
                })?,
                false => Some(chunk),
            }
        }
        Filter::Byteshuffle => in_segments(chunk, |part| Some(shuffle_bytes(width.bytes(), part)))?,
        Filter::Bitshuffle => {
            in_segments(cut_at_8(chunk), |part| Some(shuffle_blocks(width, part)))?
        }
        Filter::Xor => in_segments(chunk, |part| xor(width, part))?,
        Filter::Md5 => Some(with_checksums(chunk, |bytes| Md5::digest(bytes).to_vec())),
        Filter::Sha256 => Some(with_checksums(chunk, |bytes| Sha256::digest(bytes).to_vec())),
        Filter::Lz4
        | Filter::ScaleFloat { .. }
        | Filter::AesGcm
        | Filter::Dictionary
        | Filter::Webp => None,
    })
}

/// Returns the level of a compressor, whose default TileDB stores as -1.
fn level_or(level: i32, default: i32) -> i32 {
    if level == -1 { default } else { level }
}

/// A chunk after a filter: its own metadata comes first, and its data is one part for the next filter.
pub(super) fn encoded<'a>(
    own: Vec<u8>,
    mut metadata: Vec<Vec<u8>>,
    data: Vec<u8>,
) -> EncodedChunk<'a> {
    metadata.insert(0, own);
    EncodedChunk { metadata, data: vec![Cow::Owned(data)] }
}

/// Encodes each part by itself: the parts of metadata, and then those of data.
pub(super) fn in_parts<'a>(
    chunk: &EncodedChunk<'_>,
    encode: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Option<EncodedChunk<'a>>> {
    let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
    let (mut own, mut data) = (counts.map(u32::to_le_bytes).concat(), vec![]);
    let metadata = chunk.metadata.iter().map(Vec::as_slice);
    for part in metadata.chain(chunk.data.iter().map(AsRef::as_ref)) {
        let Some(stored) = encode(part)? else { return Ok(None) };
        own.extend(len_bytes(part.len())?);
        own.extend(len_bytes(stored.len())?);
        data.extend(stored);
    }
    Ok(Some(encoded(own, vec![], data)))
}

/// Encodes the parts of the data, and lists their encoded lengths.
pub(super) fn in_segments<'a>(
    chunk: EncodedChunk<'_>,
    encode: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<Option<EncodedChunk<'a>>> {
    let (mut own, mut data) = ((chunk.data.len() as u32).to_le_bytes().to_vec(), vec![]);
    for part in &chunk.data {
        let Some(stored) = encode(part) else { return Ok(None) };
        own.extend(len_bytes(stored.len())?);
        data.extend(stored);
    }
    Ok(Some(encoded(own, chunk.metadata, data)))
}

/// Encodes windows of the parts of the data, which do not cross parts. The metadata may begin with the length of the raw data.
fn in_windows<'a>(
    chunk: EncodedChunk<'_>,
    most: usize,
    width: Width,
    has_total: bool,
    encode: impl Fn(&[u8], &mut Windows) -> bool,
) -> Result<Option<EncodedChunk<'a>>> {
    let total: usize = chunk.data.iter().map(|part| part.len()).sum();
    let total = len_bytes(total)?;
    let mut windows = Windows::default();
    for part in &chunk.data {
        for window in part.chunks((most / width.bytes()).max(1) * width.bytes()) {
            if !encode(window, &mut windows) {
                return Ok(None);
            }
        }
    }
    let (own, data) = windows.end(if has_total { &total } else { &[] });
    Ok(Some(encoded(own, chunk.metadata, data)))
}

fn with_checksums(
    mut chunk: EncodedChunk<'_>,
    digest: impl Fn(&[u8]) -> Vec<u8>,
) -> EncodedChunk<'_> {
    let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
    let mut own = counts.map(u32::to_le_bytes).concat();
    let metadata = chunk.metadata.iter().map(Vec::as_slice);
    for part in metadata.chain(chunk.data.iter().map(AsRef::as_ref)) {
        own.extend((part.len() as u64).to_le_bytes());
        own.extend(digest(part));
    }
    chunk.metadata.insert(0, own);
    chunk
}

/// Cuts each part into a multiple of 8 bytes and a rest.
fn cut_at_8(chunk: EncodedChunk<'_>) -> EncodedChunk<'_> {
    let cut = |part: &Cow<'_, [u8]>| {
        let (whole, rest) = part.split_at(part.len() / 8 * 8);
        let parts = [whole.to_vec(), rest.to_vec()];
        parts.into_iter().filter(|part| !part.is_empty()).map(Cow::Owned)
    };
    EncodedChunk { data: chunk.data.iter().flat_map(cut).collect(), metadata: chunk.metadata }
}

/// Shuffles the bits of each block. Parts that are no whole words, or no multiple of 8 bytes, stay as they are.
pub(super) fn shuffle_blocks(width: Width, part: &[u8]) -> Vec<u8> {
    let size = width.bytes();
    if !part.len().is_multiple_of(size) || !part.len().is_multiple_of(8) {
        return part.to_vec();
    }
    let mut shuffled = Vec::with_capacity(part.len());
    for block in part.chunks(BIT_BLOCK) {
        let (whole, rest) = block.split_at(block.len() / size / 8 * 8 * size);
        shuffled.extend(shuffle_bits(size, whole));
        shuffled.extend(rest);
    }
    shuffled
}
