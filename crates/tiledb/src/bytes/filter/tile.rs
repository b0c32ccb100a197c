//! Decodes whole tiles, chunk by chunk, through the inverses of all filters.
//!
//! ```text
//!   u64 chunks, then per chunk:
//!     u32 raw length, u32 length of the data, u32 length of the metadata, metadata, data
//!
//!              stage 0               stage 1             last stage
//!   stored ──────────────▶ scratch ───────────▶ scratch ────────────▶ tile
//! ```
//!
//! The last stage that writes has the chunk's place in the tile as its target. The others write to scratch
//! memory, which stays in the processor's cache from chunk to chunk. Writers cut chunks of 64 KiB unless
//! they are told otherwise.
//!
//! For example, a tile of 100 000 bytes has chunks of 65 536 and 34 464 bytes. The second is decoded to byte
//! 65 536 of the tile, and must have exactly 34 464 bytes after all stages.

use std::fmt;

use bytes::Bytes;

use super::chunk::{ClaimLimit, FilteredChunk, Target, Targets, may_preallocate};
use super::pipeline::Pipeline;
use super::stage::Stage;
use gridfusion_core::format::compress::Contexts;
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::format::{DecodedPayload, PayloadDecoder, Scratch};
use gridfusion_core::{Error, Result};

/// Bytes of the lengths of a chunk.
const CHUNK_HEADER_LEN: usize = 12;

/// Factor in the limit of a chunk's bytes between two filters, relative to its bytes in the tile. Floats may
/// be stored as integers twice as wide, and each integer may have a window of its own, with metadata.
const MOST_GROWTH: u64 = 16;
/// Bytes added to that limit, because compressors and checksums add a few bytes to every part.
const MORE_GROWTH: u64 = 1 << 20;
/// Bytes added for strings instead: many may be empty, and the offsets of 16 million take this many bytes.
const MORE_GROWTH_OF_STRINGS: u64 = 128 << 20;

/// Scratch buffers of more bytes are freed after each tile.
const MOST_SCRATCH: usize = 16 << 20;

/// A pipeline that is prepared for decoding one kind of tile.
#[derive(Debug, Clone)]
pub struct TileCodec {
    pipeline: Pipeline,
    /// In the order of decoding.
    stages: Vec<Stage>,
    /// The index of the last stage that writes new data.
    last_writer: usize,
}

/// Memory and decompression contexts, reused from tile to tile.
#[derive(Default)]
pub struct FilterBuffers {
    contexts: Contexts,
    /// One per stage.
    scratch: Vec<StageBuffers>,
}

/// Scratch memory for a stage's output; the last stage that writes data does so in the tile instead.
#[derive(Default)]
struct StageBuffers {
    data: Vec<u8>,
    metadata: Vec<u8>,
}

impl fmt::Debug for FilterBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterBuffers").finish_non_exhaustive()
    }
}

impl fmt::Display for TileCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pipeline.fmt(f)
    }
}

impl PayloadDecoder for TileCodec {
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        scratch.lend(|buffers| self.decode_with(stored, raw_len, offset, spare, buffers))
    }
}

/// A tile being decoded.
struct TileData {
    /// The decoded bytes, up to `filled`. After that, bytes of an earlier tile may follow.
    bytes: Vec<u8>,
    filled: u64,
    /// The start of each decoded string in `bytes`; empty unless the strings are encoded with their offsets.
    offsets: Vec<u64>,
}

impl TileCodec {
    /// A codec for `stages`, of which at least one must write data.
    pub(super) fn new(pipeline: Pipeline, stages: Vec<Stage>) -> Self {
        let last_writer = stages.iter().rposition(Stage::writes).unwrap_or_default();
        Self { pipeline, stages, last_writer }
    }

    #[cfg(test)]
    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Decodes a tile as [`PayloadDecoder::decode`] does, with the caller's buffers: `stored` begins at byte
    /// `offset` of its object, and the tile takes the memory of `spare` if that suffices.
    ///
    /// # Errors
    /// `Corrupt` if the tile does not decode to exactly `raw_len` bytes.
    pub fn decode_with(
        &self,
        stored: &[u8],
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        buffers: &mut FilterBuffers,
    ) -> Result<DecodedPayload> {
        let mut reader = Reader::new("tile", offset, stored);
        let chunks = self.chunk_count(&mut reader)?;
        let mut tile = TileData { bytes: spare, filled: 0, offsets: vec![] };
        // Otherwise the memory grows with the chunks: `raw_len` comes from a file, and may be wrong.
        if may_preallocate(raw_len, stored.len()) && tile.bytes.capacity() < to_usize(raw_len) {
            tile.bytes = Vec::with_capacity(to_usize(raw_len));
        }
        buffers
            .scratch
            .resize_with(buffers.scratch.len().max(self.stages.len()), StageBuffers::default);
        let decoded = (0..chunks).try_for_each(|chunk| {
            self.decode_chunk(&mut reader, raw_len, &mut tile, buffers)
                .map_err(|error| error.about(&format!("chunk {chunk}")))
        });
        // Also after an error, before the buffers serve other tiles.
        buffers.shrink();
        decoded.and_then(|()| reader.end())?;
        if tile.filled != raw_len {
            let message = format!("chunks of {} bytes in all, expected {raw_len}", tile.filled);
            return Err(Error::corrupt("tile", offset, message));
        }
        tile.bytes.truncate(to_usize(raw_len));
        let offsets = self.stages.iter().any(Stage::makes_offsets).then_some(tile.offsets);
        Ok(DecodedPayload::new(tile.bytes.into(), offsets))
    }

