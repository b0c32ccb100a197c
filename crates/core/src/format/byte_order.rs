//! Conversion of big-endian words to little-endian.
//!
//! Decoded payloads are converted once, before they become tiles, so no other module handles byte orders. A
//! complex number of two `f32` has words of 4 bytes: each half is reversed on its own.

use bytes::Bytes;
use multiversion::multiversion;

use crate::error::{Error, Result};

/// The order of the bytes in a stored word. Tiles are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// The lowest byte first; also the order of single bytes.
    #[default]
    Little,
    /// The highest byte first.
    Big {
        /// Bytes per word. A complex number is two words.
        width: usize,
    },
}

impl ByteOrder {
    /// Returns the order of big-endian words of `width` bytes; `Little` for single bytes.
    pub fn big(width: usize) -> Self {
        if width > 1 { Self::Big { width } } else { Self::Little }
    }

    /// Whether words are little-endian, as in tiles.
    pub fn is_little(self) -> bool {
        self == Self::Little
    }

    /// Returns the words in little-endian order. Converts them in place if nothing else shares their
    /// memory, else copies them into `spare`.
    pub(super) fn to_little(self, words: Bytes, spare: Vec<u8>) -> Result<Bytes> {
        let Self::Big { width } = self else { return Ok(words) };
        if !words.len().is_multiple_of(width.max(1)) {
            let message = format!("a tile of {} bytes in words of {width}", words.len());
            return Err(Error::internal(message));
        }
        Ok(match words.try_into_mut() {
            Ok(own) => {
                let mut own = Vec::from(own);
                swap(&mut own, width);
                own
            }
            Err(shared) => {
                // All bytes of `spare` are overwritten, so it need not be cleared.
                let mut copy = spare;
                copy.resize(shared.len(), 0);
                copy_swapped(&shared, &mut copy, width);
                copy
            }
        }
        .into())
    }
}

/// Reverses the bytes of each word.
fn swap(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => swap_words(bytes.as_chunks_mut().0, |word| u16::from_be_bytes(word).to_le_bytes()),
        4 => swap_words(bytes.as_chunks_mut().0, |word| u32::from_be_bytes(word).to_le_bytes()),
        8 => swap_words(bytes.as_chunks_mut().0, |word| u64::from_be_bytes(word).to_le_bytes()),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}

/// Copies words and reverses the bytes of each, in one pass over memory.
fn copy_swapped(from: &[u8], to: &mut [u8], width: usize) {
    match width {
        2 => copy_words(from.as_chunks().0, to.as_chunks_mut().0, |word| {
            u16::from_be_bytes(word).to_le_bytes()
        }),
        4 => copy_words(from.as_chunks().0, to.as_chunks_mut().0, |word| {
            u32::from_be_bytes(word).to_le_bytes()
        }),
        8 => copy_words(from.as_chunks().0, to.as_chunks_mut().0, |word| {
            u64::from_be_bytes(word).to_le_bytes()
        }),
        _ => {
            to.copy_from_slice(from);
            swap(to, width);
        }
    }
}

// `reversed` swaps an integer, which the compiler turns into one shuffle of a whole vector. It finds no such
// instruction for a loop over the bytes of a word.

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn swap_words<const N: usize>(words: &mut [[u8; N]], reversed: impl Fn([u8; N]) -> [u8; N]) {
    words.iter_mut().for_each(|word| *word = reversed(*word));
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn copy_words<const N: usize>(
    from: &[[u8; N]],
    to: &mut [[u8; N]],
    reversed: impl Fn([u8; N]) -> [u8; N],
) {
    from.iter().zip(to).for_each(|(from, to)| *to = reversed(*from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_width_are_turned_round() {
        for width in [1, 2, 3, 4, 8, 16] {
            let stored: Vec<u8> = (0..48).collect();
            let expected: Vec<u8> =
                stored.chunks(width).flat_map(|word| word.iter().rev().copied()).collect();
            let swapped = ByteOrder::big(width).to_little(stored.into(), vec![]).unwrap();
            assert_eq!(swapped, expected, "{width}");
        }
        assert!(ByteOrder::big(1).is_little() && !ByteOrder::big(2).is_little());
    }

    #[test]
    fn own_memory_is_used_and_shared_memory_is_left_alone() {
        let own = Bytes::from(vec![1, 2, 3, 4]);
        let place = own.as_ptr();
        let swapped = ByteOrder::big(2).to_little(own, vec![]).unwrap();
        assert_eq!((swapped.as_ptr(), swapped.as_ref()), (place, &[2, 1, 4, 3][..]));

        let (shared, spare) = (swapped.clone(), Vec::with_capacity(100));
        let place = spare.as_ptr();
        let back = ByteOrder::big(2).to_little(shared, spare).unwrap();
        assert_eq!((back.as_ptr(), back.as_ref()), (place, &[1, 2, 3, 4][..]));
        assert_eq!(swapped.as_ref(), [2, 1, 4, 3]);
    }

    #[test]
    fn a_tile_of_half_a_word_is_an_error() {
        assert!(ByteOrder::big(4).to_little(vec![0; 6].into(), vec![]).is_err());
    }
}
