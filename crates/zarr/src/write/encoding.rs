//! [`ZarrEncoding`]: how the chunks of a store are compressed and put together.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use gridfusion_core::format::codecs::crc32c;
use gridfusion_core::{Error, Result};
use serde_json::{Value, json};

use super::blosc::ZarrBlosc;

/// A compressor of chunks, with its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZarrCompressor {
    /// The codec `zstd`, of levels -131072 to 22.
    Zstd(i32),
    /// The codec `gzip`, of levels 0 to 9.
    Gzip(u32),
    /// The codec `blosc`.
    Blosc(ZarrBlosc),
}

/// How the chunks of a store are encoded.
///
/// ```
/// use gridfusion_zarr::{ZarrCompressor, ZarrEncoding};
///
/// let encoding = ZarrEncoding::default(); // zstd
/// assert_eq!(encoding.compressor, Some(ZarrCompressor::Zstd(3)));
/// let sharded = ZarrEncoding { shard_chunks: Some(vec![10, 1]), ..encoding };
/// # let _ = sharded;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZarrEncoding {
    /// The compressor; `None` stores the bytes of cells.
    pub compressor: Option<ZarrCompressor>,
    /// Whether a CRC-32C follows each chunk.
    pub has_checksums: bool,
    /// The chunks that an object holds along each axis; `None` for one object per chunk.
    pub shard_chunks: Option<Vec<u64>>,
}

impl Default for ZarrEncoding {
    fn default() -> Self {
        let compressor = Some(ZarrCompressor::Zstd(3));
        Self { compressor, has_checksums: false, shard_chunks: None }
    }
}

