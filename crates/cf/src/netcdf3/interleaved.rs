//! The decoder of one variable's records, between which other variables lie.
//!
//! ```text
//!   stored   ├ t2m[0] ┼ gap ┼ t2m[1] ┼ gap ┼ t2m[2] ┤
//!   tile     ├ t2m[0] ┼ t2m[1] ┼ t2m[2] ┤
//! ```

use std::fmt;

use bytes::Bytes;

use crate::strided::copy_strided;
use gridfusion_core::format::{DecodedPayload, PayloadDecoder, Scratch};
use gridfusion_core::{Error, Result};

/// Keeps the first bytes of each record. After the last record there is no gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordBytes {
    /// The bytes to keep of a record, at least 1.
    pub(super) kept: u64,
    /// The bytes from one record to the next, more than are kept.
    pub(super) stride: u64,
}

impl RecordBytes {
    /// Returns the stored bytes of this many records; `None` if they overflow.
    pub(super) fn stored_len(self, records: u64) -> Option<u64> {
        records.checked_sub(1)?.checked_mul(self.stride)?.checked_add(self.kept)
    }
}

impl fmt::Display for RecordBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of every {} bytes", self.kept, self.stride)
    }
}

impl PayloadDecoder for RecordBytes {
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        mut spare: Vec<u8>,
        _scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let records = raw_len.checked_div(self.kept).unwrap_or_default();
        let is_whole = records.saturating_mul(self.kept) == raw_len;
        if !is_whole || self.stored_len(records) != Some(stored.len() as u64) {
            let message = format!("{} bytes for {records} records, {self}", stored.len());
            return Err(Error::corrupt("chunk payload", offset, message));
        }
        // Both fit, because records are stored at least as long as they are kept.
        let (kept, stride) = (self.kept as usize, self.stride as usize);
        spare.resize(raw_len as usize, 0);
        copy_strided(stored, stride, kept, &mut spare);
        Ok(DecodedPayload::new(spare.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_and_gaps_left_out() {
        for (kept, gap) in [(1, 3), (2, 2), (3, 1), (4, 9), (8, 1), (100, 7)] {
            for records in [1, 2, 5, 77] {
                let interleaved = RecordBytes { kept, stride: kept + gap };
                let len = interleaved.stored_len(records).unwrap();
                let stored: Bytes = (0..len).map(|at| (at % 251) as u8).collect();
                let mut expected = vec![];
                for record in 0..records {
                    let at = (record * (kept + gap)) as usize;
                    expected.extend(&stored[at..at + kept as usize]);
                }
                let decode = |stored: &Bytes, raw_len, spare| {
                    interleaved.decode(stored, raw_len, 9, spare, &mut Scratch::default())
                };
                for spare in [vec![], vec![7; 10_000]] {
                    let tile = decode(&stored, kept * records, spare).unwrap();
                    assert_eq!(tile.bytes, expected, "{interleaved}, {records} records");
                }
                let short = stored.slice(..stored.len() - 1);
                assert_eq!(decode(&short, kept * records, vec![]).unwrap_err().offset(), Some(9));
                assert!(decode(&stored, kept * (records + 1), vec![]).is_err());
                assert!(kept == 1 || decode(&stored, kept * records + 1, vec![]).is_err());
                assert!(
                    decode(&stored, u64::MAX, vec![]).is_err()
                        && decode(&stored, 0, vec![]).is_err()
                );
            }
        }
    }
}
