//! Arithmetic on little-endian words of 1, 2, 4 or 8 bytes, as `u64`.
//!
//! Sums wrap and keep only the low bytes, so signed and unsigned words need no distinction.

use crate::bytes::datatype::Datatype;

/// The number of bytes of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    pub(super) fn from_bytes(bytes: u64) -> Option<Self> {
        Some(match bytes {
            1 => Self::One,
            2 => Self::Two,
            4 => Self::Four,
            8 => Self::Eight,
            _ => return None,
        })
    }

    /// The width of one value of this type.
    pub(super) fn new(datatype: Datatype) -> Self {
        Self::from_bytes(datatype.size()).unwrap_or(Self::One)
    }

    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Calls a function that is generic over a number of bytes, with the bytes of a [`Width`]: the inner loops
/// are compiled once per width, and need no decision per word.
macro_rules! by_width {
    ($width:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $width {
            $crate::bytes::filter::word::Width::One => $function::<1>($($argument),*),
            $crate::bytes::filter::word::Width::Two => $function::<2>($($argument),*),
            $crate::bytes::filter::word::Width::Four => $function::<4>($($argument),*),
            $crate::bytes::filter::word::Width::Eight => $function::<8>($($argument),*),
        }
    };
}
pub(super) use by_width;

/// The word with these bytes; `N` is at most 8.
pub(super) fn load<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(word)
}

/// The low bytes of a word; `N` is at most 8.
pub(super) fn store<const N: usize>(word: u64) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&word.to_le_bytes()[..N]);
    bytes
}

/// Writes the running totals of the words of `input` to `output`, which has the same length. `add` makes
/// the next total, starting from `total`. Bytes of `output` after the last whole word stay unchanged.
///
/// With addition from 10, the words 1, 2, 3 become 11, 13, 16.
pub(super) fn accumulate<const N: usize>(
    input: &[u8],
    output: &mut [u8],
    mut total: u64,
    add: impl Fn(u64, u64) -> u64,
) {
    for (word, place) in input.as_chunks::<N>().0.iter().zip(output.as_chunks_mut::<N>().0) {
        total = add(total, load(*word));
        *place = store(total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_low_bytes() {
        assert_eq!(load([0x34, 0x12]), 0x1234);
        assert_eq!(store::<2>(0xFFFF_5678), [0x78, 0x56]);
        let mut output = [9; 5];
        accumulate::<2>(&[255, 255, 3, 0, 1], &mut output, 1, u64::wrapping_add);
        assert_eq!(output, [0, 0, 3, 0, 9]);
    }
}
