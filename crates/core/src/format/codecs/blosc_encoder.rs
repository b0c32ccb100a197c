//! [`BloscEncoder`]: chunks of Blosc 1, as `blosc` describes them, for writing.
//!
//! ```text
//!   bytes ──┬─ block 0 ── shuffled ──┬─ plane 0 ── compressed, or as it is where it does not shrink
//!           │                        └─ plane 1 …     (zstd compresses all planes of a block together)
//!           └─ block 1 …
//! ```
//!
//! A chunk that does not become smaller in all is stored as it is, behind the header. Blocks have the lengths that
//! c-blosc chooses, because these suit the caches of readers.
//!
//! Source: `blosc.c` of c-blosc 1.21.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::blosc::{HEADER_LEN, LEAST_SPLIT, MOST_SPLITS};
use crate::error::{Error, Result};
use crate::format::shuffle::{shuffle_bits_to, shuffle_bytes_to};

/// The compressor of the blocks of a Blosc chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloscCompressor {
    /// Zstandard.
    Zstd,
    /// LZ4, which has one level.
    Lz4,
    /// zlib.
    Zlib,
}

/// The order of the bytes of a block before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the format has these three")]
pub enum BloscShuffle {
    /// They stay as they are.
    None,
    /// The first bytes of all elements come first, and so on.
    Bytes,
    /// The first bits of all elements come first, and so on.
    Bits,
}

/// Encodes chunks of Blosc 1.
///
/// ```
/// use gridfusion_core::format::codecs::{BloscCompressor, BloscEncoder, BloscShuffle};
///
/// let encoder = BloscEncoder::try_new(BloscCompressor::Lz4, 5, BloscShuffle::Bytes, 4)?;
/// let stored = encoder.encode(&[1, 0, 0, 0].repeat(1000))?;
/// assert!(stored.len() < 200);
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloscEncoder {
    compressor: BloscCompressor,
    level: u8,
    shuffle: BloscShuffle,
    element: u8,
    /// The length of a block; 0 to choose one.
    block_len: usize,
}

impl BloscCompressor {
    /// Returns the number of the format that it writes.
    fn number(self) -> u8 {
        match self {
            Self::Lz4 => 1,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }

    /// Whether the planes of a block are compressed one by one.
    fn splits(self) -> bool {
        self != Self::Zstd
    }
}

impl BloscEncoder {
    /// The greatest level.
    pub const MOST_LEVEL: u8 = 9;
    /// The most bytes that a chunk decodes to.
    const MOST_LEN: usize = i32::MAX as usize - HEADER_LEN;
    /// Fewer bytes are stored as they are.
    const LEAST_LEN: usize = 128;

    /// Makes an encoder of elements of so many bytes. Level 0 compresses nothing.
    ///
    /// # Errors
    /// `Usage` for a level above 9, or an element without bytes.
    pub fn try_new(
        compressor: BloscCompressor,
        level: u8,
        shuffle: BloscShuffle,
        element: u8,
    ) -> Result<Self> {
        if level > Self::MOST_LEVEL {
            return Err(Error::usage(format!("blosc has no level {level}; it has 0 to 9")));
        }
        if element == 0 {
            return Err(Error::usage("blosc has no elements of 0 bytes"));
        }
        Ok(Self { compressor, level, shuffle, element, block_len: 0 })
    }

    /// Sets the length of blocks; 0 leaves it to the encoder. Blocks of fewer than 128 bytes get 128.
    #[must_use]
    pub fn with_block_len(self, block_len: u32) -> Self {
        Self { block_len: block_len as usize, ..self }
    }

    /// Encodes a chunk.
    ///
    /// # Errors
    /// `Unsupported` for more than 2 GiB.
    pub fn encode(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        if bytes.len() > Self::MOST_LEN {
            let len = bytes.len();
            return Err(Error::unsupported(format!(
                "a chunk of {len} bytes in blosc; choose smaller chunks"
            )));
        }
        let block_len = self.block_len(bytes.len());
        if self.level > 0
            && bytes.len() >= Self::LEAST_LEN
            && let Some(packed) = self.packed(bytes, block_len)?
        {
            return Ok(packed);
        }
        let mut raw = self.header(0b10, bytes.len(), block_len, HEADER_LEN + bytes.len());
        raw.extend_from_slice(bytes);
        Ok(raw)
    }

    /// Returns a header with these flags besides those of the order and of the compressor.
    fn header(&self, flags: u8, len: usize, block_len: usize, stored_len: usize) -> Vec<u8> {
        let order = match self.shuffle {
            BloscShuffle::None => 0,
            BloscShuffle::Bytes => 1,
            BloscShuffle::Bits => 4,
        };
        let mut header = vec![2, 1, flags | order | self.compressor.number() << 5, self.element];
        for len in [len, block_len, stored_len] {
            header.extend((len as u32).to_le_bytes());
        }
        header
    }

    /// Returns the length of the blocks of a chunk.
    fn block_len(&self, len: usize) -> usize {
        /// The cache that is nearest to a processor.
        const L1: usize = 32 << 10;
        let element = usize::from(self.element);
        if len < element {
            return 1;
        }
        let mut block = match self.block_len {
            0 if len < L1 => len,
            0 => {
                // Compressors with a high overhead have longer blocks.
                let is_slow = self.compressor != BloscCompressor::Lz4;
                let base = if is_slow { 2 * L1 } else { L1 };
                match self.level {
                    0 => base / 4,
                    1 => base / 2,
                    2 => base,
                    3 => base * 2,
                    4 | 5 => base * 4,
                    9 if is_slow => base * 16,
                    _ => base * 8,
                }
            }
            own => own.max(Self::LEAST_LEN),
        };
        if self.level > 0 && self.may_split(block) {
            block = (block.min(256 << 10) * element).clamp(64 << 10, 1 << 20);
        }
        block = block.min(len);
        if block > element { block / element * element } else { block }
    }

