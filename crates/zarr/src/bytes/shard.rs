//! Shards: objects that hold several chunks, and an index of them.
//!
//! ```text
//!   shard   chunk chunk … chunk | index: (offset, length) per chunk, as u64, row-major | CRC-32C of the index
//! ```
//!
//! The index is at the end or at the start. Offsets count from the start of the shard. A chunk that was never
//! written has two numbers of 64 ones. Facts: the specification of the codec `sharding_indexed`.

use std::ops::Range;

use serde_json::Value;

use super::json::{Object, named};
use gridfusion_core::format::ByteRange;
use gridfusion_core::format::codecs::crc32c;
use gridfusion_core::{Error, Result};

/// How the index of a shard is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShardIndexFormat {
    at_end: bool,
    big_endian: bool,
    has_checksum: bool,
}

/// Bytes of an index per chunk.
const ENTRY: usize = 16;

/// The longest index that is read, in bytes. It has entries for four million chunks.
const MAX_INDEX: u64 = 1 << 26;

const REGION: &str = "shard index";

impl ShardIndexFormat {
    /// Reads the format from the configuration of the codec.
    ///
    /// # Errors
    /// `Unsupported` for an index that is compressed, or has an unknown place.
    pub(super) fn new(configuration: &Object) -> Result<Self> {
        let at_end = match configuration.get("index_location").map(Value::as_str) {
            None | Some(Some("end")) => true,
            Some(Some("start")) => false,
            Some(_) => return Err(Error::unsupported("a shard index that is not at an end")),
        };
        let codecs = configuration.get("index_codecs").and_then(Value::as_array);
        let (mut big_endian, mut has_checksum) = (false, false);
        for codec in codecs.map_or(&[][..], Vec::as_slice) {
            match named(codec)? {
                ("bytes" | "endian", configuration) => {
                    big_endian = configuration.get("endian").and_then(Value::as_str) == Some("big");
                }
                ("crc32c", _) => has_checksum = true,
                (name, _) => {
                    return Err(Error::unsupported(format!(
                        "the codec \"{name}\" of a shard index"
                    )));
                }
            }
        }
        Ok(Self { at_end, big_endian, has_checksum })
    }

    /// Returns where the index of a shard of `chunks` chunks lies in its object.
    ///
    /// # Errors
    /// `Unsupported` for an index that is too long.
    pub(super) fn range(self, chunks: u64) -> Result<ByteRange> {
        let len = chunks.checked_mul(ENTRY as u64).filter(|len| *len <= MAX_INDEX);
        let len = len.ok_or_else(|| Error::unsupported(format!("shards of {chunks} chunks")))?;
        let len = len + if self.has_checksum { 4 } else { 0 };
        Ok(if self.at_end { ByteRange::Suffix(len) } else { ByteRange::from(0..len) })
    }

