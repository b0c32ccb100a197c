//! [`StoredNumbers`]: numbers of a tile, to be compared as unsigned numbers of the same order.

use std::ops::Range;

use bytes::Bytes;
use half::f16;

use crate::format::ElementType;

/// The top bit, which makes signed numbers sort like unsigned ones.
const SIGN: u64 = 1 << 63;

/// Numbers of the cells of a tile. Comparing one makes an unsigned number of it.
#[derive(Debug, Clone)]
pub struct StoredNumbers {
    bytes: Bytes,
    element: ElementType,
}

impl StoredNumbers {
    /// Returns the numbers that these bytes hold.
    pub fn new(bytes: Bytes, element: ElementType) -> Self {
        Self { bytes, element }
    }

    /// Returns the number of numbers.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.element.size() as usize
    }

    /// Whether there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` with some numbers, as unsigned numbers of the same order and, for whole ones, the same differences.
    /// Both zeros of floating-point numbers are equal.
    pub fn for_each(&self, range: Range<usize>, each: impl FnMut(u64)) {
        let signed = |number: i64| number.cast_unsigned() ^ SIGN;
        let bytes = &*self.bytes;
        match self.element {
            ElementType::I8 => of(bytes, range, |it| signed(i8::from_le_bytes(it).into()), each),
            ElementType::I16 => of(bytes, range, |it| signed(i16::from_le_bytes(it).into()), each),
            ElementType::I32 => of(bytes, range, |it| signed(i32::from_le_bytes(it).into()), each),
            ElementType::I64 => of(bytes, range, |it| signed(i64::from_le_bytes(it)), each),
            ElementType::U8 => of(bytes, range, |it| u8::from_le_bytes(it).into(), each),
            ElementType::U16 => of(bytes, range, |it| u16::from_le_bytes(it).into(), each),
            ElementType::U32 => of(bytes, range, |it| u32::from_le_bytes(it).into(), each),
            ElementType::U64 => of(bytes, range, u64::from_le_bytes, each),
            ElementType::F16 => {
                of(bytes, range, |it| ordered_bits(f16::from_le_bytes(it).into()), each);
            }
            ElementType::F32 => {
                of(bytes, range, |it| ordered_bits(f32::from_le_bytes(it).into()), each);
            }
            ElementType::F64 => {
                of(bytes, range, |it| ordered_bits(f64::from_le_bytes(it)), each);
            }
        }
    }

    /// Returns all numbers; see [`StoredNumbers::for_each`].
    pub fn all(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len());
        self.for_each(0..self.len(), |number| all.push(number));
        all
    }

    /// Returns the number of one cell; 0 if there is no such cell.
    pub fn at(&self, cell: usize) -> u64 {
        let mut found = 0;
        self.for_each(cell..cell + 1, |number| found = number);
        found
    }
}

/// Calls `each` with converted numbers of `W` bytes.
#[inline(always)]
fn of<const W: usize>(
    bytes: &[u8],
    range: Range<usize>,
    convert: impl Fn([u8; W]) -> u64,
    each: impl FnMut(u64),
) {
    let words = bytes.as_chunks::<W>().0.get(range).unwrap_or_default();
    words.iter().map(|word| convert(*word)).for_each(each);
}

/// Returns the bits of a double as an unsigned number of the same order. Both zeros are equal.
///
/// It has no branch, because the signs of coordinates are often random.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    let negative = (bits.cast_signed() >> 63).cast_unsigned();
    bits ^ (negative | SIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_keep_their_order() {
        let numbers =
            [f64::NEG_INFINITY, -2.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1e-300, 7.0, f64::INFINITY];
        let bytes: Bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let stored = StoredNumbers::new(bytes, ElementType::F64);
        let all = stored.all();
        for (a, x) in numbers.iter().enumerate() {
            assert_eq!(stored.at(a), all[a]);
            for (b, y) in numbers.iter().enumerate() {
                assert_eq!(Some(all[a].cmp(&all[b])), x.partial_cmp(y), "{x} {y}");
            }
        }
        assert_eq!((stored.len(), stored.at(numbers.len())), (numbers.len(), 0));
    }
}
