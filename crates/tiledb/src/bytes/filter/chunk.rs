//! A chunk between two filters, and memory for the output of the next one.
//!
//! Each filter puts its metadata before that of earlier filters, so the inverses read it from the front:
//!
//! ```text
//!   written by   byteshuffle, then md5          read by   md5, then byteshuffle
//!   metadata     ├ md5's ┼ byteshuffle's ┤
//! ```

use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// A chunk on its way from the stored bytes to the cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilteredChunk<'a> {
    /// Metadata that filters stored for their inverses; the next inverse's comes first.
    pub(super) metadata: &'a [u8],
    pub(super) data: &'a [u8],
    /// Where the chunk begins in its object, for errors.
    pub(super) offset: u64,
}

impl<'a> FilteredChunk<'a> {
    pub(super) fn reader(&self) -> Reader<'a> {
        Reader::new("filter metadata", self.offset, self.metadata)
    }

    pub(super) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt("tile chunk", self.offset, message)
    }
}

/// The unread metadata, which belongs to the next inverse.
pub(super) fn rest<'a>(mut reader: Reader<'a>) -> Result<&'a [u8]> {
    reader.take(reader.remaining())
}

/// Memory that an inverse may claim for its output: a piece of the decoded tile, or scratch memory.
///
/// The memory only grows. Claimed bytes have arbitrary content, so the claimer must overwrite all of them.
pub(super) struct Target<'a> {
    pub(super) memory: &'a mut Vec<u8>,
    /// Where the claim begins in `memory`.
    pub(super) at: usize,
    pub(super) bound: ClaimLimit,
    /// Where the chunk begins in its object, for errors.
    pub(super) offset: u64,
}

/// The number of bytes that may be claimed.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClaimLimit {
    /// For memory of the tile: the header of the chunk gives its length there.
    Exactly(u64),
    /// For scratch memory: the file does not give the length between two filters.
    AtMost(u64),
}

impl<'a> Target<'a> {
    /// Fails unless `len` bytes may be claimed.
    pub(super) fn check(&self, len: u64) -> Result<()> {
        let expected = match self.bound {
            ClaimLimit::Exactly(expected) if len != expected => format!("{expected} bytes"),
            ClaimLimit::AtMost(most) if len > most => format!("at most {most} bytes"),
            ClaimLimit::Exactly(_) | ClaimLimit::AtMost(_) => return Ok(()),
        };
        let message = format!("data that decodes to {len} bytes, expected {expected}");
        Err(Error::corrupt("tile chunk", self.offset, message))
    }

    /// Claims `len` bytes, which have arbitrary content.
    pub(super) fn claim(self, len: u64) -> Result<&'a mut [u8]> {
        self.check(len)?;
        let end = self.at.saturating_add(to_usize(len));
        // Only new bytes are set to 0. Setting all of them would cost a pass over the memory per chunk.
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        Ok(&mut self.memory[self.at..end])
    }
}

/// Memory for the output of the inverse of a filter.
pub(super) struct Targets<'a> {
    pub(super) data: Target<'a>,
    pub(super) metadata: Target<'a>,
}

/// Up to this ratio of decoded to stored bytes, memory is allocated without a check. Real data seldom
/// compresses better, and a damaged length costs at most 64 times the bytes that were read anyway.
const MAX_PREALLOCATED_RATIO: u64 = 64;
/// Up to this decoded length, memory is allocated without a check, whatever the ratio.
const UNCHECKED_LEN: u64 = 1 << 20;

/// Whether memory for `raw_len` decoded bytes may be allocated before checking that `stored_len` bytes
/// decode to that length.
pub(super) fn may_preallocate(raw_len: u64, stored_len: usize) -> bool {
    raw_len <= UNCHECKED_LEN.max((stored_len as u64).saturating_mul(MAX_PREALLOCATED_RATIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_bounded_and_keep_what_is_before_them() {
        let mut memory = vec![1, 2, 3];
        fn target(memory: &mut Vec<u8>, bound: ClaimLimit) -> Target<'_> {
            Target { memory, at: 2, bound, offset: 70 }
        }
        target(&mut memory, ClaimLimit::Exactly(4)).claim(4).unwrap().fill(9);
        assert_eq!(memory, [1, 2, 9, 9, 9, 9]);
        assert_eq!(target(&mut memory, ClaimLimit::AtMost(4)).claim(1).unwrap(), [9]);
        for (bound, len) in
            [(ClaimLimit::Exactly(4), 3), (ClaimLimit::Exactly(4), 5), (ClaimLimit::AtMost(4), 5)]
        {
            let error = target(&mut memory, bound).claim(len).unwrap_err();
            assert_eq!(error.offset(), Some(70));
        }
        assert_eq!(memory.len(), 6);
    }

    #[test]
    fn large_claims_need_large_input() {
        assert!(may_preallocate(1 << 20, 0) && may_preallocate(64 << 20, 1 << 20));
        assert!(!may_preallocate((1 << 20) + 1, 0) && !may_preallocate(65 << 20, 1 << 20));
    }
}
