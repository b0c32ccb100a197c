//! One decoding step.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::bitshuffle::BlockCompressor;
use super::checksum::{self, ChecksumPlace};
use super::output::{Fault, Output, OutputLength};
use super::step_memory::StepMemory;
use super::stream::Container;
use super::words::Words;
use super::{bitshuffle, blosc, delta, lz4, lzf, scale_offset, stream, variable};
use crate::format::ElementType;
use crate::format::shuffle::unshuffle_bytes;

/// One decoding step: a whole buffer in, a whole buffer out.
#[derive(Debug, Clone)]
pub enum Step {
    /// Zstandard frames (HDF5 filter 32015).
    Zstd,
    /// Members of a gzip file.
    Gzip,
    /// A zlib stream (HDF5 filter 1, deflate). Ignores what follows it, as the HDF5 library and numcodecs do.
    Zlib,
    /// bzip2 streams (HDF5 filter 307).
    Bzip2,
    /// numcodecs `lz4`: the decoded length as little-endian `u32`, then one LZ4 block.
    Lz4,
    /// HDF5 filter 32004: LZ4 blocks with big-endian lengths.
    Lz4Frames,
    /// HDF5 filter 32000: LZF.
    Lzf,
    /// A chunk of Blosc 1 (HDF5 filter 32001).
    Blosc,
    /// Bytes of elements shuffled (HDF5 filter 2). Copies bytes after the last whole element.
    Shuffle {
        /// Bytes of an element.
        element: usize,
    },
    /// HDF5 filter 32008: bits of elements shuffled, in blocks, which may be compressed.
    Bitshuffle {
        /// Bytes of an element.
        element: usize,
        /// Elements of a block; 0 for the usual number. Compressed data brings its own number.
        block: usize,
        /// The compressor of blocks.
        compressor: BlockCompressor,
    },
    /// A CRC-32C in 4 bytes, little-endian.
    Crc32c(ChecksumPlace),
    /// numcodecs `crc32`: a CRC-32 in 4 bytes, little-endian.
    Crc32(ChecksumPlace),
    /// numcodecs `adler32`: an Adler-32 in 4 bytes, little-endian.
    Adler32(ChecksumPlace),
    /// HDF5 filter 3: the HDF5 library's own Fletcher-32 in the last 4 bytes, little-endian. Old versions of the
    /// library exchanged the bytes of each half; that is accepted too.
    Fletcher32Hdf5,
    /// numcodecs `fletcher32`: as HDF5's, always little-endian.
    Fletcher32Numcodecs,
    /// numcodecs `delta`: the first word, then differences of words.
    Delta {
        /// The type of decoded words.
        element: ElementType,
        /// The type of stored words.
        stored: ElementType,
        /// Whether decoded words are big-endian.
        big: bool,
        /// Whether stored words are big-endian.
        stored_big: bool,
    },
    /// numcodecs `fixedscaleoffset`: a decoded word is a stored word divided by `scale`, plus `offset`.
    FixedScaleOffset {
        /// Added last.
        offset: f64,
        /// The divisor.
        scale: f64,
        /// The type of decoded words.
        element: ElementType,
        /// The type of stored words.
        stored: ElementType,
        /// Whether decoded words are big-endian.
        big: bool,
        /// Whether stored words are big-endian.
        stored_big: bool,
    },
    /// numcodecs and Zarr v3 `vlen-utf8`: texts, each after its length. Must be the last step.
    VlenUtf8,
    /// numcodecs and Zarr v3 `vlen-bytes`: values of any length, each after its length. Must be the last step.
    VlenBytes,
    /// A step of one format alone.
    Custom(Arc<dyn StepDecoder>),
}

/// A step of one format alone. `Display` names it for people.
pub trait StepDecoder: fmt::Debug + fmt::Display + Send + Sync {
    /// Decodes `stored` into at most `most` bytes. Memory that is reserved before decoding must be in
    /// proportion to the length of `stored`.
    ///
    /// # Errors
    /// A message about what is wrong with `stored`.
    fn decode(&self, stored: &[u8], most: usize) -> std::result::Result<Vec<u8>, String>;
}

/// The greatest length of the values of any length in a chunk; with the lengths before them, too.
pub(super) const MOST_VARIABLE: usize = 1 << 30;

impl Step {
    /// Whether the step makes values of any length, so that it must be the last one.
    pub(super) fn is_variable(&self) -> bool {
        matches!(self, Self::VlenUtf8 | Self::VlenBytes)
    }

    /// Whether the step changes nothing.
    pub(super) fn is_noop(&self) -> bool {
        matches!(self, Self::Shuffle { element: 0 | 1 })
    }

    /// Returns the place of the checksum, if the step only checks and cuts one off.
    fn checksum(&self) -> Option<(ChecksumPlace, checksum::Check)> {
        Some(match self {
            Self::Crc32c(place) => (*place, checksum::is_crc32c),
            Self::Crc32(place) => (*place, checksum::is_crc32),
            Self::Adler32(place) => (*place, checksum::is_adler32),
            Self::Fletcher32Hdf5 => (ChecksumPlace::End, checksum::is_fletcher32_of_hdf5),
            Self::Fletcher32Numcodecs => (ChecksumPlace::End, checksum::is_fletcher32),
            _ => return None,
        })
    }

