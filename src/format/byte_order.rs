//! Words that are stored with their highest byte first, turned round.

use bytes::Bytes;

use crate::error::{Error, Result};

/// In which order the bytes of a stored word follow one another. Tiles are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// The lowest byte first, or there are no words.
    #[default]
    Little,
    /// The highest byte first.
    Big {
        /// Bytes of a word. A complex number is two words.
        width: usize,
    },
}

impl ByteOrder {
    /// Words of `width` bytes with the highest first, which for single bytes is no order at all.
    pub fn big(width: usize) -> Self {
        if width > 1 { Self::Big { width } } else { Self::Little }
    }

    /// Whether bytes are in the order of tiles as they are.
    pub fn is_little(self) -> bool {
        self == Self::Little
    }

    /// The same words in little-endian order: in their own memory if nobody else holds it, else in
    /// `spare`.
    pub(super) fn to_little(self, words: Bytes, spare: Vec<u8>) -> Result<Bytes> {
        let Self::Big { width } = self else { return Ok(words) };
        if !words.len().is_multiple_of(width.max(1)) {
            let message = format!("a tile of {} bytes in words of {width}", words.len());
            return Err(Error::internal(message));
        }
        let mut own = match words.try_into_mut() {
            Ok(own) => Vec::from(own),
            Err(shared) => {
                let mut copy = spare;
                copy.clear();
                copy.extend_from_slice(&shared);
                copy
            }
        };
        swap(&mut own, width);
        Ok(own.into())
    }
}

/// Turns each word round.
fn swap(bytes: &mut [u8], width: usize) {
    /// Swaps words of a width that the compiler knows, so that it emits vector instructions.
    fn swap_words<const WIDTH: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<WIDTH>().0.iter_mut().for_each(|word| word.reverse());
    }
    match width {
        0 | 1 => {}
        2 => swap_words::<2>(bytes),
        4 => swap_words::<4>(bytes),
        8 => swap_words::<8>(bytes),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
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