    /// Whether a whole block of so many bytes is split into planes.
    fn may_split(&self, block: usize) -> bool {
        let element = usize::from(self.element);
        self.compressor.splits() && element <= MOST_SPLITS && block / element >= LEAST_SPLIT
    }

    /// Returns the compressed blocks of a chunk; `None` if they do not become smaller.
    fn packed(&self, bytes: &[u8], block_len: usize) -> Result<Option<Vec<u8>>> {
        let count = bytes.len().div_ceil(block_len);
        let may_split = self.may_split(block_len);
        // Readers split blocks for themselves unless this flag is there.
        let flags = if self.compressor.splits() { 0 } else { 0b1_0000 };
        let mut packed = Vec::with_capacity(bytes.len() / 2 + HEADER_LEN + 4 * count);
        packed.extend(self.header(flags, bytes.len(), block_len, 0));
        packed.resize(HEADER_LEN + 4 * count, 0);
        let mut packer = Packer::new(self.compressor, self.level)?;
        let (mut shuffled, mut memory) = (vec![0; block_len], vec![0; block_len]);
        for (number, block) in bytes.chunks(block_len).enumerate() {
            let place = packed.len() as u32;
            packed[HEADER_LEN + 4 * number..][..4].copy_from_slice(&place.to_le_bytes());
            let ordered = self.ordered(block, &mut shuffled, &mut memory);
            let is_split = may_split && block.len() == block_len;
            let splits = if is_split { usize::from(self.element) } else { 1 };
            for part in ordered.chunks_exact(block.len() / splits) {
                packer.pack(part, &mut packed)?;
            }
            if packed.len() >= HEADER_LEN + bytes.len() {
                return Ok(None);
            }
        }
        let len = packed.len() as u32;
        packed[HEADER_LEN - 4..][..4].copy_from_slice(&len.to_le_bytes());
        Ok(Some(packed))
    }

    /// Returns the bytes of a block in their order.
    fn ordered<'a>(&self, block: &'a [u8], shuffled: &'a mut [u8], memory: &mut [u8]) -> &'a [u8] {
        let element = usize::from(self.element);
        let shuffled = &mut shuffled[..block.len()];
        match self.shuffle {
            BloscShuffle::Bytes if element > 1 => shuffle_bytes_to(element, block, shuffled),
            // Other numbers of elements have no whole bytes of bits.
            BloscShuffle::Bits
                if block.len() >= element && (block.len() / element).is_multiple_of(8) =>
            {
                let whole = block.len() / element * element;
                let memory = &mut memory[..whole];
                shuffle_bits_to(element, &block[..whole], memory, &mut shuffled[..whole]);
                shuffled[whole..].copy_from_slice(&block[whole..]);
            }
            _ => return block,
        }
        shuffled
    }
}

/// A compressor with the memory that it keeps from part to part.
enum Packer {
    Zstd(zstd::bulk::Compressor<'static>),
    Lz4(Box<CompressTable>, Vec<u8>),
    Zlib(flate2::Compress),
}

impl Packer {
    fn new(compressor: BloscCompressor, level: u8) -> Result<Self> {
        Ok(match compressor {
            BloscCompressor::Zstd => {
                // As c-blosc counts levels.
                let level = if level < 9 {
                    2 * i32::from(level) - 1
                } else {
                    *zstd::compression_level_range().end()
                };
                let zstd = zstd::bulk::Compressor::new(level);
                Self::Zstd(zstd.map_err(|error| Error::io("cannot compress a chunk", error))?)
            }
            BloscCompressor::Lz4 => Self::Lz4(Box::default(), vec![]),
            BloscCompressor::Zlib => {
                Self::Zlib(flate2::Compress::new(flate2::Compression::new(u32::from(level)), true))
            }
        })
    }

    /// Appends a part: its length, and its bytes, which are compressed if that makes them fewer.
    fn pack(&mut self, part: &[u8], packed: &mut Vec<u8>) -> Result<()> {
        let start = packed.len();
        packed.extend([0; 4]);
        // A part of the length of its bytes means that these are not compressed.
        let most = part.len().saturating_sub(1);
        packed.resize(start + 4 + most, 0);
        let place = &mut packed[start + 4..];
        let len = match self {
            // It fails if the place is too short, and so do the others.
            Self::Zstd(zstd) => zstd.compress_to_buffer(part, place).ok(),
            Self::Lz4(table, memory) => {
                let most = get_maximum_output_size(part.len());
                if memory.len() < most {
                    memory.resize(most, 0);
                }
                let len = compress_into_with_table(part, memory, table)
                    .ok()
                    .filter(|len| *len <= place.len());
                len.inspect(|len| place[..*len].copy_from_slice(&memory[..*len]))
            }
            Self::Zlib(zlib) => {
                zlib.reset();
                let status = zlib.compress(part, place, flate2::FlushCompress::Finish);
                let is_whole = matches!(status, Ok(flate2::Status::StreamEnd));
                is_whole.then(|| zlib.total_out() as usize)
            }
        };
        let len = match len {
            Some(len) => {
                packed.truncate(start + 4 + len);
                len
            }
            None => {
                packed.truncate(start + 4);
                packed.extend_from_slice(part);
                part.len()
            }
        };
        let len =
            u32::try_from(len).map_err(|_| Error::internal("a part of a block is too long"))?;
        packed[start..][..4].copy_from_slice(&len.to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
