//! Limits of a predicate in terms of the elements of a type.
//!
//! The order is Arrow's, in which -0 is less than 0: `value >= 0` leaves -0 out.

use std::cmp::Ordering;

use super::keep::{Limit, Number};

/// The elements that pass a limit.
pub(super) trait Bounds: Sized + Copy {
    /// The least element that passes a lower limit; `None` if none does.
    fn least_at(limit: Limit) -> Option<Self>;
    /// The greatest element that passes an upper limit; `None` if none does.
    fn greatest_at(limit: Limit) -> Option<Self>;
    /// Arrow's order of two elements.
    fn order(self, other: Self) -> Ordering;
    /// The zero that is not between the bounds although it equals one of them.
    fn zero_outside(low: Self, high: Self) -> Option<Self>;
}

/// The least integer that passes a lower limit; saturates at the ends of i128, which are beyond every
/// element.
fn least_integer(limit: Limit) -> i128 {
    match limit.number {
        Number::Integer(number) => number.saturating_add(i128::from(!limit.inclusive)),
        Number::Float(number) if is_negative_zero(number) => 0, // an integer's zero is positive
        Number::Float(number) if limit.inclusive => number.ceil() as i128,
        Number::Float(number) => (number.floor() as i128).saturating_add(1),
    }
}

/// The greatest integer that passes an upper limit, likewise.
fn greatest_integer(limit: Limit) -> i128 {
    match limit.number {
        Number::Integer(number) => number.saturating_sub(i128::from(!limit.inclusive)),
        Number::Float(number) if is_negative_zero(number) => -1,
        Number::Float(number) if limit.inclusive => number.floor() as i128,
        Number::Float(number) => (number.ceil() as i128).saturating_sub(1),
    }
}

fn is_negative_zero(number: f64) -> bool {
    number == 0.0 && number.is_sign_negative()
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
            fn zero_outside(_: Self, _: Self) -> Option<Self> {
                None
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
                let order = f64::from(nearest).total_cmp(&number);
                if order.is_gt() || (limit.inclusive && order.is_eq()) {
                    return Some(nearest);
                }
                let is_negative_zero = nearest == 0.0 && nearest.is_sign_negative();
                let next = if is_negative_zero { 0.0 } else { nearest.next_up() };
                f64::from(next).total_cmp(&number).is_gt().then_some(next)
            }
            /// What is below the number is above its opposite, with the other sign.
            fn greatest_at(limit: Limit) -> Option<Self> {
                let Number::Float(number) = limit.number else { return None };
                let opposite = Limit { number: Number::Float(-number), ..limit };
                Self::least_at(opposite).map(|least| -least)
            }
            fn order(self, other: Self) -> Ordering {
                self.total_cmp(&other)
            }
            fn zero_outside(low: Self, high: Self) -> Option<Self> {
                let is = |zero: $t, bound: $t| zero.to_bits() == bound.to_bits();
                if is(0.0, low) {
                    Some(-0.0)
                } else {
                    is(-0.0, high).then_some(0.0)
                }
            }
        }
    )*};
}

float_bounds!(f32, f64);
