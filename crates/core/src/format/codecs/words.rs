//! Numbers in stored bytes, in either byte order, and their casts as numpy makes them.

use half::f16;

use super::output::Fault;
use crate::format::ElementType;

/// Calls a function that is generic over a [`Word`] with the type of an [`ElementType`].
macro_rules! by_word {
    ($element:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $element {
            ElementType::F16 => $function::<half::f16>($($argument),*),
            ElementType::F32 => $function::<f32>($($argument),*),
            ElementType::F64 => $function::<f64>($($argument),*),
            ElementType::I8 => $function::<i8>($($argument),*),
            ElementType::I16 => $function::<i16>($($argument),*),
            ElementType::I32 => $function::<i32>($($argument),*),
            ElementType::I64 => $function::<i64>($($argument),*),
            ElementType::U8 => $function::<u8>($($argument),*),
            ElementType::U16 => $function::<u16>($($argument),*),
            ElementType::U32 => $function::<u32>($($argument),*),
            ElementType::U64 => $function::<u64>($($argument),*),
        }
    };
}
pub(super) use by_word;

/// A type of numbers in stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) element: ElementType,
    /// Whether they are big-endian.
    pub(super) big: bool,
}

/// Words that are cast at once, by way of doubles.
pub(super) const BLOCK: usize = 256;

impl Words {
    /// Returns the bytes of a word.
    pub(super) fn size(self) -> usize {
        usize::try_from(self.element.size()).unwrap_or(1)
    }

    /// Returns the length of these words in place of `len` bytes of words of the type `stored`.
    pub(super) fn len_after(self, len: usize, stored: Self) -> Result<usize, Fault> {
        let size = stored.size();
        if !len.is_multiple_of(size) {
            return Err(Fault::Corrupt(format!("{len} bytes, not whole words of {size}")));
        }
        Ok((len / size).saturating_mul(self.size()))
    }

    /// Casts words to doubles.
    pub(super) fn load(self, words: &[u8], values: &mut [f64]) {
        by_word!(self.element, load(words, self.big, values));
    }

    /// Casts doubles to words: to the nearest float, or to the whole part as an integer.
    pub(super) fn store(self, values: &[f64], words: &mut [u8]) {
        by_word!(self.element, store(values, self.big, words));
    }
}

fn load<W: Word>(words: &[u8], big: bool, values: &mut [f64]) {
    for (word, value) in words.chunks_exact(W::SIZE).zip(values) {
        *value = W::load(word, big).double();
    }
}

fn store<W: Word>(values: &[f64], big: bool, words: &mut [u8]) {
    for (value, word) in values.iter().zip(words.chunks_exact_mut(W::SIZE)) {
        W::from_double(*value).store(word, big);
    }
}

/// A number of one type.
pub(super) trait Word: Copy {
    /// Bytes of a number.
    const SIZE: usize;

    /// Reads a number from [`SIZE`](Self::SIZE) bytes.
    fn load(bytes: &[u8], big: bool) -> Self;

    /// Writes a number to [`SIZE`](Self::SIZE) bytes.
    fn store(self, bytes: &mut [u8], big: bool);

    /// Returns the integer, extended by its sign; the whole part of a float.
    fn extended(self) -> u64;

    /// Returns the integer that has these low bytes.
    fn from_low(bits: u64) -> Self;

    /// Returns the nearest double.
    fn double(self) -> f64;

    /// Returns the nearest number; for integers the whole part.
    fn from_double(double: f64) -> Self;
}

