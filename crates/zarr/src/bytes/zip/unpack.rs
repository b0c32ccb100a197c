//! The data of members: stored or deflated.

use std::ops::Range;

use bytes::Bytes;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::corrupt;
use super::directory::ZipDirectory;
use super::entry::{Member, Method};
use gridfusion_core::{Error, Result};

/// The bytes that are inflated at once if most of them are not kept.
const PIECE: usize = 1 << 16;

/// The greatest ratio of inflated to deflated bytes for which memory is reserved before inflating.
const MOST_RESERVED: usize = 64;

/// The checksum of bytes of a member.
#[derive(Debug, Default)]
pub struct MemberChecksum(Crc);

impl MemberChecksum {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

impl ZipDirectory {
    /// Returns all bytes of a member, whose [span](Member::span) has the bytes `span`. Compares their checksum.
    ///
    /// # Errors
    /// `Corrupt` if the header or the data contradict the directory; `Unsupported` for members that cannot be read.
    pub fn document(&self, member: &Member, span: &Bytes) -> Result<Bytes> {
        let bytes = self.part(member, span, 0..member.raw, vec![])?;
        // Inflating has compared it.
        if member.is_stored() {
            let mut sum = MemberChecksum::default();
            sum.add(&bytes);
            self.check(member, &sum)?;
        }
        Ok(bytes)
    }

    /// Returns where the data of a member are, from the bytes of its [header](Member::header_span).
    ///
    /// # Errors
    /// As [`ZipDirectory::document`].
    pub fn data(&self, member: &Member, header: &[u8]) -> Result<Range<u64>> {
        member.check_readable().map_err(|error| error.about(&self.shown(member)))?;
        let start = member.header + self.header_len(member, header)?;
        Ok(start..start + member.stored)
    }

    /// Compares the checksum of a member with that of its bytes.
    ///
    /// # Errors
    /// `Corrupt` if they differ.
    pub fn check(&self, member: &Member, sum: &MemberChecksum) -> Result<()> {
        let (found, stored) = (sum.0.sum(), member.crc);
        match found == stored {
            true => Ok(()),
            false => {
                let what = format!("has the CRC-32 {found:08x}, but {stored:08x} is stored");
                Err(self.wrong(member, &what))
            }
        }
    }

    /// Returns a part of a member; see [`ZipDirectory::document`]. Compares the checksum of deflated members only. May use the
    /// memory `spare`.
    pub(super) fn part(
        &self,
        member: &Member,
        span: &Bytes,
        part: Range<u64>,
        spare: Vec<u8>,
    ) -> Result<Bytes> {
        member.check_readable().map_err(|error| error.about(&self.shown(member)))?;
        let start = usize::try_from(self.header_len(member, span)?).unwrap_or(usize::MAX);
        let len = usize::try_from(member.stored).unwrap_or(usize::MAX);
        let data = start.checked_add(len).filter(|end| *end <= span.len());
        let data = data.ok_or_else(|| Error::internal("a part of a member was read"))?;
        let data = span.slice(start..data);
        if part.start > part.end || part.end > member.raw {
            return Err(Error::internal(format!("bytes {part:?} of a member")));
        }
        match member.method {
            Method::Deflated => self.inflate(member, &data, part, spare),
            _ => Ok(data.slice(part.start as usize..part.end as usize)),
        }
    }

    /// Inflates a member. Keeps a part of it, but compares the length and the checksum of all.
    fn inflate(
        &self,
        member: &Member,
        data: &[u8],
        part: Range<u64>,
        spare: Vec<u8>,
    ) -> Result<Bytes> {
        let mut stream = Inflating::new(data, member.raw);
        let inflated = match part == (0..member.raw) {
            true => stream.whole(spare),
            false => stream.part(part),
        };
        let inflated = inflated.filter(|_| stream.is_complete());
        let inflated =
            inflated.ok_or_else(|| self.wrong(member, "does not inflate to its length"))?;
        self.check(member, &stream.sum)?;
        Ok(inflated.into())
    }

    fn wrong(&self, member: &Member, what: &str) -> Error {
        corrupt(member.header, format!("{} {what}", self.shown(member)))
    }

    /// Returns the name of a member in messages.
    pub(super) fn shown(&self, member: &Member) -> String {
        format!("\"{}\"", String::from_utf8_lossy(self.name(member)).escape_debug())
    }
}

/// A member that is being inflated.
struct Inflating<'a> {
    stream: Decompress,
    data: &'a [u8],
    /// The length that it should have.
    raw: u64,
    sum: MemberChecksum,
}

impl<'a> Inflating<'a> {
    fn new(data: &'a [u8], raw: u64) -> Self {
        Self { stream: Decompress::new(false), data, raw, sum: MemberChecksum::default() }
    }

    /// Returns all bytes. The memory grows with them, so that a false length costs nothing.
    fn whole(&mut self, spare: Vec<u8>) -> Option<Vec<u8>> {
        let mut kept = spare;
        kept.clear();
        let reserved = self.data.len().saturating_mul(MOST_RESERVED) as u64;
        kept.reserve_exact(self.raw.min(reserved) as usize);
        loop {
            if kept.len() == kept.capacity() {
                // One byte more than promised reveals that there are more.
                let left = self.raw.saturating_sub(kept.len() as u64).saturating_add(1);
                kept.reserve_exact(left.min(kept.len().max(PIECE) as u64) as usize);
            }
            if self.fill(&mut kept)? {
                return Some(kept);
            }
        }
    }

    /// Returns some of the bytes.
    fn part(&mut self, part: Range<u64>) -> Option<Vec<u8>> {
        let (mut kept, mut piece) = (vec![], Vec::with_capacity(PIECE));
        loop {
            piece.clear();
            let before = self.stream.total_out();
            let is_end = self.fill(&mut piece)?;
            let within = |at: u64| (at.max(before) - before).min(piece.len() as u64) as usize;
            kept.extend_from_slice(&piece[within(part.start)..within(part.end)]);
            if is_end {
                return Some(kept);
            }
        }
    }

    /// Inflates bytes to the capacity of `out`. Returns whether the stream has ended; `None` if it is damaged, ends too early, or
    /// has more bytes than it should.
    fn fill(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        let (read, written, from) = (self.stream.total_in(), self.stream.total_out(), out.len());
        let rest = self.data.get(usize::try_from(read).ok()?..)?;
        let status = self.stream.decompress_vec(rest, out, FlushDecompress::None).ok()?;
        self.sum.add(&out[from..]);
        let moves = (self.stream.total_in(), self.stream.total_out()) != (read, written);
        match status {
            _ if self.stream.total_out() > self.raw => None,
            Status::StreamEnd => Some(true),
            _ => moves.then_some(false),
        }
    }

    fn is_complete(&self) -> bool {
        let lengths = (self.stream.total_in(), self.stream.total_out());
        lengths == (self.data.len() as u64, self.raw)
    }
}
