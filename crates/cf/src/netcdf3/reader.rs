//! Reads big-endian fields of a header, of which only the first bytes may be known.

use gridfusion_core::{Error, Result};

use super::version::{MAGIC, Version};

/// The most bytes of a header. Headers beyond a few megabytes are unknown in practice.
pub(super) const MAX_HEADER_LEN: u64 = 64 << 20;

/// The most bytes of a name, `NC_MAX_NAME` of `netcdf.h`.
const MAX_NAME_LEN: u64 = 256;

/// The reason why parsing stopped: bytes are not known yet, or wrong.
#[derive(Debug)]
pub(super) enum Pause {
    /// The header has at least this many bytes.
    Need(u64),
    Fail(Error),
}

impl From<Error> for Pause {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// A forward reader over the known bytes of a header.
pub(super) struct HeaderReader<'a> {
    /// The length of counts and offsets depends on it.
    pub(super) version: Version,
    known: &'a [u8],
    /// The length of the file.
    size: u64,
    at: usize,
}

impl<'a> HeaderReader<'a> {
    /// Starts after the first four bytes of a file of `size` bytes, of which the first ones are known.
    pub(super) fn new(known: &'a [u8], size: u64) -> Result<Self, Pause> {
        let mut reader = Self { version: Version::Cdf1, known, size, at: 0 };
        let magic = reader.take(4)?;
        let version = magic.strip_prefix(&MAGIC).and_then(|rest| rest.first());
        reader.version = version.and_then(|code| Version::from_code(*code)).ok_or_else(|| {
            let message = format!(
                "found \"{}\", expected \"CDF\" and the version 1, 2 or 5",
                magic.escape_ascii()
            );
            Error::corrupt("header", 0, message)
        })?;
        Ok(reader)
    }

    /// Returns the offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Returns a `Corrupt` error at this offset, or at the next byte.
    pub(super) fn corrupt(&self, at: impl Into<Option<u64>>, message: impl Into<String>) -> Pause {
        Error::corrupt("header", at.into().unwrap_or(self.offset()), message).into()
    }

    /// Reads the next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], Pause> {
        let end = self.offset().checked_add(len).filter(|end| *end <= self.size);
        let Some(end) = end else {
            let message = format!("needs {len} bytes, but the file ends at byte {}", self.size);
            return Err(self.corrupt(None, message));
        };
        if end > MAX_HEADER_LEN {
            let message =
                format!("a header of {end} bytes or more, of which {MAX_HEADER_LEN} are read");
            return Err(Error::unsupported(message).into());
        }
        let taken = self.known.get(self.at..end as usize).ok_or(Pause::Need(end))?;
        self.at = end as usize;
        Ok(taken)
    }

    /// Reads a number of 4 bytes.
    pub(super) fn u32(&mut self) -> Result<u32, Pause> {
        Ok(self.number(4)? as u32)
    }

    /// Reads a count, a length or the id of a dimension: 8 bytes in CDF-5, otherwise 4.
    pub(super) fn count(&mut self) -> Result<u64, Pause> {
        self.number(self.version.count_len())
    }

    /// Reads the offset of a variable.
    pub(super) fn variable_offset(&mut self) -> Result<u64, Pause> {
        self.number(if self.version == Version::Cdf1 { 4 } else { 8 })
    }

    fn number(&mut self, len: u64) -> Result<u64, Pause> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads the number of `what`, each of which takes at least `least` bytes of the file.
    pub(super) fn count_of(&mut self, what: &str, least: u64) -> Result<u64, Pause> {
        let (at, count) = (self.offset(), self.count()?);
        let left = self.size - self.offset();
        if count.checked_mul(least).is_none_or(|len| len > left) {
            let message = format!("{count} {what}, but only {left} bytes follow");
            return Err(self.corrupt(at, message));
        }
        Ok(count)
    }

    /// Reads the beginning of a list, and returns its length. An absent list has the tag 0 and no elements.
    pub(super) fn list(&mut self, tag: u32, what: &str, least: u64) -> Result<u64, Pause> {
        let (at, found) = (self.offset(), self.u32()?);
        let count = self.count_of(what, least)?;
        if found == tag || (found == 0 && count == 0) {
            return Ok(count);
        }
        let message = format!("tag {found} and {count} elements, expected tag {tag} for {what}");
        Err(self.corrupt(at, message))
    }

    /// Reads `len` bytes, and the padding to the next multiple of 4.
    pub(super) fn padded(&mut self, len: u64) -> Result<&'a [u8], Pause> {
        let bytes = self.take(len)?;
        self.take(len.wrapping_neg() % 4)?;
        Ok(bytes)
    }

    /// Reads the name of `what`.
    pub(super) fn name(&mut self, what: &str) -> Result<String, Pause> {
        let at = self.offset();
        let len = self.count()?;
        if len == 0 || len > MAX_NAME_LEN {
            let message =
                format!("{what} with a name of {len} bytes, expected 1 to {MAX_NAME_LEN}");
            return Err(self.corrupt(at, message));
        }
        let bytes = self.padded(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            let message = format!("{what} named \"{}\", which is not UTF-8", bytes.escape_ascii());
            self.corrupt(at, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_length_of_the_version() {
        for (version, bytes) in [(1, &b"\0\0\0\x07"[..]), (5, b"\0\0\0\0\0\0\0\x07")] {
            let file = [b"CDF", &[version][..], bytes].concat();
            let mut reader = HeaderReader::new(&file, 100).unwrap();
            assert_eq!((reader.count().unwrap(), reader.offset()), (7, file.len() as u64));
        }
    }

    #[test]
    fn unknown_bytes_are_needed_and_absent_bytes_are_an_error() {
        let mut reader = HeaderReader::new(b"CDF\x01\0\0", 100).unwrap();
        assert!(matches!(reader.u32(), Err(Pause::Need(8))));
        assert!(matches!(reader.take(97), Err(Pause::Fail(_))));
        assert!(matches!(reader.take(u64::MAX), Err(Pause::Fail(_))));
        let mut large = HeaderReader::new(b"CDF\x01", u64::MAX).unwrap();
        assert!(matches!(large.take(MAX_HEADER_LEN), Err(Pause::Fail(_))));
        assert!(HeaderReader::new(b"CDF\x03", 4).is_err());
    }

    #[test]
    fn names_are_short_and_utf8() {
        let name = |len: u8, text: &[u8]| {
            let file = [&b"CDF\x01\0\0\0"[..], &[len], text].concat();
            HeaderReader::new(&file, file.len() as u64)?.name("a dimension")
        };
        assert_eq!(name(5, "höhe\0\0\0".as_bytes()).unwrap(), "höhe");
        assert!(
            name(4, b"h\xf6he").is_err() && name(0, b"").is_err() && name(5, b"short").is_err()
        );
        let long = [&b"CDF\x01\0\0\x01\x01"[..], &[b'a'; 260]].concat();
        assert!(HeaderReader::new(&long, 268).unwrap().name("a dimension").is_err());
    }
}
