//! Filters that work on segments of the data, one after another, and list their lengths:
//! byteshuffle, bitshuffle, xor and float scaling.
//!
//! ```text
//!   metadata  u32 count, u32 length of each segment, then metadata of earlier filters
//! ```
//!
//! A segment is a piece of the chunk that the filter got at once. Filters start again in each: xor has no
//! word before the first word of a segment, and byteshuffle has planes of its own in each.

use super::chunk::{FilteredChunk, Target, rest};
use super::scale::Scaling;
use super::shuffle::unshuffle_bit_blocks;
use super::word::{Width, accumulate, by_width};
use gridfusion_core::Result;
use gridfusion_core::format::shuffle::unshuffle_bytes;
use gridfusion_core::format::wire::to_usize;

/// The inverse of a filter that works on segments.
#[derive(Debug, Clone, Copy)]
pub(super) enum SegmentInverse {
    Byteshuffle(Width),
    Bitshuffle(Width),
    Xor(Width),
    Scale(Scaling),
}

impl SegmentInverse {
    /// Undoes the filter for all segments of a chunk.
    pub(super) fn run<'a>(
        self,
        chunk: FilteredChunk<'a>,
        target: Target<'a>,
    ) -> Result<FilteredChunk<'a>> {
        let mut reader = chunk.reader();
        let count = reader.u32()?;
        let lens = reader.take(to_usize(u64::from(count) * 4))?;
        let lens = lens.as_chunks::<4>().0.iter().map(|len| u64::from(u32::from_le_bytes(*len)));
        let (listed, found) = (lens.clone().sum::<u64>(), chunk.data.len() as u64);
        if listed != found {
            let message = format!("{found} bytes of data, but its segments have {listed} in all");
            return Err(chunk.corrupt(message));
        }
        let output = target.claim(self.raw_len(chunk, found)?)?;
        let (mut stored, mut place) = (chunk.data, &mut *output);
        for len in lens {
            let raw_len = to_usize(self.raw_len(chunk, len)?);
            let (Some((segment, later)), Some((raw, after))) =
                (stored.split_at_checked(to_usize(len)), place.split_at_mut_checked(raw_len))
            else {
                return Err(chunk.corrupt("segments longer than all segments together"));
            };
            self.run_segment(chunk, segment, raw)?;
            (stored, place) = (later, after);
        }
        Ok(FilteredChunk { metadata: rest(reader)?, data: output, ..chunk })
    }

    /// The number of bytes to which `len` stored bytes decode: another number for scaled floats only.
    fn raw_len(self, chunk: FilteredChunk<'_>, len: u64) -> Result<u64> {
        match self {
            Self::Scale(scaling) => scaling.raw_len(len).map_err(|message| chunk.corrupt(message)),
            Self::Byteshuffle(_) | Self::Bitshuffle(_) | Self::Xor(_) => Ok(len),
        }
    }

    /// Decodes one segment to `raw`, which has the length that [`raw_len`](Self::raw_len) gives.
    fn run_segment(self, chunk: FilteredChunk<'_>, segment: &[u8], raw: &mut [u8]) -> Result<()> {
        match self {
            Self::Byteshuffle(width) => unshuffle_bytes(width.bytes(), segment, raw),
            Self::Bitshuffle(width) => unshuffle_bit_blocks(width, segment, raw),
            Self::Xor(width) if !segment.len().is_multiple_of(width.bytes()) => {
                let (len, bytes) = (segment.len(), width.bytes());
                let message = format!("a segment of {len} bytes, expected words of {bytes}");
                return Err(chunk.corrupt(message));
            }
            Self::Xor(width) => {
                by_width!(width, accumulate(segment, raw, 0, |total, word| total ^ word));
            }
            Self::Scale(scaling) => scaling.run(segment, raw),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::ClaimLimit;
    use super::*;

    fn run(inverse: SegmentInverse, lens: &[u32], data: &[u8]) -> Result<Vec<u8>> {
        let mut metadata = (lens.len() as u32).to_le_bytes().to_vec();
        metadata.extend(lens.iter().flat_map(|len| len.to_le_bytes()));
        metadata.extend(*b"rest");
        let mut memory = vec![];
        let bound = ClaimLimit::AtMost(1_000);
        let target = Target { memory: &mut memory, at: 0, bound, offset: 0 };
        let chunk = inverse.run(FilteredChunk { metadata: &metadata, data, offset: 0 }, target)?;
        assert_eq!(chunk.metadata, b"rest");
        Ok(chunk.data.to_vec())
    }

    #[test]
    fn segments_are_independent() {
        let xor = SegmentInverse::Xor(Width::One);
        assert_eq!(run(xor, &[2, 0, 3], &[1, 2, 1, 2, 4]).unwrap(), [1, 3, 1, 3, 7]);
        let shuffle = SegmentInverse::Byteshuffle(Width::Two);
        assert_eq!(run(shuffle, &[5, 2], &[1, 2, 3, 4, 9, 1, 2]).unwrap(), [1, 3, 2, 4, 9, 1, 2]);
    }

    #[test]
    fn segments_must_add_up_to_the_data() {
        for lens in [&[4_u32][..], &[6], &[3, 3], &[u32::MAX, 6], &[]] {
            assert!(run(SegmentInverse::Byteshuffle(Width::One), lens, &[0; 5]).is_err());
        }
        assert!(run(SegmentInverse::Xor(Width::Four), &[5], &[0; 5]).is_err());
    }
}
