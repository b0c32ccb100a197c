//! The first 32 bytes: magic, version, flags, and the position of the chunk index.
//!
//! ```text
//!   0      4         8       12      16             24             32
//!   ├ TETR ┼ version ┼ count ┼ flags ┼ index offset ┼ index length ┤
//! ```
//!
//! See crates/tet/FORMAT.md, section 2.

use std::ops::Range;

use gridfusion_core::format::wire::Reader;
use gridfusion_core::{Error, Result};

/// The first bytes of every `.tet` file.
pub(crate) const MAGIC: &[u8; 4] = b"TETR";

/// The length of the superblock in bytes.
pub(super) const SUPERBLOCK_LEN: u64 = 32;

/// Flag bit: the file ends in a history footer. Other bits are unknown and ignored.
const FLAG_FOOTER: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superblock {
    /// Records in the directory. 0 means that there is neither directory nor index.
    pub(super) dataset_count: u32,
    pub(super) has_footer: bool,
    index_offset: u64,
    index_len: u64,
}

impl Superblock {
    /// Parses the superblock from its bytes.
    ///
    /// # Errors
    /// `Corrupt` for another magic or layout version.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("superblock", 0, bytes);
        reader.magic(MAGIC, "a .tet file")?;
        reader.version("layout version", &[1])?;
        let dataset_count = reader.u32()?;
        let has_footer = reader.u32()? & FLAG_FOOTER != 0;
        let (index_offset, index_len) = (reader.u64()?, reader.u64()?);
        Ok(Self { dataset_count, has_footer, index_offset, index_len })
    }

    /// Returns the bytes of the chunk index; fails unless they lie in a file of `file_len` bytes.
    pub(super) fn index_range(&self, file_len: u64) -> Result<Range<u64>> {
        let (at, len) = (self.index_offset, self.index_len);
        match at.checked_add(len) {
            Some(end) if end <= file_len => Ok(at..end),
            _ => Err(Error::corrupt(
                "superblock",
                16,
                format!("a chunk index of {len} bytes at byte {at}, but the file has {file_len}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(magic: &[u8; 4], version: u32, index_offset: u64) -> Vec<u8> {
        let mut bytes = magic.to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(5_u32.to_le_bytes()); // the footer flag and one unknown bit
        bytes.extend(index_offset.to_le_bytes());
        bytes.extend(136_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn errors_name_the_fault_and_the_place() {
        let good = Superblock::parse(&bytes(b"TETR", 1, 64)).unwrap();
        assert!(good.has_footer && good.dataset_count == 2);
        assert_eq!(good.index_range(200).unwrap(), 64..200);
        assert_eq!(good.index_range(199).unwrap_err().offset(), Some(16));

        let error = Superblock::parse(&bytes(b"\x89HDF", 1, 64)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "corrupt superblock at byte 0: found \"\\x89HDF\", expected \"TETR\" (a .tet file)"
        );
        assert_eq!(Superblock::parse(&bytes(b"TETR", 2, 64)).unwrap_err().offset(), Some(4));
        assert!(
            Superblock::parse(&bytes(b"TETR", 1, u64::MAX)).unwrap().index_range(1_000).is_err()
        );
    }
}
