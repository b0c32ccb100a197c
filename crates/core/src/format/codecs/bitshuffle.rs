//! Bits of elements shuffled, as HDF5 filter 32008 stores them.
//!
//! ```text
//!   without a compressor   blocks, then the elements after the last multiple of 8, as they are
//!   with one               u64 decoded length, u32 decoded length of a block, then per block:
//!                          u32 stored length, block; then those elements       all big-endian
//! ```
//!
//! The last block has fewer elements than the others, but also a multiple of 8.
//!
//! Source: `bshuf_h5filter.c`, `bitshuffle_core.c` and `bitshuffle.c` of bitshuffle 0.5.

use std::fmt;

use super::lz4;
use super::output::{Fault, Output, resize};
use super::step_memory::StepMemory;
use crate::format::compress::{Compressor, Contexts};
use crate::format::lz4_block;
use crate::format::shuffle::unshuffle_bits;
use crate::format::wire::to_usize;

/// Usual bytes of a block.
const BLOCK_LEN: usize = 8192;

/// The usual number of elements of a block is at least this.
const LEAST_ELEMENTS: usize = 128;

/// The compressor of blocks with shuffled bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCompressor {
    /// Blocks are not compressed.
    None,
    /// Raw LZ4 blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl fmt::Display for BlockCompressor {
    /// Writes what follows the name of the filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::Lz4 => " lz4",
            Self::Zstd => " zstd",
        })
    }
}

impl BlockCompressor {
    /// Whether `stored` decodes to `len` bytes, or may do so; see [`Compressor::decompresses_to`].
    fn decompresses_to(self, stored: &[u8], len: usize) -> bool {
        match self {
            Self::None => true,
            Self::Lz4 => len <= stored.len().saturating_mul(lz4_block::MOST_RATIO),
            Self::Zstd => Compressor::Zstd.decompresses_to(stored, len as u64),
        }
    }

    /// Decodes `stored` to all of `output`.
    fn decompress(
        self,
        stored: &[u8],
        output: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), Fault> {
        match self {
            Self::None => Err(Fault::from("a block without a compressor")),
            Self::Lz4 => lz4::decode(stored, output),
            Self::Zstd => {
                Compressor::Zstd.decompress(stored, output, contexts).map_err(Fault::Corrupt)
            }
        }
    }
}

/// Decodes shuffled elements of `element` bytes, in blocks of `block` elements.
pub(super) fn run(
    element: usize,
    block: usize,
    compressor: BlockCompressor,
    stored: &[u8],
    output: Output<'_>,
    kept: &mut StepMemory,
) -> Result<(), Fault> {
    if element == 0 {
        return Err("elements of 0 bytes".into());
    }
    if compressor == BlockCompressor::None {
        let block = match block {
            0 => (BLOCK_LEN / element / 8 * 8).max(LEAST_ELEMENTS),
            block => block,
        };
        let layout = Layout::new(element, block.saturating_mul(element), stored.len())?;
        return layout.unshuffle(stored, output.claim(stored.len())?, &mut kept.planes);
    }
    let (len, rest) = stored.split_first_chunk::<8>().ok_or("its length is cut off")?;
    let (block, rest) = rest.split_first_chunk::<4>().ok_or("its block size is cut off")?;
    let len = to_usize(u64::from_be_bytes(*len));
    let layout = Layout::new(element, to_usize(u64::from(u32::from_be_bytes(*block))), len)?;
    layout.decompress(compressor, stored.len(), rest, output, kept)
}

/// The lengths of parts, in bytes.
#[derive(Debug, Clone, Copy)]
struct Layout {
    element: usize,
    /// All blocks but the last.
    block: usize,
    /// All blocks together.
    shuffled: usize,
    /// The elements after them.
    leftover: usize,
}

impl Layout {
    fn new(element: usize, block: usize, len: usize) -> Result<Self, Fault> {
        let eight = element.saturating_mul(8);
        if block == 0 || !block.is_multiple_of(eight) {
            let message = format!("blocks of {block} bytes, not a multiple of 8 elements");
            return Err(Fault::Corrupt(message));
        }
        if !len.is_multiple_of(element) {
            let message = format!("{len} bytes, not whole elements of {element}");
            return Err(Fault::Corrupt(message));
        }
        let leftover = len % eight;
        Ok(Self { element, block, shuffled: len - leftover, leftover })
    }

    /// Undoes the shuffling of all blocks; both slices have the length of the layout.
    fn unshuffle(
        self,
        stored: &[u8],
        output: &mut [u8],
        planes: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let (shuffled, leftover) = stored.split_at(self.shuffled);
        let (elements, after) = output.split_at_mut(self.shuffled);
        for (bits, place) in shuffled.chunks(self.block).zip(elements.chunks_mut(self.block)) {
            resize(planes, bits.len());
            unshuffle_bits(self.element, bits, planes, place);
        }
        after.copy_from_slice(leftover);
        Ok(())
    }

    /// Decompresses blocks, of which `rest` begins with the first.
    fn decompress(
        self,
        compressor: BlockCompressor,
        stored_len: usize,
        mut rest: &[u8],
        output: Output<'_>,
        kept: &mut StepMemory,
    ) -> Result<(), Fault> {
        let mut blocks = output.blocks(self.shuffled + self.leftover, stored_len)?;
        let StepMemory { contexts, block: memory, planes } = kept;
        let mut filled = 0;
        while filled < self.shuffled {
            let len = self.block.min(self.shuffled - filled);
            let (block, after) = lz4::length_and_block(rest).ok_or("a block that is cut off")?;
            let place = blocks.block(filled, len, || compressor.decompresses_to(block, len))?;
            resize(memory, len);
            compressor.decompress(block, memory, contexts)?;
            resize(planes, len);
            unshuffle_bits(self.element, memory, planes, place);
            (rest, filled) = (after, filled + len);
        }
        let leftover = rest.get(..self.leftover).ok_or("its last elements are cut off")?;
        blocks.block(filled, self.leftover, || true)?.copy_from_slice(leftover);
        Ok(())
    }
}
