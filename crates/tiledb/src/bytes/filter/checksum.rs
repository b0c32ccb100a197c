//! Checksums over ranges of a chunk. They leave its data unchanged.
//!
//! ```text
//!   metadata  u32 n, u32 m, then n + m times: u64 length, digest; then metadata of earlier filters
//!             n digests cover ranges of that metadata, in order, and m cover ranges of the data
//! ```
//!
//! Every byte must have a digest. Otherwise a damaged length could take bytes out of the check.

use md5::{Digest, Md5};
use sha2::Sha256;

use super::chunk::{FilteredChunk, rest};
use gridfusion_core::Result;
use gridfusion_core::format::wire::{Reader, to_usize};

/// A kind of checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Md5,
    Sha256,
}

impl Checksum {
    /// Checks all digests of a chunk, and removes them from its metadata.
    pub(super) fn run<'a>(self, chunk: FilteredChunk<'a>) -> Result<FilteredChunk<'a>> {
        let mut reader = chunk.reader();
        let (of_metadata, of_data) = (u64::from(reader.u32()?), u64::from(reader.u32()?));
        let entry_len = 8 + self.len() as u64;
        let mut digests = |count: u64| {
            let entries = reader.take(to_usize(count.saturating_mul(entry_len)))?;
            Ok(Reader::new("checksums", chunk.offset, entries))
        };
        let (of_metadata, of_data) = (digests(of_metadata)?, digests(of_data)?);
        let metadata = rest(reader)?;
        self.check(chunk, of_metadata, metadata)?;
        self.check(chunk, of_data, chunk.data)?;
        Ok(FilteredChunk { metadata, ..chunk })
    }

    /// Checks that `digests` cover all of `bytes` and match them.
    fn check(
        self,
        chunk: FilteredChunk<'_>,
        mut digests: Reader<'_>,
        mut bytes: &[u8],
    ) -> Result<()> {
        while !digests.is_at_end() {
            let len = digests.u64()?;
            let expected = digests.take(self.len())?;
            let Some(range) = bytes.split_off(..to_usize(len)) else {
                return Err(chunk.corrupt(format!("a checksum over {len} bytes, beyond the end")));
            };
            if !self.is_of(expected, range) {
                let name = self.name();
                return Err(chunk.corrupt(format!("{len} bytes whose {name} checksum differs")));
            }
        }
        match bytes.len() {
            0 => Ok(()),
            len => Err(chunk.corrupt(format!("{len} bytes without a checksum"))),
        }
    }

    fn is_of(self, digest: &[u8], bytes: &[u8]) -> bool {
        match self {
            Self::Md5 => Md5::digest(bytes).as_slice() == digest,
            Self::Sha256 => Sha256::digest(bytes).as_slice() == digest,
        }
    }

    /// Bytes of a digest.
    fn len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk_metadata(of_metadata: &[&[u8]], of_data: &[&[u8]]) -> Vec<u8> {
        let counts = [of_metadata.len() as u32, of_data.len() as u32];
        let mut metadata: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        for range in of_metadata.iter().chain(of_data) {
            metadata.extend((range.len() as u64).to_le_bytes());
            metadata.extend(Md5::digest(range).as_slice());
        }
        metadata.extend(of_metadata.concat());
        metadata
    }

    #[test]
    fn every_changed_byte_is_found() {
        let mut metadata = chunk_metadata(&[b"ab", b"c"], &[b"data", b"", b"more"]);
        let mut data = *b"datamore";
        let run = |metadata: &[u8], data: &[u8]| {
            Checksum::Md5.run(FilteredChunk { metadata, data, offset: 9 }).map(|chunk| {
                assert_eq!((chunk.metadata, chunk.data), (&b"abc"[..], &b"datamore"[..]));
            })
        };
        run(&metadata, &data).unwrap();
        for at in 0..metadata.len() {
            metadata[at] ^= 1;
            assert!(run(&metadata, &data).is_err());
            metadata[at] ^= 1;
        }
        for at in 0..data.len() {
            data[at] ^= 1;
            assert_eq!(run(&metadata, &data).unwrap_err().offset(), Some(9));
            data[at] ^= 1;
        }
        assert!(run(&metadata, b"datamor").is_err() && run(&metadata, b"datamore!").is_err());
    }
}
