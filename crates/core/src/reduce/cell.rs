//! Stored numbers, as the kernels read them, and the registers in which they are added.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, UInt64Array};
use bytemuck::Pod;

use crate::format::Sum;

/// A register of a loop, in which the cells of a batch are added.
///
/// Sums of integers wrap. They are exact as long as a batch is at most 8192 cells long: the sum of so many
/// 16-bit integers needs 29 bits.
pub(super) trait Lane: Copy + Send + Sync + 'static {
    /// The sum of no cells.
    const ZERO: Self;
    /// Returns `self + other`; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// Converts to the nearest double.
    fn to_f64(self) -> f64;
}

macro_rules! lanes {
    ($($t:ty, $add:expr);* $(;)?) => {$(
        impl Lane for $t {
            const ZERO: Self = 0 as $t;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { $add(self, other) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}

lanes! {
    f64, |a, b| a + b;
    i32, i32::wrapping_add;
    u32, u32::wrapping_add;
    i64, i64::wrapping_add;
    u64, u64::wrapping_add;
}

/// A stored element, as the kernels read it.
pub(super) trait Cell: Pod + PartialOrd + Send + Sync {
    /// The bytes of an element in a tile, which may have any address.
    type Bytes: Pod + Debug + Send + Sync;
    /// The register of sums in doubles: narrow integers are added exactly, and converted once per run.
    type Lane: Lane;
    /// The register of wrapping sums. Unused for floats.
    type WideLane: Lane;
    /// The type of wrapping sums: a 64-bit integer. Unused for floats.
    type Wide: Lane;
    /// Whether an element may be NaN.
    const IS_FLOAT: bool;
    /// The least element that is not NaN.
    const LEAST: Self;
    /// The greatest element that is not NaN.
    const GREATEST: Self;
    /// NaN for floats, 0 for integers.
    const NAN: Self;

    /// Reads an element.
    fn from_bytes(bytes: Self::Bytes) -> Self;
    /// Returns the bytes of the element.
    fn to_bytes(self) -> Self::Bytes;
    /// Converts to the nearest double.
    fn to_f64(self) -> f64;
    /// Converts to the register of sums in doubles.
    fn lane(self) -> Self::Lane;
    /// Converts to the register of wrapping sums.
    fn wide_lane(self) -> Self::WideLane;
    /// Converts the wrapping sum of a batch.
    fn widen(sum: Self::WideLane) -> Self::Wide;
    /// Converts the sum of a zone map to the type of wrapping sums.
    fn wide_sum(sum: Sum) -> Self::Wide;
    /// Returns sums as an Arrow array.
    fn wide_array(sums: Vec<Self::Wide>) -> ArrayRef;
    /// Returns the element, or 0 unless `keep`, without a branch.
    fn zero_unless(self, keep: bool) -> Self;
    /// Whether the element is not NaN.
    fn is_number(self) -> bool;
    /// Whether two elements have the same bits; zeros of different sign do not.
    fn same_bits(self, other: Self) -> bool;
}

macro_rules! cells {
    ($($t:ident, $lane:ty, $wide_lane:ty, $wide:ty, $array:ty);* $(;)?) => {$(
        impl Cell for $t {
            type Bytes = [u8; size_of::<$t>()];
            type Lane = $lane;
            type WideLane = $wide_lane;
            type Wide = $wide;
            cell_limits!($t);

            #[inline(always)]
            fn from_bytes(bytes: Self::Bytes) -> Self { Self::from_ne_bytes(bytes) }
            #[inline(always)]
            fn to_bytes(self) -> Self::Bytes { self.to_ne_bytes() }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn lane(self) -> $lane { self as $lane }
            #[inline(always)]
            fn wide_lane(self) -> $wide_lane { self as $wide_lane }
            #[inline(always)]
            fn widen(sum: $wide_lane) -> $wide { sum as $wide }
            fn wide_sum(sum: Sum) -> $wide {
                match sum {
                    Sum::Signed(sum) => sum as $wide,
                    Sum::Unsigned(sum) => sum as $wide,
                    Sum::Float(sum) => sum as $wide,
                }
            }
            fn wide_array(sums: Vec<$wide>) -> ArrayRef { Arc::new(<$array>::from(sums)) }
        }
    )*};
}

macro_rules! cell_limits {
    (f32) => { cell_limits!(@float f32); };
    (f64) => { cell_limits!(@float f64); };
    (@float $t:ident) => {
        const IS_FLOAT: bool = true;
        const LEAST: Self = <$t>::NEG_INFINITY;
        const GREATEST: Self = <$t>::INFINITY;
        const NAN: Self = <$t>::NAN;
        #[inline(always)]
        fn zero_unless(self, keep: bool) -> Self {
            let zero = <$t>::to_bits(0.0);
            Self::from_bits(self.to_bits() & zero.wrapping_sub(keep.into()))
        }
        // By its bits: loops with this test are faster than with `self == self`.
        #[inline(always)]
        fn is_number(self) -> bool { self == self }
        #[inline(always)]
        fn same_bits(self, other: Self) -> bool { self.to_bits() == other.to_bits() }
    };
    ($t:ident) => {
        const IS_FLOAT: bool = false;
        const LEAST: Self = <$t>::MIN;
        const GREATEST: Self = <$t>::MAX;
        const NAN: Self = 0;
        #[inline(always)]
        fn zero_unless(self, keep: bool) -> Self { self & (0 as $t).wrapping_sub(keep as $t) }
        #[inline(always)]
        fn is_number(self) -> bool { true }
        #[inline(always)]
        fn same_bits(self, other: Self) -> bool { self == other }
    };
}

// Per type: the registers of its sums, and the type of wrapping sums with its array.
cells! {
    f32, f64, f64, f64, Float64Array;
    f64, f64, f64, f64, Float64Array;
    i8, i32, i32, i64, Int64Array;
    i16, i32, i32, i64, Int64Array;
    i32, i64, i64, i64, Int64Array;
    i64, f64, i64, i64, Int64Array;
    u8, u32, u32, u64, UInt64Array;
    u16, u32, u32, u64, UInt64Array;
    u32, u64, u64, u64, UInt64Array;
    u64, f64, u64, u64, UInt64Array;
}
