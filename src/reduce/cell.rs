//! Stored numbers, as the kernels read them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, UInt64Array};

use crate::format::Sum;

/// A stored element, as the kernels read it: little-endian bytes at any address.
pub(super) trait Cell: Copy + PartialOrd + Send + Sync + 'static {
    /// The bytes of one element.
    type Bytes: Copy + Send + Sync;
    /// The type of wrapping sums: a 64-bit integer. Unused for floats.
    type Wide: Copy + Send + Sync;
    /// The least element that is not NaN.
    const LEAST: Self;
    /// The greatest element that is not NaN.
    const GREATEST: Self;
    /// The sum of no elements.
    const ZERO: Self::Wide;

    /// Decodes an element.
    fn load(bytes: Self::Bytes) -> Self;
    /// Views the bytes of a tile as elements. Ignores a rest shorter than an element.
    fn cells(bytes: &[u8]) -> &[Self::Bytes];
    /// Converts to the nearest double.
    fn to_f64(self) -> f64;
    /// Converts to the type of wrapping sums.
    fn widen(self) -> Self::Wide;
    /// Returns `a + b`; integers wrap.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Converts the sum of a zone map to the type of wrapping sums.
    fn wide_sum(sum: Sum) -> Self::Wide;
    /// Returns sums as an Arrow array.
    fn wide_array(sums: Vec<Self::Wide>) -> ArrayRef;
    /// Whether two elements have the same bits; zeros of different sign do not.
    fn same_bits(self, other: Self) -> bool;
}

macro_rules! cells {
    ($($t:ty, $size:literal, $wide:ty, $array:ty, $least:expr, $greatest:expr, $add:expr, $same:expr);* $(;)?) => {$(
        impl Cell for $t {
            type Bytes = [u8; $size];
            type Wide = $wide;
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;
            const ZERO: $wide = 0 as $wide;

            #[inline(always)]
            fn load(bytes: [u8; $size]) -> Self { <$t>::from_le_bytes(bytes) }
            fn cells(bytes: &[u8]) -> &[[u8; $size]] { bytes.as_chunks::<$size>().0 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn widen(self) -> $wide { self as $wide }
            #[inline(always)]
            fn add(a: $wide, b: $wide) -> $wide { $add(a, b) }
            fn wide_sum(sum: Sum) -> $wide {
                match sum {
                    Sum::Signed(sum) => sum as $wide,
                    Sum::Unsigned(sum) => sum as $wide,
                    Sum::Float(sum) => sum as $wide,
                }
            }
            fn wide_array(sums: Vec<$wide>) -> ArrayRef { Arc::new(<$array>::from(sums)) }
            #[inline(always)]
            fn same_bits(self, other: Self) -> bool { $same(self, other) }
        }
    )*};
}

// Per type: its size in bytes, and the type of its sums with its array. Then the least and the greatest
// element, the addition of sums, and the comparison of bits.
cells! {
    f32, 4, f64, Float64Array, f32::NEG_INFINITY, f32::INFINITY, |a, b| a + b, |a: f32, b: f32| a.to_bits() == b.to_bits();
    f64, 8, f64, Float64Array, f64::NEG_INFINITY, f64::INFINITY, |a, b| a + b, |a: f64, b: f64| a.to_bits() == b.to_bits();
    i8, 1, i64, Int64Array, i8::MIN, i8::MAX, i64::wrapping_add, |a, b| a == b;
    i16, 2, i64, Int64Array, i16::MIN, i16::MAX, i64::wrapping_add, |a, b| a == b;
    i32, 4, i64, Int64Array, i32::MIN, i32::MAX, i64::wrapping_add, |a, b| a == b;
    i64, 8, i64, Int64Array, i64::MIN, i64::MAX, i64::wrapping_add, |a, b| a == b;
    u8, 1, u64, UInt64Array, u8::MIN, u8::MAX, u64::wrapping_add, |a, b| a == b;
    u16, 2, u64, UInt64Array, u16::MIN, u16::MAX, u64::wrapping_add, |a, b| a == b;
    u32, 4, u64, UInt64Array, u32::MIN, u32::MAX, u64::wrapping_add, |a, b| a == b;
    u64, 8, u64, UInt64Array, u64::MIN, u64::MAX, u64::wrapping_add, |a, b| a == b;
}