    /// Parses the index of a shard of `chunks` chunks.
    ///
    /// # Errors
    /// `Corrupt` if its length or its checksum is wrong.
    pub(super) fn parse(self, bytes: &[u8], chunks: u64) -> Result<ShardIndex> {
        let corrupt = |message: String| Error::corrupt_region(REGION, message);
        let entries = match self.has_checksum {
            false => bytes,
            true => {
                let (entries, stored) = bytes
                    .split_last_chunk::<4>()
                    .ok_or_else(|| corrupt(format!("{} bytes", bytes.len())))?;
                let (stored, found) = (u32::from_le_bytes(*stored), crc32c(entries));
                if stored != found {
                    let message = format!("its CRC-32C is {found:08x}, but {stored:08x} is stored");
                    return Err(corrupt(message));
                }
                entries
            }
        };
        let (entries, rest) = entries.as_chunks::<ENTRY>();
        if entries.len() as u64 != chunks || !rest.is_empty() {
            let message = format!("{} bytes for {chunks} chunks", bytes.len());
            return Err(corrupt(message));
        }
        let word = |bytes: &[u8]| {
            let word: [u8; 8] = bytes.try_into().unwrap_or_default();
            if self.big_endian { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
        };
        let entry = |entry: &[u8; ENTRY]| (word(&entry[..8]), word(&entry[8..]));
        Ok(ShardIndex { entries: entries.iter().map(entry).collect() })
    }
}

/// The index of one shard.
#[derive(Debug)]
pub(super) struct ShardIndex {
    /// The offset and the length of each chunk.
    entries: Vec<(u64, u64)>,
}

impl ShardIndex {
    /// Returns the bytes of chunk number `chunk` in the shard; `None` if it was never written.
    ///
    /// # Errors
    /// `Corrupt` if its end overflows; `Internal` if the shard has no such chunk.
    pub(super) fn chunk(&self, chunk: u64) -> Result<Option<Range<u64>>> {
        let entry = usize::try_from(chunk).ok().and_then(|chunk| self.entries.get(chunk));
        match entry {
            Some((u64::MAX, u64::MAX)) => Ok(None),
            // A chunk is absent only if both numbers are the greatest ones.
            Some(&(start, len)) => match start.checked_add(len).filter(|end| *end < u64::MAX) {
                Some(end) => Ok(Some(start..end)),
                None => {
                    let message = format!("chunk {chunk} has {len} bytes from byte {start} on");
                    Err(Error::corrupt_region(REGION, message))
                }
            },
            None => Err(Error::internal("a chunk that is not in its shard")),
        }
    }

    /// Returns the bytes of memory that the index takes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.entries.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(configuration: Value) -> Result<ShardIndexFormat> {
        let Value::Object(configuration) = configuration else { panic!("an object") };
        ShardIndexFormat::new(&configuration)
    }

    #[test]
    fn an_index_says_where_chunks_are() {
        let format = format(json!({"index_codecs": ["bytes", "crc32c"]})).unwrap();
        assert_eq!(format.range(2).unwrap(), ByteRange::Suffix(36));
        let mut bytes: Vec<u8> =
            [10, 5, u64::MAX, u64::MAX].iter().flat_map(|it: &u64| it.to_le_bytes()).collect();
        bytes.extend(crc32c(&bytes).to_le_bytes());
        let index = format.parse(&bytes, 2).unwrap();
        assert_eq!((index.chunk(0).unwrap(), index.chunk(1).unwrap()), (Some(10..15), None));
        assert!(index.chunk(2).is_err());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(format.parse(&flipped, 2).is_err());
            assert!(format.parse(&bytes[..at], 2).is_err());
        }
        assert!(format.parse(&bytes, 3).is_err());
    }

    #[test]
    fn a_chunk_is_absent_only_if_both_numbers_say_so() {
        let format = format(json!({"index_codecs": ["bytes"]})).unwrap();
        for (start, len) in [(u64::MAX, 0), (0, u64::MAX), (u64::MAX, 5), (7, u64::MAX)] {
            let bytes: Vec<u8> = [start, len].iter().flat_map(|it| it.to_le_bytes()).collect();
            let chunk = format.parse(&bytes, 1).unwrap().chunk(0);
            assert_eq!(chunk.unwrap_err().kind(), gridfusion_core::ErrorKind::Corrupt);
        }
    }

    #[test]
    fn other_places_and_orders() {
        let start = json!({"index_location": "start", "index_codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]});
        let start = format(start).unwrap();
        assert_eq!(start.range(3).unwrap(), ByteRange::from(0..48));
        let bytes: Vec<u8> =
            [1_u64 << 63, 1 << 63].iter().flat_map(|it| it.to_be_bytes()).collect();
        assert!(start.parse(&bytes, 1).unwrap().chunk(0).is_err());
        assert!(start.range(u64::MAX).is_err() && start.range(1 << 40).is_err());
        assert!(format(json!({"index_location": "middle"})).is_err());
        assert!(format(json!({"index_codecs": ["bytes", "gzip"]})).is_err());
    }
}
