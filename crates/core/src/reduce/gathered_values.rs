//! The values of groups, kept whole, for statistics that need all of them, such as the median.
//!
//! ```text
//!   as they come   values 5 3 9 4 1 7     groups 0 1 0 0 1 0        8 bytes per value of single precision
//!   by group       5 9 4 7 │ 3 1          starts 0 4 6              one pass, without hashing or growing lists
//!   selected       4 5 │ 7 9              a partition around each wanted rank, not a sort
//!   sorted         4 5 7 9 │ 1 3          only to count equal values
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ListArray, PrimitiveArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeTypeOp, ArrowPrimitiveType, Field, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::quantile::Quantile;
use crate::error::{Error, Result};

/// A type of numbers, whose total order is that of integers.
///
/// The total order of floats puts NaN with a sign first, then numbers from the least on, then NaN.
pub trait TotalOrder: ArrowPrimitiveType<Native: ArrowNativeTypeOp> {
    /// The integer.
    type Key: Ord + Copy + Default + Debug + Send;

    /// Returns the integer of a number.
    fn key(number: Self::Native) -> Self::Key;

    /// Returns the number of an integer.
    fn number(key: Self::Key) -> Self::Native;

    /// Returns the integer of 0 for that of a zero with a sign, and others as they are.
    fn with_one_zero(key: Self::Key) -> Self::Key;

    /// Returns the number in double precision.
    fn to_double(number: Self::Native) -> f64;

    /// Returns the nearest number.
    fn from_double(number: f64) -> Self::Native;
}

macro_rules! total_order {
    ($arrow:ty, $native:ty, $key:ty, $bits:ty, $to:expr, $from:expr) => {
        impl TotalOrder for $arrow {
            type Key = $key;

            fn key(number: $native) -> $key {
                let bits = number.to_bits() as $key;
                bits ^ ((bits >> (<$key>::BITS - 1)) as $bits >> 1) as $key
            }

            fn number(key: $key) -> $native {
                let bits = key ^ ((key >> (<$key>::BITS - 1)) as $bits >> 1) as $key;
                <$native>::from_bits(bits as $bits)
            }

            fn with_one_zero(key: $key) -> $key {
                if key == -1 { 0 } else { key }
            }

            fn to_double(number: $native) -> f64 {
                $to(number)
            }

            fn from_double(number: f64) -> $native {
                $from(number)
            }
        }
    };
}

total_order!(Float16Type, half::f16, i16, u16, half::f16::to_f64, half::f16::from_f64);
total_order!(Float32Type, f32, i32, u32, f64::from, |number| number as f32);
total_order!(Float64Type, f64, i64, u64, |number| number, |number| number);

macro_rules! total_order_of_integers {
    ($($arrow:ty, $native:ty;)*) => {
        $(impl TotalOrder for $arrow {
            type Key = $native;

            fn key(number: $native) -> $native {
                number
            }

            fn number(key: $native) -> $native {
                key
            }

            fn with_one_zero(key: $native) -> $native {
                key
            }

            fn to_double(number: $native) -> f64 {
                number as f64
            }

            fn from_double(number: f64) -> $native {
                number as $native
            }
        })*
    };
}

total_order_of_integers! {
    Int8Type, i8;
    Int16Type, i16;
    Int32Type, i32;
    Int64Type, i64;
    UInt8Type, u8;
    UInt16Type, u16;
    UInt32Type, u32;
    UInt64Type, u64;
}

/// The values of groups, in the order in which they come.
#[derive(Debug)]
pub struct GatheredValues<T: TotalOrder> {
    batches: Vec<Batch<T>>,
    len: usize,
}

#[derive(Debug)]
struct Batch<T: TotalOrder> {
    keys: Vec<T::Key>,
    groups: Vec<u32>,
}

impl<T: TotalOrder> Default for GatheredValues<T> {
    fn default() -> Self {
        Self { batches: vec![], len: 0 }
    }
}

impl<T: TotalOrder> GatheredValues<T> {
    /// The greatest number of groups.
    pub const MOST_GROUPS: usize = u32::MAX as usize;