impl ZarrEncoding {
    /// Checks levels, and that shards have as many axes as the array.
    ///
    /// # Errors
    /// `Usage` if they are wrong.
    pub(super) fn check(&self, rank: usize) -> Result<()> {
        match self.compressor {
            Some(ZarrCompressor::Zstd(level))
                if !zstd::compression_level_range().contains(&level) =>
            {
                return Err(Error::usage(format!("zstd has no level {level}")));
            }
            Some(ZarrCompressor::Gzip(level)) if level > 9 => {
                return Err(Error::usage(format!("gzip has no level {level}; it has 0 to 9")));
            }
            Some(ZarrCompressor::Blosc(blosc)) => _ = blosc.encoder(1)?,
            _ => {}
        }
        match &self.shard_chunks {
            Some(chunks) if chunks.len() != rank || chunks.contains(&0) => {
                Err(Error::usage(format!("shards of {chunks:?} chunks for {rank} dimensions")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the codecs of a chunk, as metadata lists them.
    pub(super) fn codecs(&self, is_text: bool, word: usize) -> Vec<Value> {
        let mut codecs = vec![match (is_text, word) {
            (true, _) => json!({"name": "vlen-utf8", "configuration": {}}),
            // One byte has no order.
            (_, 1) => json!({"name": "bytes"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        }];
        codecs.extend(self.compressor.map(|compressor| match compressor {
            ZarrCompressor::Zstd(level) => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": false}})
            }
            ZarrCompressor::Gzip(level) => {
                json!({"name": "gzip", "configuration": {"level": level}})
            }
            ZarrCompressor::Blosc(blosc) => blosc.codec(word),
        }));
        codecs.extend(self.has_checksums.then(|| json!({"name": "crc32c"})));
        codecs
    }

    /// Reads the codecs of an array as metadata lists them. Also returns the elements of the chunks of a shard, if objects are shards.
    ///
    /// # Errors
    /// `Unsupported` for codecs in which cells cannot be written.
    pub(crate) fn from_codecs(
        codecs: &Value,
        is_text: bool,
        word: usize,
    ) -> Result<(Self, Option<Vec<u64>>)> {
        let not_written = |codec: &Value| {
            Error::unsupported(format!(
                "writing cells in the codec {codec}; cells are written with zstd, gzip, blosc (zstd, lz4, zlib), crc32c and shards"
            ))
        };
        let codecs = codecs.as_array().map_or(&[][..], Vec::as_slice);
        if let [codec] = codecs
            && codec["name"] == "sharding_indexed"
        {
            let configuration = &codec["configuration"];
            let is_at_end = matches!(configuration["index_location"].as_str(), None | Some("end"));
            let of_index = Self::from_codecs(&configuration["index_codecs"], false, 8)?.0;
            let inner = configuration["chunk_shape"].as_array().map(Vec::as_slice);
            let inner =
                inner.map(|lens| lens.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
            let Some(Some(inner)) = inner
                .filter(|_| is_at_end && of_index.compressor.is_none() && of_index.has_checksums)
            else {
                return Err(not_written(codec));
            };
            let (encoding, None) = Self::from_codecs(&configuration["codecs"], is_text, word)?
            else {
                return Err(not_written(codec));
            };
            return Ok((encoding, Some(inner)));
        }
        let mut read = Self { compressor: None, has_checksums: false, shard_chunks: None };
        for (place, codec) in codecs.iter().enumerate() {
            let configuration = &codec["configuration"];
            let level = configuration["level"].as_i64();
            let level = level.and_then(|level| i32::try_from(level).ok());
            match (place, codec["name"].as_str(), level) {
                (0, Some("vlen-utf8"), _) if is_text => {}
                (0, Some("bytes"), _)
                    if !is_text && (word == 1 || configuration["endian"] == "little") => {}
                (1.., Some("zstd"), Some(level))
                    if read.is_plain() && configuration["checksum"] != true =>
                {
                    read.compressor = Some(ZarrCompressor::Zstd(level));
                }
                (1.., Some("gzip"), Some(level @ 0..)) if read.is_plain() => {
                    read.compressor = Some(ZarrCompressor::Gzip(level.unsigned_abs()));
                }
                (1.., Some("blosc"), _) if read.is_plain() => {
                    let blosc = ZarrBlosc::from_configuration(configuration);
                    let blosc = blosc.ok_or_else(|| not_written(codec))?;
                    read.compressor = Some(ZarrCompressor::Blosc(blosc));
                }
                (1.., Some("crc32c"), _) if !read.has_checksums => read.has_checksums = true,
                _ => return Err(not_written(codec)),
            }
        }
        match codecs.is_empty() {
            true => Err(Error::corrupt_region("metadata", "no codecs")),
            false => Ok((read, None)),
        }
    }

    /// Whether chunks have the bytes of their cells.
    fn is_plain(&self) -> bool {
        self.compressor.is_none() && !self.has_checksums
    }

    /// Encodes the bytes of a chunk, whose cells have `word` bytes.
    ///
    /// # Errors
    /// `Unsupported` for a chunk that is too long for the compressor.
    pub(super) fn encoded(&self, bytes: Vec<u8>, word: usize) -> Result<Vec<u8>> {
        let failed = |error| Error::io("cannot compress a chunk", error);
        let mut bytes = match self.compressor {
            None => bytes,
            Some(ZarrCompressor::Zstd(level)) => {
                zstd::bulk::compress(&bytes, level).map_err(failed)?
            }
            Some(ZarrCompressor::Gzip(level)) => {
                let mut encoder = GzEncoder::new(vec![], Compression::new(level));
                encoder.write_all(&bytes).map_err(failed)?;
                encoder.finish().map_err(failed)?
            }
            Some(ZarrCompressor::Blosc(blosc)) => blosc.encoder(word)?.encode(&bytes)?,
        };
        if self.has_checksums {
            bytes.extend(crc32c(&bytes).to_le_bytes());
        }
        Ok(bytes)
    }
}

/// Returns a shard: encoded chunks, and their index behind them. Chunks that are not stored have numbers of 64 ones.
pub(super) fn shard(chunks: Vec<Option<Vec<u8>>>) -> Option<Vec<u8>> {
    if chunks.iter().all(Option::is_none) {
        return None;
    }
    let (mut shard, mut index) = (vec![], vec![]);
    for chunk in chunks {
        let entry = match &chunk {
            Some(chunk) => [shard.len() as u64, chunk.len() as u64],
            None => [u64::MAX; 2],
        };
        index.extend(entry.into_iter().flat_map(u64::to_le_bytes));
        shard.extend(chunk.unwrap_or_default());
    }
    let checksum = crc32c(&index).to_le_bytes();
    shard.extend(index);
    shard.extend(checksum);
    Some(shard)
}
