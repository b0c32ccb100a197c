//! Raw LZ4 blocks: a list of sequences, each of literal bytes and a match.
//!
//! ```text
//!   u4 number of literals, u4 length of the match less 4; 15 is continued by bytes, of which all but the last are 255
//!   literals; u16 distance of the match, little-endian      the last sequence has no match
//! ```
//!
//! Source: `lz4_Block_format.md` of LZ4.

use super::matches::{copy_literals, copy_match};

/// The greatest number of bytes to which one byte of a block decodes.
pub(in crate::format) const MOST_RATIO: usize = 255;

/// Decodes a block to the beginning of `output`, and returns the length of what it decodes to. `None` if a sequence is
/// cut off, goes beyond `output`, or repeats what is before it.
pub(super) fn decompress_into(block: &[u8], output: &mut [u8]) -> Option<usize> {
    let (mut rest, mut at) = (block, 0_usize);
    loop {
        let token = usize::from(*rest.split_off_first()?);
        let literals = length(token >> 4, &mut rest)?;
        rest = copy_literals(output, at, rest, literals)?;
        at += literals;
        if rest.is_empty() {
            return (at <= output.len()).then_some(at);
        }
        let (distance, after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let len = length(token & 15, &mut rest)?.checked_add(4)?;
        copy_match(output, at, usize::from(u16::from_le_bytes(*distance)), len)?;
        at += len;
    }
}

/// Adds the bytes that continue a length of 15.
#[inline(always)]
fn length(start: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = start;
    if start == 15 {
        loop {
            let more = *rest.split_off_first()?;
            // Bounded by 255 times the length of the block.
            length += usize::from(more);
            if more != 255 {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Bytes with runs, repeats and noise.
    fn data(rng: &mut SmallRng) -> Vec<u8> {
        let mut data: Vec<u8> = vec![];
        for _ in 0..rng.random_range(0..60) {
            let most = [4, 30, 700][rng.random_range(0..3)];
            let len = rng.random_range(1..most);
            let distance = rng.random_range(1..=data.len().max(1));
            for _ in 0..len {
                let repeated = data.len().checked_sub(distance).map(|at| data[at]);
                let is_noise = rng.random_ratio(1, 200);
                data.push(repeated.filter(|_| !is_noise).unwrap_or_else(|| rng.random()));
            }
        }
        data
    }

    /// Adds up a length byte by byte.
    fn slow_length(start: u8, block: &mut impl Iterator<Item = u8>) -> Option<usize> {
        let (mut sum, mut last) = (usize::from(start), if start == 15 { 255 } else { 0 });
        while last == 255 {
            last = block.next()?;
            sum += usize::from(last);
        }
        Some(sum)
    }

    /// Decodes a block byte by byte to at most `most` bytes.
    fn slow(block: &[u8], most: usize) -> Option<Vec<u8>> {
        let (mut block, mut output) = (block.iter().copied(), vec![]);
        loop {
            let token = block.next()?;
            for _ in 0..slow_length(token >> 4, &mut block)? {
                output.push(block.next()?);
            }
            if output.len() > most || block.len() == 0 {
                return Some(output).filter(|output| output.len() <= most);
            }
            let distance = usize::from(u16::from_le_bytes([block.next()?, block.next()?]));
            for _ in 0..slow_length(token & 15, &mut block)? + 4 {
                let at = output.len().checked_sub(distance).filter(|_| output.len() < most)?;
                output.push(*output.get(at)?);
            }
        }
    }

    #[test]
    fn blocks_decode_as_byte_by_byte_also_if_they_are_damaged() {
        let mut rng = SmallRng::seed_from_u64(4);
        let mut damaged = 0;
        for _ in 0..300 {
            let data = data(&mut rng);
            let mut block = lz4_flex::block::compress(&data);
            let mut output = vec![0xEE; data.len() + [0, 0, 1, 50][rng.random_range(0..4)]];
            assert_eq!(decompress_into(&block, &mut output), Some(data.len()));
            assert_eq!(output[..data.len()], data);
            let short = &mut output[..data.len().saturating_sub(1)];
            assert!(data.is_empty() || decompress_into(&block, short).is_none());
            for _ in 0..20 {
                let at = rng.random_range(0..block.len());
                block[at] ^= 1 << rng.random_range(0..8);
                let expected = slow(&block, output.len());
                let found = decompress_into(&block, &mut output).map(|len| output[..len].to_vec());
                damaged += usize::from(found.is_some());
                assert_eq!(found, expected);
            }
        }
        assert!(damaged > 100, "{damaged}");
    }

    #[test]
    fn no_block_is_empty() {
        assert_eq!(decompress_into(&[], &mut [0; 9]), None);
        assert_eq!(decompress_into(&[0], &mut [0; 9]), Some(0));
    }
}
