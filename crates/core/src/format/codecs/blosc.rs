//! Chunks of Blosc 1.
//!
//! ```text
//!   byte   0  version of the format: 2
//!          1  version of the compressor's format
//!          2  flags: bit 0 bytes are shuffled, 1 the data is stored as it is, 2 bits are shuffled,
//!             3 zero, 4 blocks are not split, 5..8 the compressor
//!          3  bytes of an element
//!          4  u32 decoded length, u32 length of a block, u32 length of this chunk
//!         16  i32 per block: its place in the chunk
//!             blocks, each of one or several splits: i32 length, bytes       little-endian
//! ```
//!
//! A block is compressed as a whole or, where that pays, in as many splits as an element has bytes: then each
//! split is a plane of shuffled bytes. A split as long as its decoded bytes is not compressed. The last block may
//! be shorter than the others, and is never split.
//!
//! Source: `README_CHUNK_FORMAT.rst` and `blosc.c` of c-blosc 1.21.

use super::output::{Fault, Output, resize};
use super::step_memory::StepMemory;
use super::{blosclz, lz4};
use crate::format::compress::{Compressor, Contexts};
use crate::format::shuffle::{unshuffle_bits, unshuffle_bytes};
use crate::format::wire::to_usize;

pub(super) const HEADER_LEN: usize = 16;

/// Elements of more bytes are not split.
pub(super) const MOST_SPLITS: usize = 16;

/// Splits of fewer elements are not made.
pub(super) const LEAST_SPLIT: usize = 128;

/// The compressor of a chunk.
#[derive(Debug, Clone, Copy)]
enum Packing {
    BloscLz,
    General(Compressor),
}

/// The order of the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    AsTheyAre,
    ShuffledBytes,
    ShuffledBits,
}

/// The header of a chunk.
#[derive(Debug)]
struct Header {
    is_raw: bool,
    may_split: bool,
    order: Order,
    packing: u8,
    element: usize,
    len: usize,
    block_len: usize,
    stored_len: usize,
}

/// Decodes a chunk.
pub(super) fn decompress(
    stored: &[u8],
    output: Output<'_>,
    kept: &mut StepMemory,
) -> Result<(), Fault> {
    let header = Header::parse(stored)?;
    let stored = stored.get(..header.stored_len).ok_or_else(|| {
        let (found, expected) = (stored.len(), header.stored_len);
        Fault::Corrupt(format!("a chunk of {found} bytes, expected {expected}"))
    })?;
    if header.len == 0 {
        return output.finish(0);
    }
    if header.is_raw {
        let raw = &stored[HEADER_LEN..];
        if raw.len() != header.len {
            let (found, expected) = (raw.len(), header.len);
            let message = format!("{found} bytes that are stored as they are, expected {expected}");
            return Err(Fault::Corrupt(message));
        }
        output.claim(raw.len())?.copy_from_slice(raw);
        return Ok(());
    }
    header.blocks(stored, output, kept)
}

impl Header {
    fn parse(stored: &[u8]) -> Result<Self, Fault> {
        let header = stored.first_chunk::<HEADER_LEN>().ok_or("its header is cut off")?;
        let [version, _, flags, element, lens @ ..] = *header;
        if version != 2 {
            let message = format!("version {version} of the format; version 2 is supported");
            return Err(Fault::Unsupported(message));
        }
        let mut lens = lens.as_chunks::<4>().0.iter().map(|len| u32::from_le_bytes(*len));
        let mut len = || to_usize(u64::from(lens.next().unwrap_or_default()));
        let header = Self {
            is_raw: flags & 2 != 0,
            may_split: flags & 16 == 0,
            order: match flags & 5 {
                0 => Order::AsTheyAre,
                4 => Order::ShuffledBits,
                _ => Order::ShuffledBytes,
            },
            packing: flags >> 5,
            element: usize::from(element),
            len: len(),
            block_len: len(),
            stored_len: len(),
        };
        let is_valid = header.stored_len >= HEADER_LEN
            && (header.len == 0 || header.block_len > 0 && header.element > 0)
            && flags & 8 == 0;
        if is_valid { Ok(header) } else { Err("a header that contradicts itself".into()) }
    }

    fn packing(&self) -> Result<Packing, Fault> {
        Ok(match self.packing {
            0 => Packing::BloscLz,
            1 => Packing::General(Compressor::Lz4),
            2 => {
                let message = "Snappy compression; write the data with another compressor";
                return Err(Fault::Unsupported(message.into()));
            }
            3 => Packing::General(Compressor::Gzip),
            4 => Packing::General(Compressor::Zstd),
            other => return Err(Fault::Unsupported(format!("compressor number {other}"))),
        })
    }

