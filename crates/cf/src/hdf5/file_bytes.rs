//! Reading fields of an HDF5 file, whose addresses and lengths have widths of their own.

use std::sync::Arc;

use bytes::Bytes;

use super::blocks::FileBlocks;
use super::parse::checksum;
use gridfusion_core::{Error, Result};

/// The known bytes of a file, by HDF5 address: relative to the superblock.
#[derive(Debug, Clone)]
pub(super) struct FileBytes {
    pub(super) blocks: Arc<FileBlocks>,
    pub(super) widths: Widths,
}

/// Where addresses count from, and the bytes per address and per length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widths {
    /// The position of the superblock in the file.
    pub(super) base: u64,
    /// Bytes per address.
    pub(super) address: u8,
    /// Bytes per length.
    pub(super) length: u8,
}

impl Widths {
    /// Returns the bytes of a reference to a value of any length: its length, the address of a global heap
    /// collection, and the number of the object in it.
    pub(super) fn reference(self) -> usize {
        4 + usize::from(self.address) + 4
    }

    /// Whether an address is that of nothing: all bits are set.
    pub(super) fn is_undefined(self, address: u64) -> bool {
        let bits = 8 * u32::from(self.address.min(8));
        address >= u64::MAX.checked_shr(64 - bits).unwrap_or(0)
    }

    /// Whether a length is that of anything: all bits are set.
    pub(super) fn is_unlimited(self, length: u64) -> bool {
        Self { address: self.length, ..self }.is_undefined(length)
    }
}

impl FileBytes {
    /// Returns the bytes at an HDF5 address.
    pub(super) fn read(&self, address: u64, len: u64) -> Result<Bytes> {
        let at = address.checked_add(self.widths.base).ok_or_else(|| {
            Error::corrupt("metadata", address, "an address beyond the end of the file")
        })?;
        self.blocks.read(at, len)
    }
}

/// A cursor over bytes of metadata.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    region: &'static str,
    address: u64,
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Reads `all`, which lies at `address`; errors name `region`.
    pub(super) fn new(region: &'static str, address: u64, all: &'a [u8]) -> Self {
        Self { region, address, all, at: 0 }
    }

    /// Returns the next bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.all.get(self.at..end));
        let taken = taken.ok_or_else(|| self.corrupt(format!("{len} bytes are cut off")))?;
        self.at += len;
        Ok(taken)
    }

    /// Returns the next little-endian number of up to 8 bytes.
    pub(super) fn uint(&mut self, width: u8) -> Result<u64> {
        if width > 8 {
            return Err(self.corrupt(format!("a number of {width} bytes")));
        }
        let bytes = self.take(usize::from(width))?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Returns the next address.
    pub(super) fn address(&mut self, widths: Widths) -> Result<u64> {
        self.uint(widths.address)
    }

    /// Returns the next length.
    pub(super) fn length(&mut self, widths: Widths) -> Result<u64> {
        self.uint(widths.length)
    }

    /// Fails unless the last four bytes are the checksum of those before them.
    pub(super) fn checked(&self) -> Result<()> {
        let (content, stored) = self.all.split_last_chunk::<4>().unwrap_or((self.all, &[0; 4]));
        if checksum(content) == u32::from_le_bytes(*stored) {
            return Ok(());
        }
        Err(Error::corrupt(self.region, self.address, "its checksum is wrong"))
    }

    /// Returns the next bytes, which must be `magic`.
    pub(super) fn magic(&mut self, magic: &[u8]) -> Result<()> {
        let found = self.take(magic.len())?;
        if found == magic {
            return Ok(());
        }
        let (found, magic) = (found.escape_ascii(), magic.escape_ascii());
        Err(self.corrupt(format!("\"{found}\", expected \"{magic}\"")))
    }

    /// Returns the address of the next byte.
    pub(super) fn address_of_next(&self) -> u64 {
        self.address.saturating_add(self.at as u64)
    }

    /// Returns the number of bytes that were taken.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.all.len() - self.at
    }

    /// Returns an error about the next byte.
    pub(super) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt(self.region, self.address_of_next(), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_end() {
        let mut fields = Fields::new("header", 100, b"AB\x01\x02\x03\xff");
        fields.magic(b"AB").unwrap();
        assert_eq!(fields.uint(3).unwrap(), 0x030201);
        assert_eq!((fields.position(), fields.left()), (5, 1));
        let error = fields.uint(2).unwrap_err();
        assert_eq!((error.region(), error.offset()), (Some("header"), Some(105)));
        assert!(fields.clone().magic(b"x").is_err() && fields.uint(9).is_err());
        assert_eq!(fields.uint(1).unwrap(), 0xff);
    }

    #[test]
    fn undefined_addresses_have_all_bits() {
        let widths = |address| Widths { base: 0, address, length: 8 };
        assert!(widths(8).is_undefined(u64::MAX) && !widths(8).is_undefined(u64::MAX - 1));
        assert!(widths(4).is_undefined(u64::from(u32::MAX)) && !widths(4).is_undefined(7));
        assert_eq!(widths(8).reference(), 16);
    }
}