    /// Adds the values that are not NULL and that `mask` keeps. `groups` has the group of each, less than
    /// [`MOST_GROUPS`](Self::MOST_GROUPS).
    pub fn push(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &[usize],
        mask: Option<&NullBuffer>,
    ) {
        let valid = NullBuffer::union(values.nulls(), mask);
        let count = values.len() - valid.as_ref().map_or(0, NullBuffer::null_count);
        let (mut keys, mut of_keys) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut add = |rows: std::ops::Range<usize>| {
            keys.extend(values.values()[rows.clone()].iter().map(|number| T::key(*number)));
            of_keys.extend(groups[rows].iter().map(|group| *group as u32));
        };
        match &valid {
            Some(valid) => valid.valid_slices().for_each(|(start, end)| add(start..end)),
            None => add(0..values.len()),
        }
        self.len += keys.len();
        self.batches.push(Batch { keys, groups: of_keys });
    }

    /// The bytes of a value, of the number of its group, and of the copy that [`grouped`](Self::grouped) makes.
    pub const BYTES_PER_VALUE: usize = 2 * size_of::<T::Key>() + size_of::<u32>();

    /// Returns the bytes of the values, and of the copy that [`grouped`](Self::grouped) makes.
    pub fn bytes(&self) -> usize {
        self.len * Self::BYTES_PER_VALUE + self.batches.capacity() * size_of::<Batch<T>>()
    }

    /// Returns the values group by group.
    pub fn grouped(self, groups: usize) -> GroupedValues<T> {
        let mut starts = vec![0; groups + 1];
        let of_batches = self.batches.iter().flat_map(|batch| &batch.groups);
        of_batches.for_each(|group| starts[*group as usize + 1] += 1);
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut keys = vec![T::Key::default(); self.len];
        for batch in self.batches {
            for (key, group) in batch.keys.into_iter().zip(batch.groups) {
                let next = &mut next[group as usize];
                keys[*next] = key;
                *next += 1;
            }
        }
        GroupedValues { keys, starts }
    }
}

/// The values of groups, one group behind the other.
#[derive(Debug)]
pub struct GroupedValues<T: TotalOrder> {
    pub(super) keys: Vec<T::Key>,
    /// The first value of each group, and the end of the last one.
    pub(super) starts: Vec<usize>,
}

impl<T: TotalOrder> GroupedValues<T> {
    /// Returns a column per quantile, with the answer of each group; NULL for a group without values.
    pub fn quantiles(&mut self, wanted: &[Quantile]) -> Vec<PrimitiveArray<T>> {
        // With ascending ranks, each selection is among the values behind the one before.
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by(|a, b| wanted[*a].fraction().total_cmp(&wanted[*b].fraction()));
        let mut columns = vec![Vec::with_capacity(self.starts.len() - 1); wanted.len()];
        for group in self.starts.windows(2) {
            let mut rest = &mut self.keys[group[0]..group[1]];
            let (len, mut before) = (rest.len(), 0);
            for at in &order {
                let quantile = wanted[*at];
                columns[*at].push(quantile.rank(len).map(|rank| {
                    let (_, low, above) = rest.select_nth_unstable(rank - before);
                    let low = *low;
                    let high = above.iter().min().copied().unwrap_or(low);
                    rest = &mut std::mem::take(&mut rest)[rank - before..];
                    before = rank;
                    quantile.between::<T>(len, T::number(low), T::number(high))
                }));
            }
        }
        columns.into_iter().map(PrimitiveArray::from_iter).collect()
    }

    /// Returns the values of each group as a list.
    ///
    /// # Errors
    /// `Unsupported` if there are 2³¹ values or more, which lists of Arrow do not hold.
    pub fn lists(self) -> Result<ListArray> {
        let offsets =
            self.starts.iter().map(|start| i32::try_from(*start)).collect::<Result<_, _>>();
        let offsets: Vec<i32> = offsets.map_err(|_| {
            Error::unsupported(format!(
                "{} values of groups in a list of at most {}; group by fewer cells, or add a condition",
                self.keys.len(),
                i32::MAX
            ))
        })?;
        let numbers: Vec<T::Native> = self.keys.into_iter().map(T::number).collect();
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(numbers), None);
        let field = Arc::new(Field::new_list_field(T::DATA_TYPE, true));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(ListArray::new(field, offsets, Arc::new(values), None))
    }
}
