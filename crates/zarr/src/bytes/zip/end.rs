//! The end record of an archive, which tells where the directory is.
//!
//! ```text
//!   … directory | record of ZIP64, 56 | its locator, 20 | end record, 22 | comment, up to 65,535 bytes
//!               └──── only if numbers need more bytes ───┘
//! ```

use std::ops::Range;

use super::{IN_ZIP64, REGION, corrupt, u16_at, u32_at, u64_at};
use gridfusion_core::{Error, Result};

/// The lengths of the end record, of the locator and of the record of ZIP64.
const END: usize = 22;
const LOCATOR: usize = 20;
const END64: usize = 56;

/// The most bytes that may follow the directory.
pub(super) const MOST: u64 = (END64 + LOCATOR + END + u16::MAX as usize) as u64;

/// The least bytes of an entry of the directory.
const LEAST_ENTRY: u64 = 46;

/// Where the directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndRecord {
    /// The number of members.
    pub(super) members: u64,
    /// The bytes of the directory.
    pub(super) directory: Range<u64>,
    /// The bytes before the archive, from which all places in it count. A program that unpacks it may be there.
    pub(super) before: u64,
}

/// The numbers of an end record, or of that of ZIP64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    disks: [u32; 2],
    here: u64,
    members: u64,
    len: u64,
    start: u64,
}

impl EndRecord {
    /// Finds the end record in the last bytes of a file, of which the first is byte `start`.
    ///
    /// # Errors
    /// `Corrupt` if there is none, or several, or if its numbers contradict the file. `Unsupported` for a part of an archive.
    pub(super) fn find(tail: &[u8], start: u64) -> Result<Self> {
        let at = place(tail, start)?;
        let offset = start + at as u64;
        let own = end(&tail[at..]);
        let zip64 = zip64(&tail[..at], offset)?;
        let (numbers, directory_end, place) = match zip64 {
            Some((numbers, place)) => {
                own.check_same(numbers, offset)?;
                (numbers, offset - (LOCATOR + END64) as u64, Some(place))
            }
            None => (own, offset, None),
        };
        if numbers.disks != [0, 0] || numbers.here != numbers.members {
            return Err(Error::unsupported("an archive of several parts"));
        }
        let Numbers { members, len, start: stated, .. } = numbers;
        let wrong = |message: String| corrupt(offset, message);
        let begin = directory_end.checked_sub(len);
        let begin = begin.filter(|begin| *begin >= stated).ok_or_else(|| {
            wrong(format!(
                "a directory of {len} bytes at byte {stated}, which ends at {directory_end}"
            ))
        })?;
        let before = begin - stated;
        if place.is_some_and(|place| place.checked_add(before) != Some(directory_end)) {
            return Err(wrong("a record of ZIP64 that is elsewhere".to_owned()));
        }
        if members > len / LEAST_ENTRY {
            return Err(wrong(format!("{members} members in a directory of {len} bytes")));
        }
        Ok(Self { members, directory: begin..directory_end, before })
    }
}

/// Returns where the end record is in the last bytes of a file. Its comment must end with the file.
fn place(tail: &[u8], start: u64) -> Result<usize> {
    let ends_the_file = |at: &usize| {
        let comment = usize::from(u16_at(tail, at + 20));
        tail[*at..].starts_with(b"PK\x05\x06") && at + END + comment == tail.len()
    };
    let last = tail.len().checked_sub(END);
    let last =
        last.ok_or_else(|| Error::corrupt_region(REGION, format!("{} bytes", tail.len())))?;
    let mut found = (last.saturating_sub(usize::from(u16::MAX))..=last).filter(ends_the_file);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(other)) => Err(corrupt(start + other as u64, "a second end record")),
        (None, _) => Err(Error::corrupt_region(
            REGION,
            "it has no end record: it was cut off, other bytes follow it, or it is no archive",
        )),
    }
}

fn end(bytes: &[u8]) -> Numbers {
    Numbers {
        disks: [u16_at(bytes, 4), u16_at(bytes, 6)].map(u32::from),
        here: u16_at(bytes, 8).into(),
        members: u16_at(bytes, 10).into(),
        len: u32_at(bytes, 12).into(),
        start: u32_at(bytes, 16).into(),
    }
}

/// Returns the numbers of ZIP64 and the stated place of their record, if the bytes before the end record are its locator.
fn zip64(before: &[u8], offset: u64) -> Result<Option<(Numbers, u64)>> {
    let Some(locator) = before.last_chunk::<LOCATOR>().filter(|it| it.starts_with(b"PK\x06\x07"))
    else {
        return Ok(None);
    };
    if u32_at(locator, 4) != 0 || u32_at(locator, 16) > 1 {
        return Err(Error::unsupported("an archive of several parts"));
    }
    let record = before[..before.len() - LOCATOR].last_chunk::<END64>();
    let record = record.filter(|it| it.starts_with(b"PK\x06\x06") && u64_at(&it[..], 4) == 44);
    let record = record
        .ok_or_else(|| corrupt(offset, "no record of ZIP64 of 56 bytes before its locator"))?;
    let numbers = Numbers {
        disks: [u32_at(record, 16), u32_at(record, 20)],
        here: u64_at(record, 24),
        members: u64_at(record, 32),
        len: u64_at(record, 40),
        start: u64_at(record, 48),
    };
    Ok(Some((numbers, u64_at(locator, 8))))
}

impl Numbers {
    /// Fails unless each number of an end record is the same in the record of ZIP64, or stands for it.
    fn check_same(self, zip64: Self, offset: u64) -> Result<()> {
        let (short, long) = (u64::from(u16::MAX), u64::from(IN_ZIP64));
        let is_disk = |(own, other): (&u32, &u32)| own == other || *own == u32::from(u16::MAX);
        let same = [
            (self.here, zip64.here, short),
            (self.members, zip64.members, short),
            (self.len, zip64.len, long),
            (self.start, zip64.start, long),
        ];
        let is_same = same.iter().all(|(own, other, stands)| own == other || own == stands)
            && self.disks.iter().zip(&zip64.disks).all(is_disk);
        match is_same {
            true => Ok(()),
            false => Err(corrupt(
                offset,
                format!("an end record with {self:?}, and ZIP64 with {zip64:?}"),
            )),
        }
    }
}