    fn chunk_count(&self, reader: &mut Reader<'_>) -> Result<u64> {
        let chunks = reader.u64()?;
        let most = if self.stages.iter().any(Stage::makes_offsets) {
            1 // A string encoding covers the whole tile.
        } else {
            (reader.remaining() / CHUNK_HEADER_LEN) as u64
        };
        if chunks > most {
            return Err(reader.corrupt(format!("{chunks} chunks, expected at most {most}")));
        }
        Ok(chunks)
    }

    /// Decodes the next chunk of `reader` to the end of what `tile` has.
    fn decode_chunk(
        &self,
        reader: &mut Reader<'_>,
        raw_len: u64,
        tile: &mut TileData,
        buffers: &mut FilterBuffers,
    ) -> Result<()> {
        let offset = reader.offset();
        let [len, data_len, metadata_len] =
            [reader.u32()?, reader.u32()?, reader.u32()?].map(u64::from);
        let metadata = reader.take(to_usize(metadata_len))?;
        let data = reader.take(to_usize(data_len))?;
        let chunk = FilteredChunk { metadata, data, offset };
        if len > raw_len.saturating_sub(tile.filled) {
            let (found, filled) = (len, tile.filled);
            let message = format!("{found} bytes after {filled}, but the tile has {raw_len}");
            return Err(chunk.corrupt(message));
        }
        let place = Target {
            memory: &mut tile.bytes,
            at: to_usize(tile.filled),
            bound: ClaimLimit::Exactly(len),
            offset,
        };
        self.run_stages(chunk, place, self.most_between(len), &mut tile.offsets, buffers)?;
        tile.filled += len;
        Ok(())
    }

    /// Runs all stages on a chunk. Fails if its data or metadata exceeds `most` bytes between two stages.
    fn run_stages<'a>(
        &self,
        mut chunk: FilteredChunk<'a>,
        place: Target<'a>,
        most: u64,
        offsets: &mut Vec<u64>,
        buffers: &'a mut FilterBuffers,
    ) -> Result<()> {
        let FilterBuffers { contexts, scratch } = buffers;
        let (offset, bound) = (chunk.offset, ClaimLimit::AtMost(most));
        let mut place = Some(place);
        for (number, (stage, scratch)) in self.stages.iter().zip(scratch).enumerate() {
            // The last stage that writes does so in the tile. Only checksums may follow it.
            let last = if number == self.last_writer { place.take() } else { None };
            let StageBuffers { data, metadata } = scratch;
            let data = last.unwrap_or(Target { memory: data, at: 0, bound, offset });
            let metadata = Target { memory: metadata, at: 0, bound, offset };
            chunk = stage
                .run(chunk, Targets { data, metadata }, contexts, offsets)
                .map_err(|error| error.about(stage.name))?;
        }
        match chunk.metadata.len() {
            0 => Ok(()),
            left => Err(chunk.corrupt(format!("{left} bytes of metadata that no filter reads"))),
        }
    }

    /// The limit of bytes between two filters, for a chunk with `len` bytes in the tile.
    fn most_between(&self, len: u64) -> u64 {
        let is_strings = self.stages.iter().any(Stage::makes_offsets);
        let more = if is_strings { MORE_GROWTH_OF_STRINGS } else { MORE_GROWTH };
        len.saturating_mul(MOST_GROWTH).saturating_add(more)
    }
}

impl FilterBuffers {
    /// Frees buffers that unusually large chunks needed.
    fn shrink(&mut self) {
        for scratch in &mut self.scratch {
            for memory in [&mut scratch.data, &mut scratch.metadata] {
                if memory.capacity() > MOST_SCRATCH {
                    *memory = vec![];
                }
            }
        }
    }

    /// Overwrites the output of earlier chunks, which must not affect later ones.
    #[cfg(feature = "fuzzing")]
    pub fn spoil(&mut self) {
        for StageBuffers { data, metadata } in &mut self.scratch {
            data.fill(0xAA);
            metadata.fill(0xAA);
        }
    }
}
