//! One entry of the directory.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{corrupt, from_zip64, u16_at, u32_at};
use gridfusion_core::{Error, Result};

/// The length of an entry without its name, extra fields and comment.
const ENTRY: usize = 46;

/// The length of a header without its name and extra fields.
pub(super) const HEADER: u64 = 30;

/// The flags of a member: encrypted in one of three ways, followed by a descriptor, named in UTF-8.
pub(super) const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
pub(super) const HAS_DESCRIPTOR: u16 = 1 << 3;

/// The least bytes of a descriptor behind data: a checksum and two lengths.
const DESCRIPTOR: u64 = 12;

/// The most bytes that come of one deflated byte: 258 of two bits.
const MOST_INFLATED: u64 = 1032;

/// A member of an archive.
#[derive(Debug)]
pub struct Member {
    /// The bytes of its name in the directory.
    pub(super) name: Range<usize>,
    /// The byte at which its header begins.
    pub(super) header: u64,
    /// The byte at which the next header or the directory begins, or the last one that can belong to the member.
    pub(super) end: u64,
    /// The number of its bytes in the archive.
    pub(super) stored: u64,
    /// The number of its bytes.
    pub(super) raw: u64,
    pub(super) crc: u32,
    pub(super) flags: u16,
    pub(super) method: Method,
    /// The byte at which its data begin, once its header has told; 0 before.
    pub(super) data: AtomicU64,
}

/// How a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
    Other(u16),
}

impl Member {
    /// Parses the entry at byte `at` of the directory, which is byte `offset` of the file. Returns it with the end of the entry.
    ///
    /// # Errors
    /// `Corrupt` if it is cut off or contradicts itself.
    pub(super) fn parse(
        directory: &[u8],
        at: usize,
        offset: u64,
        before: u64,
    ) -> Result<(Self, usize)> {
        let wrong = |message: String| corrupt(offset, message);
        let entry = directory.get(at..at.saturating_add(ENTRY));
        let entry = entry.filter(|entry| entry.starts_with(b"PK\x01\x02"));
        let entry = entry.ok_or_else(|| wrong("no entry of the directory".to_owned()))?;
        let len = |at| usize::from(u16_at(entry, at));
        let name = at + ENTRY..at + ENTRY + len(28);
        let extra = name.end..name.end + len(30);
        let end = extra.end + len(32);
        if end > directory.len() {
            return Err(wrong("an entry that the directory cuts off".to_owned()));
        }
        let flags = u16_at(entry, 8);
        let [mut stored, mut raw, mut header] = [20, 24, 42].map(|at| u64::from(u32_at(entry, at)));
        from_zip64(&mut [&mut raw, &mut stored, &mut header], &directory[extra], offset)?;
        if !matches!(u16_at(entry, 34), 0 | u16::MAX) {
            return Err(Error::unsupported("an archive of several parts"));
        }
        let method = match u16_at(entry, 10) {
            0 => Method::Stored,
            8 => Method::Deflated,
            other => Method::Other(other),
        };
        let header = header.checked_add(before);
        let header = header.ok_or_else(|| wrong("a member beyond all files".to_owned()))?;
        let (crc, data) = (u32_at(entry, 16), AtomicU64::new(0));
        let member = Self { name, header, end: 0, stored, raw, crc, flags, method, data };
        member.check_lengths().map_err(wrong)?;
        Ok((member, end))
    }

    fn check_lengths(&self) -> std::result::Result<(), String> {
        let is_plausible = match self.method {
            _ if self.is_encrypted() => true,
            Method::Stored => self.stored == self.raw,
            Method::Deflated => self.raw <= self.stored.saturating_mul(MOST_INFLATED),
            Method::Other(_) => true,
        };
        match is_plausible {
            true => Ok(()),
            false => Err(format!("a member of {} bytes in {} bytes", self.raw, self.stored)),
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    /// Returns the least byte at which the next member may begin; `None` beyond all files.
    pub(super) fn least_end(&self) -> Option<u64> {
        let descriptor = if self.flags & HAS_DESCRIPTOR == 0 { 0 } else { DESCRIPTOR };
        let header = self.header.checked_add(HEADER + self.name.len() as u64 + descriptor)?;
        header.checked_add(self.stored)
    }

    /// Returns the bytes that have the header, the data, and perhaps a descriptor.
    pub fn span(&self) -> Range<u64> {
        self.header..self.end
    }

    /// Returns the bytes that have all of the header.
    pub fn header_span(&self) -> Range<u64> {
        self.header..self.end.saturating_sub(self.stored).max(self.header)
    }

    /// Returns the number of its bytes, once unpacked.
    pub fn len(&self) -> u64 {
        self.raw
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.raw == 0
    }

    /// Returns the number of its bytes in the archive.
    pub fn stored_len(&self) -> u64 {
        self.stored
    }

    /// Whether its bytes are in the archive as they are.
    pub fn is_stored(&self) -> bool {
        self.method == Method::Stored
    }

    /// Fails unless the bytes of the member can be read.
    pub(super) fn check_readable(&self) -> Result<()> {
        match self.method {
            _ if self.is_encrypted() => {
                Err(Error::unsupported("an encrypted member of an archive"))
            }
            Method::Other(method) => Err(Error::unsupported(format!(
                "a member of an archive that is compressed by method {method}; gridfusion reads stored and deflated ones"
            ))),
            Method::Stored | Method::Deflated => Ok(()),
        }
    }
}

/// Whether a name is one of an object: UTF-8, with parts between slashes that lead nowhere else.
pub(super) fn is_name(name: &[u8]) -> bool {
    // A folder has a slash at its end.
    let path = name.strip_suffix(b"/").unwrap_or(name);
    let is_part = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let has_bad_byte = name.iter().any(|byte| matches!(byte, 0 | b'\\'));
    !has_bad_byte
        && path.split(|byte| *byte == b'/').all(is_part)
        && std::str::from_utf8(name).is_ok()
}

/// Whether programs that unpack an archive may put a member with an odd name into a folder.
pub(super) fn may_be_in(odd_name: &[u8], folder: &str) -> bool {
    // They take backslashes for slashes, and leave out parts that lead elsewhere, or follow them.
    let parts = odd_name.split(|byte| matches!(byte, b'/' | b'\\'));
    let parts = parts.filter(|part| !matches!(*part, b"" | b"."));
    let (mut left_out, mut followed) = (vec![], vec![]);
    for part in parts {
        match part {
            b".." => _ = followed.pop(),
            part => {
                left_out.push(part);
                followed.push(part);
            }
        }
    }
    let folder: Vec<&[u8]> =
        folder.split('/').filter(|part| !part.is_empty()).map(str::as_bytes).collect();
    left_out.starts_with(&folder) || followed.starts_with(&folder)
}
