//! Integers that use only some bits of their bytes, such as those of 12 bits in 2 bytes.
//!
//! ```text
//!   stored:  0 0 1 0 0 1 1 1 1 1 1 0 … 0      4 bits that do not count, and whatever is below the first bit
//!                └ sign                       becomes an integer of the same width
//! ```

use std::fmt;

use gridfusion_core::format::codecs::StepDecoder;

/// The bits that are the integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    /// Bytes of a cell: at most 8.
    pub(super) width: usize,
    /// The lowest bit.
    pub(super) offset: u32,
    /// The number of bits: at least 1.
    pub(super) precision: u32,
    pub(super) is_signed: bool,
    pub(super) is_big_endian: bool,
}

impl Bits {
    /// Makes each integer one of all bits, in the same byte order.
    pub(super) fn apply(self, cells: &mut [u8]) {
        let unused = 64_u32.saturating_sub(self.precision);
        for cell in cells.chunks_exact_mut(self.width.clamp(1, 8)) {
            let mut word = [0; 8];
            if self.is_big_endian {
                cell.reverse();
            }
            word.iter_mut().zip(cell.iter()).for_each(|(to, from)| *to = *from);
            let shifted = u64::from_le_bytes(word).unbounded_shr(self.offset);
            let top = shifted.unbounded_shl(unused);
            let value = match self.is_signed {
                true => (top as i64).unbounded_shr(unused) as u64,
                false => top.unbounded_shr(unused),
            };
            cell.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
            if self.is_big_endian {
                cell.reverse();
            }
        }
    }
}

impl StepDecoder for Bits {
    fn decode(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        if stored.len() > most {
            return Err(format!("{} bytes of integers, expected {most}", stored.len()));
        }
        let mut cells = stored.to_vec();
        self.apply(&mut cells);
        Ok(cells)
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits from bit {}", self.precision, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_get_their_signs_and_lose_other_bits() {
        let bits =
            Bits { width: 2, offset: 0, precision: 12, is_signed: true, is_big_endian: false };
        assert_eq!(bits.decode(&[0xfb, 0x0f, 5, 0xf0], 4).unwrap(), [0xfb, 0xff, 5, 0]);
        let unsigned = Bits { is_signed: false, offset: 4, ..bits };
        assert_eq!(unsigned.decode(&[0xbf, 0xff], 2).unwrap(), [0xfb, 0x0f]);
        let big = Bits { is_big_endian: true, ..bits };
        assert_eq!(big.decode(&[0x0f, 0xfb], 2).unwrap(), [0xff, 0xfb]);
        let whole = Bits { width: 8, precision: 64, ..bits };
        assert_eq!(whole.decode(&[0xfe; 8], 8).unwrap(), [0xfe; 8]);
        assert!(bits.decode(&[0; 4], 2).is_err());
    }
}