    /// Decodes all blocks.
    fn blocks(
        &self,
        stored: &[u8],
        output: Output<'_>,
        kept: &mut StepMemory,
    ) -> Result<(), Fault> {
        let packing = self.packing()?;
        let count = self.len.div_ceil(self.block_len);
        let places = count.checked_mul(4).and_then(|len| stored[HEADER_LEN..].get(..len));
        let places = places.ok_or("the places of its blocks are cut off")?.as_chunks::<4>().0;
        let mut blocks = output.blocks(self.len, stored.len())?;
        let StepMemory { contexts, block: memory, planes } = kept;
        for (number, place) in places.iter().enumerate() {
            let start = number * self.block_len;
            let len = self.block_len.min(self.len - start);
            let place = to_usize(u64::from(u32::from_le_bytes(*place)));
            let stored = stored.get(place..).ok_or("a block beyond the end")?;
            let splits = Splits { stored, count: self.splits(len), len, packing };
            let decoded = blocks.block(start, len, || splits.decode_to(len))?;
            if self.order == Order::AsTheyAre || !self.is_shuffled(len) {
                splits.decode(decoded, contexts)?;
                continue;
            }
            resize(memory, len);
            splits.decode(memory, contexts)?;
            self.unshuffle(memory, planes, decoded);
        }
        Ok(())
    }

    /// Returns the number of splits of a block.
    fn splits(&self, len: usize) -> usize {
        let is_split = self.may_split
            && len == self.block_len
            && self.element <= MOST_SPLITS
            && len / self.element >= LEAST_SPLIT;
        if is_split { self.element } else { 1 }
    }

    /// Whether shuffling changes a block of `len` bytes.
    fn is_shuffled(&self, len: usize) -> bool {
        match self.order {
            Order::AsTheyAre => false,
            Order::ShuffledBytes => self.element > 1,
            // Bits are shuffled only in a multiple of 8 elements.
            Order::ShuffledBits => len >= self.element && (len / self.element).is_multiple_of(8),
        }
    }

    /// Restores the order of the bytes of a block, whose leftover bytes are as they were.
    fn unshuffle(&self, shuffled: &[u8], planes: &mut Vec<u8>, decoded: &mut [u8]) {
        if self.order == Order::ShuffledBytes {
            return unshuffle_bytes(self.element, shuffled, decoded);
        }
        let (bits, leftover) = shuffled.split_at(shuffled.len() / self.element * self.element);
        let (elements, after) = decoded.split_at_mut(bits.len());
        resize(planes, bits.len());
        unshuffle_bits(self.element, bits, planes, elements);
        after.copy_from_slice(leftover);
    }
}

/// The stored splits of a block, which are followed by other bytes.
#[derive(Clone, Copy)]
struct Splits<'a> {
    stored: &'a [u8],
    count: usize,
    /// Bytes of the whole block after decoding.
    len: usize,
    packing: Packing,
}

impl<'a> Splits<'a> {
    /// Calls a function with each split.
    fn each(self, mut visit: impl FnMut(&'a [u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut rest = self.stored;
        for _ in 0..self.count {
            let (len, after) = rest.split_first_chunk::<4>().ok_or("a block that is cut off")?;
            let len = to_usize(u64::from(u32::from_le_bytes(*len)));
            let (split, after) = after.split_at_checked(len).ok_or("a block that is cut off")?;
            visit(split)?;
            rest = after;
        }
        Ok(())
    }

    /// Whether the splits decode to `len` bytes in all, or may do so; see [`Compressor::decompresses_to`].
    fn decode_to(self, len: usize) -> bool {
        let len = len / self.count;
        let check = |split: &[u8]| {
            let is_honest = split.len() == len
                || match self.packing {
                    Packing::BloscLz => len <= split.len().saturating_mul(blosclz::MOST_RATIO),
                    Packing::General(compressor) => compressor.decompresses_to(split, len as u64),
                };
            if is_honest { Ok(()) } else { Err(Fault::from("a split of another length")) }
        };
        self.each(check).is_ok()
    }

    /// Decodes all splits to `output`.
    fn decode(self, output: &mut [u8], contexts: &mut Contexts) -> Result<(), Fault> {
        if !self.len.is_multiple_of(self.count) {
            return Err("a block that is not split evenly".into());
        }
        let mut places = output.chunks_exact_mut(self.len / self.count);
        self.each(|split| {
            let place = places.next().unwrap_or_default();
            if split.len() == place.len() {
                place.copy_from_slice(split);
                return Ok(());
            }
            match self.packing {
                Packing::BloscLz => blosclz::decompress(split, place),
                Packing::General(Compressor::Lz4) => lz4::decode(split, place),
                Packing::General(compressor) => {
                    compressor.decompress(split, place, contexts).map_err(Fault::Corrupt)
                }
            }
        })
    }
}
