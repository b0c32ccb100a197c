//! CF packing: values are stored integers × scale + offset. A reduction works on the stored integers, and
//! unpacks the statistics of groups instead of cells.
//!
//! ```text
//!   sum of values     scale × sum + offset × count
//!   least value       the least integer, unpacked; with a negative scale, the greatest
//!   value > 280       integer >= 14003: the first one whose value passes
//! ```

use super::bounds::Bounds;
use super::cell::Cell;
use super::keep::Keep;
use super::value_range::{Limit, Number, ValueRange};
use crate::array::{Element, Form};

/// The conversion from stored numbers to values. It preserves the order of integers, or reverses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Packing {
    pub(super) scale: f64,
    pub(super) offset: f64,
}

impl Packing {
    /// Returns the packing of a column; `None` if its values are as stored.
    pub(super) fn try_new(form: Form) -> Option<Self> {
        match form {
            Form::Stored => None,
            Form::Packed { scale, offset } => Some(Self { scale, offset }),
        }
    }

    /// Whether greater integers have lesser values.
    pub(super) fn is_reversed(self) -> bool {
        self.scale < 0.0
    }

    /// Returns the value of a stored number, rounded as the column rounds it.
    pub(super) fn unpack<T: Cell>(self, stored: T) -> f64 {
        stored.to_f64() * self.scale + self.offset
    }

    /// Whether all values, and their products with the scale, are finite.
    pub(super) fn is_finite<T: Cell>(self) -> bool {
        [T::LEAST, T::GREATEST].iter().all(|end| self.unpack(*end).is_finite())
    }

    /// Returns the test for stored integers whose values are in `range`, except `fill`.
    pub(super) fn keep<T: Element>(
        self,
        fill: Option<T::Native>,
        range: &ValueRange,
    ) -> Keep<T::Native>
    where
        T::Native: Cell + Bounds,
    {
        let above = |stored: T::Native| {
            range.least.is_none_or(|limit| passes(self.unpack(stored), limit, f64::gt))
        };
        let below = |stored: T::Native| {
            range.greatest.is_none_or(|limit| passes(self.unpack(stored), limit, f64::lt))
        };
        // The integers that pass one limit lie at one end of the type, those that pass the other at the other.
        let (low, high) = if self.is_reversed() {
            (first::<T>(below), first::<T>(|stored| !above(stored)))
        } else {
            (first::<T>(above), first::<T>(|stored| !below(stored)))
        };
        let ends = [T::Native::LEAST, T::Native::GREATEST].map(T::to_integer);
        let (Some(low), [Some(_), Some(end)]) = (low, ends) else { return Keep::Nothing };
        // One below the first integer that fails.
        let high = high.unwrap_or(end + 1) - 1;
        match (T::from_integer(low), T::from_integer(high)) {
            (Some(low), Some(high)) => Keep::between(low, high, fill, false),
            _ => Keep::Nothing,
        }
    }
}

/// Whether `value` passes a limit; `strictly` compares it with the number of the limit.
fn passes(value: f64, limit: Limit, strictly: fn(&f64, &f64) -> bool) -> bool {
    let number = match limit.number {
        Number::Float(number) => number,
        Number::Integer(number) => number as f64,
    };
    strictly(&value, &number) || (limit.inclusive && value == number)
}

/// Returns the first integer of the type for which `holds` is true; it must be true for all greater ones.
/// `None` if it is true for none, or the type is not one of integers.
fn first<T: Element>(holds: impl Fn(T::Native) -> bool) -> Option<i128>
where
    T::Native: Cell,
{
    let (mut from, mut to) =
        (T::to_integer(T::Native::LEAST)?, T::to_integer(T::Native::GREATEST)? + 1);
    let end = to;
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(T::from_integer(middle)?) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    (from < end).then_some(from)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Int8Type, UInt8Type};

    use super::*;
    use crate::reduce::keep::Test;

    /// Every integer passes exactly if its value passes the comparison as written.
    #[test]
    fn limits_are_those_of_the_values() {
        for scale in [0.5, 0.1, -0.1, -3.0, 0.0] {
            let packing = Packing { scale, offset: 10.0 };
            for number in [-100.0, 0.0, 9.9, 10.0, 10.1, 10.5, 12.7, 73.5, 1e9] {
                for inclusive in [false, true] {
                    let limit = Some(Limit { number: Number::Float(number), inclusive });
                    for range in [
                        ValueRange { least: limit, greatest: None },
                        ValueRange { least: None, greatest: limit },
                        ValueRange { least: limit, greatest: limit },
                    ] {
                        check::<Int8Type>(packing, &range);
                        check::<UInt8Type>(packing, &range);
                    }
                }
            }
        }
    }

    fn check<T: Element>(packing: Packing, range: &ValueRange)
    where
        T::Native: Cell + Bounds + std::fmt::Debug,
    {
        let fill = T::from_integer(7);
        let keep = packing.keep::<T>(fill, range);
        for stored in -128..256 {
            let Some(stored) = T::from_integer(stored) else { continue };
            let value = packing.unpack(stored);
            let passes = range.least.is_none_or(|limit| passes(value, limit, f64::gt))
                && range.greatest.is_none_or(|limit| passes(value, limit, f64::lt))
                && Some(stored) != fill;
            let kept = match keep {
                Keep::All | Keep::Numbers => true,
                Keep::Interval(interval) => interval.keeps(stored),
                Keep::Between(between) => between.keeps(stored),
                Keep::Nothing => false,
            };
            assert_eq!(kept, passes, "{stored:?} {packing:?} {range:?}");
        }
    }
}
