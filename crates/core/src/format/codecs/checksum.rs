//! Checksums of 4 bytes, before or after what they check.
//!
//! Sources: RFC 1950 (Adler-32); `checksum32.py` and `fletcher32.pyx` of numcodecs; `H5checksum.c` and
//! `H5Zfletcher32.c` of the HDF5 library.

use std::ops::Range;

use super::crc32c::crc32c;
use super::output::Fault;

/// The place of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumPlace {
    /// Before what it checks.
    Start,
    /// After what it checks.
    End,
}

/// Whether the stored checksum, as a little-endian number, is that of some bytes.
pub(super) type Check = fn(&[u8], u32) -> bool;

/// Checks the checksum in `bytes`, and returns the range of the bytes that it checks.
pub(super) fn cut_off(
    place: ChecksumPlace,
    is_right: Check,
    bytes: &[u8],
) -> Result<Range<usize>, Fault> {
    let (parts, range) = match place {
        ChecksumPlace::Start => (bytes.split_first_chunk::<4>(), 4..bytes.len()),
        ChecksumPlace::End => {
            let parts = bytes.split_last_chunk::<4>().map(|(checked, sum)| (sum, checked));
            (parts, 0..bytes.len().saturating_sub(4))
        }
    };
    let (stored, checked) = parts.ok_or("its checksum is cut off")?;
    match is_right(checked, u32::from_le_bytes(*stored)) {
        true => Ok(range),
        false => Err(Fault::Corrupt(format!("{} bytes whose checksum differs", checked.len()))),
    }
}

pub(super) fn is_crc32c(bytes: &[u8], stored: u32) -> bool {
    crc32c(bytes) == stored
}

pub(super) fn is_crc32(bytes: &[u8], stored: u32) -> bool {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum() == stored
}

pub(super) fn is_adler32(bytes: &[u8], stored: u32) -> bool {
    adler32(bytes) == stored
}

pub(super) fn is_fletcher32(bytes: &[u8], stored: u32) -> bool {
    fletcher32(bytes) == stored
}

/// Accepts both byte orders of the halves, as the HDF5 library does since version 1.6.3.
pub(super) fn is_fletcher32_of_hdf5(bytes: &[u8], stored: u32) -> bool {
    let sum = fletcher32(bytes);
    sum == stored || sum.swap_bytes().rotate_left(16) == stored
}

/// The number of terms that are added up between two divisions: few enough for 32 bits.
const TERMS: usize = 128;

/// Adds up terms, and the sums up to each term.
///
/// For the terms 5, 1 and 2 after the sums (10, 100), the sums are 18 and 100 + 15 + 16 + 18.
fn sums<const N: usize>(
    words: &[[u8; N]],
    start: (u64, u64),
    modulus: u64,
    term: impl Fn([u8; N]) -> u32,
) -> (u64, u64) {
    let (mut sum, mut sum_of_sums) = start;
    for words in words.chunks(TERMS) {
        // The first term is part of all sums, the last one of one; the loop has no carried product.
        let count = words.len();
        let (mut plain, mut weighted) = (0_u32, 0_u32);
        for (number, word) in words.iter().enumerate() {
            let term = term(*word);
            // They do not wrap; checking that would prevent vector instructions.
            plain = plain.wrapping_add(term);
            weighted = weighted.wrapping_add(term.wrapping_mul(count.wrapping_sub(number) as u32));
        }
        sum_of_sums = (sum_of_sums + sum * count as u64 + u64::from(weighted)) % modulus;
        sum = (sum + u64::from(plain)) % modulus;
    }
    (sum, sum_of_sums)
}

/// Adler-32 of RFC 1950: sums of bytes modulo 65521, the first of which starts at 1.
fn adler32(bytes: &[u8]) -> u32 {
    let (sum, sum_of_sums) =
        sums(bytes.as_chunks::<1>().0, (1, 0), 65_521, |[byte]| u32::from(byte));
    (sum_of_sums << 16 | sum) as u32
}

/// Fletcher-32 of the HDF5 library: sums of big-endian words of 2 bytes modulo 65535. A 0 follows an odd last
/// byte.
fn fletcher32(bytes: &[u8]) -> u32 {
    const MODULUS: u64 = 65_535;
    let (words, rest) = bytes.as_chunks::<2>();
    let term = |word| u32::from(u16::from_be_bytes(word));
    let mut both = sums(words, (0, 0), MODULUS, term);
    if let [last] = rest {
        both = sums(&[[*last, 0]], both, MODULUS, term);
    }
    // The library folds sums, so that only a sum of zeros becomes 0; other multiples of the modulus become the
    // modulus.
    let is_zero = bytes.iter().all(|byte| *byte == 0);
    let [sum, sum_of_sums] =
        [both.0, both.1].map(|sum| if sum == 0 && !is_zero { MODULUS } else { sum });
    (sum_of_sums << 16 | sum) as u32
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// The sums as the HDF5 library folds them, word by word.
    fn folded_fletcher32(bytes: &[u8]) -> u32 {
        let fold = |sum: u32| (sum & 0xFFFF) + (sum >> 16);
        let (mut sum, mut sum_of_sums) = (0, 0);
        for word in bytes.chunks(2) {
            sum =
                fold(fold(sum + (u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))));
            sum_of_sums = fold(fold(sum_of_sums + sum));
        }
        sum_of_sums << 16 | sum
    }

    fn slow_adler32(bytes: &[u8]) -> u32 {
        let (mut sum, mut sum_of_sums) = (1, 0);
        for byte in bytes {
            sum = (sum + u32::from(*byte)) % 65_521;
            sum_of_sums = (sum_of_sums + sum) % 65_521;
        }
        sum_of_sums << 16 | sum
    }

    #[test]
    fn sums_are_those_of_one_word_at_a_time() {
        let mut rng = SmallRng::seed_from_u64(3);
        for len in (0..600).chain([10_000, 65_537, 100_001]) {
            let random: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            for bytes in [random, vec![255; len], vec![0; len]] {
                assert_eq!(fletcher32(&bytes), folded_fletcher32(&bytes), "{len}");
                assert_eq!(adler32(&bytes), slow_adler32(&bytes), "{len}");
            }
        }
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }

    #[test]
    fn checksums_are_cut_off() {
        let sum = fletcher32(b"abc");
        let stored = [&sum.to_le_bytes()[..], b"abc"].concat();
        assert_eq!(cut_off(ChecksumPlace::Start, is_fletcher32, &stored).unwrap(), 4..7);
        let mut stored = [b"abc", &sum.to_le_bytes()[..]].concat();
        for check in [is_fletcher32, is_fletcher32_of_hdf5] {
            assert_eq!(cut_off(ChecksumPlace::End, check, &stored).unwrap(), 0..3);
        }
        stored.swap(3, 4);
        stored.swap(5, 6);
        assert_eq!(cut_off(ChecksumPlace::End, is_fletcher32_of_hdf5, &stored).unwrap(), 0..3);
        assert!(cut_off(ChecksumPlace::End, is_fletcher32, &stored).is_err());
        for place in [ChecksumPlace::Start, ChecksumPlace::End] {
            assert!(cut_off(place, is_crc32, &[0; 3]).is_err());
            assert_eq!(cut_off(place, is_crc32, &[0; 4]).unwrap().len(), 0);
        }
    }
}