macro_rules! words {
    ($($word:ty: $extended:expr, $from_low:expr, $double:expr, $from_double:expr;)*) => {$(
        impl Word for $word {
            const SIZE: usize = size_of::<$word>();

            #[inline(always)]
            fn load(bytes: &[u8], big: bool) -> Self {
                let mut own = [0; size_of::<$word>()];
                own.copy_from_slice(bytes);
                if big { Self::from_be_bytes(own) } else { Self::from_le_bytes(own) }
            }

            #[inline(always)]
            fn store(self, bytes: &mut [u8], big: bool) {
                bytes.copy_from_slice(&if big { self.to_be_bytes() } else { self.to_le_bytes() });
            }

            #[inline(always)]
            fn extended(self) -> u64 {
                $extended(self)
            }

            #[inline(always)]
            fn from_low(bits: u64) -> Self {
                $from_low(bits)
            }

            #[inline(always)]
            fn double(self) -> f64 {
                $double(self)
            }

            #[inline(always)]
            fn from_double(double: f64) -> Self {
                $from_double(double)
            }
        }
    )*};
}

words! {
    i8: |word| i64::from(word) as u64, |bits| bits as i8, f64::from, |double| double as i64 as i8;
    i16: |word| i64::from(word) as u64, |bits| bits as i16, f64::from, |double| double as i64 as i16;
    i32: |word| i64::from(word) as u64, |bits| bits as i32, f64::from, |double| double as i64 as i32;
    i64: |word| word as u64, |bits| bits as i64, |word| word as f64, |double| double as i64;
    u8: u64::from, |bits| bits as u8, f64::from, |double| double as i64 as u8;
    u16: u64::from, |bits| bits as u16, f64::from, |double| double as i64 as u16;
    u32: u64::from, |bits| bits as u32, f64::from, |double| double as i64 as u32;
    u64: |word| word, |bits| bits, |word| word as f64, whole_unsigned;
    f16: |word: f16| word.to_f64() as i64 as u64, |bits| f16::from_f64(bits as f64), f16::to_f64, nearest_half;
    f32: |word| word as i64 as u64, |bits| bits as f32, f64::from, |double| double as f32;
    f64: |word| word as i64 as u64, |bits| bits as f64, |word| word, |double| double;
}

/// Casts a double as C does: negative numbers wrap.
fn whole_unsigned(double: f64) -> u64 {
    if double < 0.0 { double as i64 as u64 } else { double as u64 }
}

/// Rounds a double to the nearest half. To round to a single first would round twice, and so does
/// [`f16::from_f64`] on some machines.
pub(super) fn nearest_half(double: f64) -> f16 {
    let single = double as f32;
    if f64::from(single) == double || double.is_nan() {
        return f16::from_f32(single);
    }
    // Towards zero, and with the last bit set: this is on the same side of every tie as the double.
    let is_beyond = f64::from(single).abs() > double.abs();
    let towards_zero = single.to_bits() - u32::from(is_beyond);
    f16::from_f32(f32::from_bits(towards_zero | 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_nearest() {
        for bits in 0..0x7C00_u16 {
            let [low, high] = [bits, bits + 1].map(|bits| f16::from_bits(bits).to_f64());
            if high.is_infinite() {
                continue;
            }
            let tie = (low + high) / 2.0;
            let even = f16::from_bits(bits + (bits & 1)).to_f64();
            for (double, expected) in [
                (low, low),
                (tie, even),
                (tie.next_down(), low),
                (tie.next_up(), high),
                (tie * (1.0 + 1e-9), high),
                (tie * (1.0 - 1e-9), low),
            ] {
                assert_eq!(nearest_half(double).to_f64(), expected, "{double:?}");
                assert_eq!(nearest_half(-double).to_f64(), -expected, "{double:?}");
            }
        }
        assert!(nearest_half(f64::NAN).is_nan());
        assert_eq!(nearest_half(1e300), f16::INFINITY);
        assert_eq!(nearest_half(-1e-300).to_bits(), 0x8000);
    }

    #[test]
    fn doubles_become_integers_as_in_c() {
        assert_eq!([-1.9, 1.9, 300.0].map(u8::from_double), [255, 1, 44]);
        assert_eq!([-1.9, 1.9, 40_000.0].map(i16::from_double), [-1, 1, -25_536]);
        assert_eq!(
            [-1.0, 1.9, 1e19].map(u64::from_double),
            [u64::MAX, 1, 10_000_000_000_000_000_000]
        );
    }
}
