//! Numbers in stored bytes, in either byte order, and their casts as numpy makes them.

use half::f16;

/// A number of one type.
pub(super) trait Word: Copy {
    /// Bytes of a number.
    const SIZE: usize;

    /// Reads a number from [`SIZE`](Self::SIZE) bytes.
    fn load(bytes: &[u8], big: bool) -> Self;

    /// Writes a number to [`SIZE`](Self::SIZE) bytes.
    fn store(self, bytes: &mut [u8], big: bool);

    /// Returns the number as an integer that wraps; the whole part of a float.
    fn wrapped(self) -> u64;

    fn half(self) -> f16;

    fn single(self) -> f32;

    fn double(self) -> f64;

    /// Returns the nearest number; the whole part for integers.
    fn from_double(double: f64) -> Self;

    /// Returns the sum; integers wrap.
    fn plus(self, other: Self) -> Self;

    /// Casts a number to this type.
    fn cast(word: impl Word) -> Self;
}

macro_rules! words {
    ($($word:ty, $wrapped:expr, $half:expr, $single:expr, $double:expr, $from:expr, $plus:expr, $cast:expr;)*) => {$(
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
            fn wrapped(self) -> u64 {
                $wrapped(self)
            }

            #[inline(always)]
            fn half(self) -> f16 {
                $half(self)
            }

            #[inline(always)]
            fn single(self) -> f32 {
                $single(self)
            }

            #[inline(always)]
            fn double(self) -> f64 {
                $double(self)
            }

            #[inline(always)]
            fn from_double(double: f64) -> Self {
                $from(double)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            #[inline(always)]
            fn cast(word: impl Word) -> Self {
                $cast(word)
            }
        }
    )*};
}

macro_rules! integers {
    ($($word:ident),*) => { words! {$(
        $word,
        |word: $word| i128::from(word) as u64,
        |word: $word| f16::from_f32(word as f32),
        |word: $word| word as f32,
        |word: $word| word as f64,
        |double: f64| double as $word,
        $word::wrapping_add,
        |word| Word::wrapped(word) as $word;
    )*} };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

words! {
    f16, |word: f16| word.to_f64() as i64 as u64, |word| word, f16::to_f32, f16::to_f64, f16::from_f64,
        |left: f16, right: f16| f16::from_f32(left.to_f32() + right.to_f32()), |word| Word::half(word);
    f32, |word: f32| word as i64 as u64, f16::from_f32, |word| word, f64::from, |double: f64| double as f32,
        |left: f32, right: f32| left + right, |word| Word::single(word);
    f64, |word: f64| word as i64 as u64, f16::from_f64, |word: f64| word as f32, |word| word, |double| double,
        |left: f64, right: f64| left + right, |word| Word::double(word);
}

/// Calls a function that is generic over a [`Word`] with the type of an
/// [`ElementType`](crate::format::ElementType).
macro_rules! by_word {
    ($element:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        use crate::format::ElementType;
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
    }};
}
pub(super) use by_word;
