//! Limits of a predicate, converted to elements of the stored type.
//!
//! Comparisons follow DataFusion: zeros of different sign are equal.
//!
//! ```text
//!   predicate       element   least element that passes
//!   value > 3.5     i32       4
//!   value >= 3.0    i32       3
//!   value > 300     u8        none: no element passes
//!   value > 0.1     f32       the single nearest to 0.1, because it is a little greater than the double 0.1
//! ```

use std::cmp::Ordering;

use super::value_range::{Limit, Number};

/// An element type in which the limits of a predicate can be expressed.
pub(super) trait Bounds: Sized + Copy {
    /// Returns the least element that passes a lower limit; `None` if none does.
    fn least_at(limit: Limit) -> Option<Self>;
    /// Returns the greatest element that passes an upper limit; `None` if none does.
    fn greatest_at(limit: Limit) -> Option<Self>;
    /// Compares two elements, neither of them NaN.
    fn order(self, other: Self) -> Ordering;
}

/// Returns the least integer that passes a lower limit. It saturates at the ends of `i128`, which are
/// beyond every element.
fn least_integer(limit: Limit) -> i128 {
    match limit.number {
        Number::Integer(number) => number.saturating_add(i128::from(!limit.inclusive)),
        Number::Float(number) if limit.inclusive => number.ceil() as i128,
        Number::Float(number) => (number.floor() as i128).saturating_add(1),
    }
}

/// Returns the greatest integer that passes an upper limit; saturates like [`least_integer`].
fn greatest_integer(limit: Limit) -> i128 {
    match limit.number {
        Number::Integer(number) => number.saturating_sub(i128::from(!limit.inclusive)),
        Number::Float(number) if limit.inclusive => number.floor() as i128,
        Number::Float(number) => (number.ceil() as i128).saturating_sub(1),
    }
}

macro_rules! integer_bounds {
    ($($t:ty),*) => {$(
        impl Bounds for $t {
            fn least_at(limit: Limit) -> Option<Self> {
                least_integer(limit).max(<$t>::MIN.into()).try_into().ok()
            }
            fn greatest_at(limit: Limit) -> Option<Self> {
                greatest_integer(limit).min(<$t>::MAX.into()).try_into().ok()
            }
            fn order(self, other: Self) -> Ordering {
                self.cmp(&other)
            }
        }
    )*};
}

integer_bounds!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float_bounds {
    ($($t:ty),*) => {$(
        impl Bounds for $t {
            fn least_at(limit: Limit) -> Option<Self> {
                let Number::Float(number) = limit.number else { return None };
                // The nearest element may lie on either side of the number.
                let nearest = number as $t;
                let exact = f64::from(nearest);
                if exact > number || (limit.inclusive && exact == number) {
                    return Some(nearest);
                }
                let next = nearest.next_up();
                (f64::from(next) > number).then_some(next)
            }
            /// Negates the least element that passes the negated limit as a lower limit.
            fn greatest_at(limit: Limit) -> Option<Self> {
                let Number::Float(number) = limit.number else { return None };
                let opposite = Limit { number: Number::Float(-number), ..limit };
                Self::least_at(opposite).map(|least| -least)
            }
            fn order(self, other: Self) -> Ordering {
                self.partial_cmp(&other).unwrap_or(Ordering::Equal)
            }
        }
    )*};
}

float_bounds!(f32, f64);
