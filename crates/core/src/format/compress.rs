//! General compressors: zlib streams, zstd frames, raw LZ4 blocks and bzip2 streams.
//!
//! Each decompresses a part of a chunk into memory of exactly the length that the chunk declares for it.
//! Contexts are made once and serve all parts.

use std::fmt;
use std::io::{self, Read, Write};

use flate2::{Decompress, FlushDecompress, Status};

use super::lz4_block::{MOST_RATIO, decompress_into};
use crate::error::{Error, Result};

/// A general compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// A zlib stream, as TileDB and HDF5 call it.
    Gzip,
    /// A Zstandard frame.
    Zstd,
    /// A block of LZ4, without a frame.
    Lz4,
    /// A bzip2 stream.
    Bzip2,
}

/// Decompression contexts, made on first use. LZ4 needs none, and that of bzip2 cannot be reset.
#[derive(Default)]
pub struct Contexts {
    zlib: Option<Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Compressor {
    /// Decompresses `part`, which must fill `output` exactly. No compressor writes more than `output` holds.
    pub fn decompress(
        self,
        part: &[u8],
        output: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), String> {
        let len = match self {
            Self::Gzip => contexts.inflate(part, output)?,
            Self::Zstd => contexts.decompress_zstd(part, output).map_err(broken)?,
            Self::Lz4 => decompress_into(part, output).ok_or("it does not decompress")?,
            Self::Bzip2 => decompress_bzip2(part, output)?,
        };
        if len == output.len() { Ok(()) } else { Err(format!("it unpacks to {len} bytes")) }
    }

    /// Compresses `part`, at a level that the compressor has.
    ///
    /// ```
    /// use gridfusion_core::format::compress::{Compressor, Contexts};
    ///
    /// let stored = Compressor::Zstd.compress(&[7; 1000], 3)?;
    /// let mut cells = [0; 1000];
    /// Compressor::Zstd.decompress(&stored, &mut cells, &mut Contexts::default()).unwrap();
    /// assert!(stored.len() < 50 && cells == [7; 1000]);
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` for a level that the compressor does not have, `Unsupported` for LZ4, which is only read.
    pub fn compress(self, part: &[u8], level: i32) -> Result<Vec<u8>> {
        let levels = match self {
            Self::Gzip => 0..=9,
            Self::Zstd => zstd::compression_level_range(),
            Self::Bzip2 => 1..=9,
            Self::Lz4 => return Err(Error::unsupported("compressing with lz4; choose zstd")),
        };
        if !levels.contains(&level) {
            let (first, last) = (levels.start(), levels.end());
            let name = format!("{self:?}").to_lowercase();
            let message = format!("{name} has no level {level}; it has {first} to {last}");
            return Err(Error::usage(message));
        }
        let mut stored = vec![];
        let packed = match self {
            Self::Gzip => {
                let level = flate2::Compression::new(level.unsigned_abs());
                let mut stream = flate2::write::ZlibEncoder::new(&mut stored, level);
                stream.write_all(part).and_then(|()| stream.finish()).map(drop)
            }
            Self::Bzip2 => {
                let level = bzip2::Compression::new(level.unsigned_abs());
                let mut stream = bzip2::write::BzEncoder::new(&mut stored, level);
                stream.write_all(part).and_then(|()| stream.finish()).map(drop)
            }
            _ => zstd::bulk::compress(part, level).map(|packed| stored = packed),
        };
        packed.map_err(|error| Error::io("cannot compress a chunk", error))?;
        Ok(stored)
    }

    /// Whether `part` decompresses to `len` bytes; for LZ4, whether it may. Allocates no memory for them,
    /// but takes the time of decompressing. So a few bytes that claim to be gigabytes are found out before
    /// memory is claimed.
    pub fn decompresses_to(self, part: &[u8], len: u64) -> bool {
        // Reading one byte more than `len` detects a longer stream.
        let count = |stream: &mut dyn Read| {
            io::copy(&mut stream.take(len.saturating_add(1)), &mut io::sink())
        };
        let found = match self {
            Self::Gzip => count(&mut flate2::read::ZlibDecoder::new(part)),
            Self::Zstd => {
                zstd::stream::Decoder::with_buffer(part).and_then(|mut stream| count(&mut stream))
            }
            Self::Bzip2 => count(&mut bzip2::read::BzDecoder::new(part)),
            Self::Lz4 => return len / MOST_RATIO as u64 <= part.len() as u64,
        };
        found.is_ok_and(|found| found == len)
    }
}

impl Contexts {
    /// Returns a decompressor at the beginning of a deflate stream, with or without the header and the
    /// checksum of zlib.
    pub(in crate::format) fn inflater(&mut self, is_zlib: bool) -> &mut Decompress {
        let inflater = self.zlib.get_or_insert_with(|| Decompress::new(true));
        inflater.reset(is_zlib);
        inflater
    }

    fn inflate(&mut self, part: &[u8], output: &mut [u8]) -> Result<usize, String> {
        let zlib = self.inflater(true);
        match zlib.decompress(part, output, FlushDecompress::Finish).map_err(broken)? {
            Status::StreamEnd => Ok(usize::try_from(zlib.total_out()).unwrap_or(usize::MAX)),
            Status::Ok | Status::BufError => Err("its stream is cut off or too long".into()),
        }
    }

    /// Decompresses zstd frames, and returns the length of the output; fails if `output` is too short.
    pub(in crate::format) fn decompress_zstd(
        &mut self,
        part: &[u8],
        output: &mut [u8],
    ) -> io::Result<usize> {
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        zstd.decompress_to_buffer(part, output)
    }
}

fn decompress_bzip2(part: &[u8], output: &mut [u8]) -> Result<usize, String> {
    let mut stream = bzip2::Decompress::new(false);
    match stream.decompress(part, output).map_err(broken)? {
        bzip2::Status::StreamEnd => Ok(usize::try_from(stream.total_out()).unwrap_or(usize::MAX)),
        _ => Err("its stream is cut off or too long".into()),
    }
}

fn broken(error: impl fmt::Display) -> String {
    format!("it does not decompress ({error})")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ALL: [Compressor; 4] =
        [Compressor::Gzip, Compressor::Zstd, Compressor::Lz4, Compressor::Bzip2];

    #[test]
    fn parts_of_any_length_come_back_and_no_other_length_does() {
        let mut contexts = Contexts::default();
        for compressor in ALL {
            for len in [0, 1, 5, 100, 4_000, 70_000, 1_000_000] {
                let data: Vec<u8> = (0..len).map(|at| (at / 7 % 251) as u8).collect();
                let part = compress(compressor, &data);
                let mut output = vec![0; len + 1];
                for wrong in [len.saturating_sub(1), len + 1].into_iter().filter(|at| *at != len) {
                    let place = &mut output[..wrong];
                    assert!(compressor.decompress(&part, place, &mut contexts).is_err());
                }
                compressor.decompress(&part, &mut output[..len], &mut contexts).unwrap();
                assert_eq!(output[..len], data);
                assert!(compressor.decompresses_to(&part, len as u64));
                // zstd decompresses an empty input to an empty output.
                for end in (usize::from(len == 0)..part.len()).rev().take(50) {
                    let place = &mut output[..len];
                    let result = compressor.decompress(&part[..end], place, &mut contexts);
                    assert!(result.is_err(), "{compressor:?} {len} {end}");
                }
            }
        }
    }

    #[test]
    fn lies_about_lengths_are_found_out() {
        let data = vec![0; 10_000_000];
        for compressor in ALL {
            let part = compress(compressor, &data);
            assert!(compressor.decompresses_to(&part, 10_000_000));
            assert!(!compressor.decompresses_to(&part, 1 << 40));
            // For LZ4, `decompresses_to` only checks an upper bound.
            assert!(compressor == Compressor::Lz4 || !compressor.decompresses_to(&part, 9_999_999));
        }
    }

    /// Compresses a part.
    pub(in crate::format) fn compress(compressor: Compressor, part: &[u8]) -> Vec<u8> {
        match compressor {
            Compressor::Lz4 => lz4_flex::block::compress(part),
            other => other.compress(part, 1).unwrap(),
        }
    }
}