    /// Whether the step makes new bytes, rather than cutting some off.
    pub(super) fn writes(&self) -> bool {
        self.checksum().is_none()
    }

    /// Checks the checksum in `bytes`, and returns the range without it; the whole range for other steps.
    pub(super) fn narrow(&self, bytes: &[u8]) -> Result<Range<usize>, Fault> {
        match self.checksum() {
            Some((place, check)) => checksum::cut_off(place, check, bytes),
            None => Ok(0..bytes.len()),
        }
    }

    /// Returns the length that the input of this step has, if its output has the length `output`.
    pub(super) fn input_bound(&self, output: OutputLength) -> OutputLength {
        match self {
            Self::Shuffle { .. } | Self::Bitshuffle { compressor: BlockCompressor::None, .. } => {
                output
            }
            Self::Delta { element, stored, .. }
            | Self::FixedScaleOffset { element, stored, .. } => {
                output.scaled(element.size(), stored.size())
            }
            _ if !self.writes() => match output {
                OutputLength::Exactly(len) => OutputLength::Exactly(len.saturating_add(4)),
                OutputLength::AtMost(len) => OutputLength::AtMost(len.saturating_add(4)),
            },
            Self::VlenUtf8 | Self::VlenBytes => OutputLength::AtMost(MOST_VARIABLE),
            // Compressors make data that they cannot compress a little longer.
            _ => {
                let len = output.most();
                OutputLength::AtMost(len.saturating_add(len / 4).saturating_add(64 << 10))
            }
        }
    }

    /// Decodes `stored` to `output`. Appends the starts of values of any length to `offsets`.
    pub(super) fn run(
        &self,
        stored: &[u8],
        output: Output<'_>,
        kept: &mut StepMemory,
        offsets: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        match self {
            Self::Zstd => stream::unzstd(stored, output, &mut kept.contexts),
            Self::Gzip => stream::inflate(Container::Gzip, stored, output, &mut kept.contexts),
            Self::Zlib => stream::inflate(Container::Zlib, stored, output, &mut kept.contexts),
            Self::Bzip2 => stream::unbzip2(stored, output),
            Self::Lz4 => lz4::block(stored, output),
            Self::Lz4Frames => lz4::frames(stored, output),
            Self::Lzf => lzf::decompress(stored, output),
            Self::Blosc => blosc::decompress(stored, output, kept),
            Self::Shuffle { element } => {
                let elements = output.claim(stored.len())?;
                unshuffle_bytes(*element, stored, elements);
                Ok(())
            }
            Self::Bitshuffle { element, block, compressor } => {
                bitshuffle::run(*element, *block, *compressor, stored, output, kept)
            }
            Self::Delta { element, stored: of, big, stored_big } => {
                let to = Words { element: *element, big: *big };
                delta::run(to, Words { element: *of, big: *stored_big }, stored, output)
            }
            Self::FixedScaleOffset { offset, scale, element, stored: of, big, stored_big } => {
                let scaling = scale_offset::Scaling { offset: *offset, scale: *scale };
                let to = Words { element: *element, big: *big };
                scaling.run(to, Words { element: *of, big: *stored_big }, stored, output)
            }
            Self::VlenUtf8 | Self::VlenBytes => variable::run(stored, output, offsets),
            Self::Custom(decoder) => {
                let decoded = decoder.decode(stored, output.bound.most())?;
                output.bound.check(decoded.len())?;
                *output.memory = decoded;
                Ok(())
            }
            // They only cut off bytes.
            Self::Crc32c(_)
            | Self::Crc32(_)
            | Self::Adler32(_)
            | Self::Fletcher32Hdf5
            | Self::Fletcher32Numcodecs => {
                let range = self.narrow(stored)?;
                output.claim(range.len())?.copy_from_slice(&stored[range]);
                Ok(())
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd => f.write_str("zstd"),
            Self::Gzip => f.write_str("gzip"),
            Self::Zlib => f.write_str("zlib"),
            Self::Bzip2 => f.write_str("bzip2"),
            Self::Lz4 | Self::Lz4Frames => f.write_str("lz4"),
            Self::Lzf => f.write_str("lzf"),
            Self::Blosc => f.write_str("blosc"),
            Self::Shuffle { element } => write!(f, "shuffle {element}"),
            Self::Bitshuffle { element, compressor, .. } => {
                write!(f, "bitshuffle {element}{compressor}")
            }
            Self::Crc32c(_) => f.write_str("crc32c"),
            Self::Crc32(_) => f.write_str("crc32"),
            Self::Adler32(_) => f.write_str("adler32"),
            Self::Fletcher32Hdf5 | Self::Fletcher32Numcodecs => f.write_str("fletcher32"),
            Self::Delta { element, stored, .. } => write!(f, "delta {element} as {stored}"),
            Self::FixedScaleOffset { offset, scale, element, stored, .. } => {
                write!(f, "{element} as {stored} / {scale} + {offset}")
            }
            Self::VlenUtf8 => f.write_str("vlen-utf8"),
            Self::VlenBytes => f.write_str("vlen-bytes"),
            Self::Custom(decoder) => decoder.fmt(f),
        }
    }
}
