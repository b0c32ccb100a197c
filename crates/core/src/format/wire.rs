//! Reads little-endian integers from byte slices; errors give the offset in the file.
//!
//! Machines parse headers and tables with [`Reader`]. It never panics, because the bytes of a file may be
//! hostile: a read beyond the end of its region is a `Corrupt` error.

use crate::error::{Error, Result};

/// A forward reader over one region of a file.
pub struct Reader<'a> {
    /// The part of the file, for errors.
    region: &'static str,
    /// Absolute offset of `bytes[0]` in the file.
    base: u64,
    bytes: &'a [u8],
    /// The number of bytes already read.
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which begin at the offset `base` of a file. Errors name `region`.
    pub fn new(region: &'static str, base: u64, bytes: &'a [u8]) -> Self {
        Self { region, base, bytes, at: 0 }
    }

    /// Returns the absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Whether all bytes are read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns a `Corrupt` error at the next byte.
    pub fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt(self.region, self.offset(), message)
    }

    /// Reads the next `len` bytes; fails if the region has fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| {
            self.corrupt(format!("needs {len} bytes, but the region ends after {}", rest.len()))
        })?;
        self.at += len;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Error::internal("a slice of the wrong length"))
    }

    /// Returns the number of bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Fails unless everything has been read.
    pub fn end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.corrupt(format!("{left} bytes more than expected"))),
        }
    }

    /// Reads a byte.
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a little-endian number of 2 bytes.
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a little-endian number of 4 bytes.
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a little-endian number of 8 bytes.
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads `N` bytes that must equal `expected`.
    pub fn magic<const N: usize>(&mut self, expected: &[u8; N], what: &str) -> Result<()> {
        let at = self.offset();
        let found = self.array::<N>()?;
        if found == *expected {
            return Ok(());
        }
        let (found, expected) = (found.escape_ascii(), expected.escape_ascii());
        Err(Error::corrupt(
            self.region,
            at,
            format!("found \"{found}\", expected \"{expected}\" ({what})"),
        ))
    }

    /// Reads a version number that must be one of `known`.
    pub fn version(&mut self, what: &str, known: &[u32]) -> Result<u32> {
        let at = self.offset();
        let found = self.u32()?;
        if known.contains(&found) {
            return Ok(found);
        }
        Err(Error::corrupt(
            self.region,
            at,
            format!("{what} {found}, this reader supports {known:?}"),
        ))
    }
}

/// Rounds `n` up to a multiple of 8, as 9 to 16; `None` if that overflows.
pub fn align8(n: u64) -> Option<u64> {
    Some(n.checked_add(7)? & !7)
}

/// Converts a length or count from a file. A number that does not fit becomes `usize::MAX`, more than any
/// buffer holds.
pub fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
