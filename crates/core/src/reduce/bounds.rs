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

#[cfg(test)]
mod tests {
    use super::*;

    fn float(number: f64, inclusive: bool) -> Limit {
        Limit { number: Number::Float(number), inclusive }
    }

    fn integer(number: i128, inclusive: bool) -> Limit {
        Limit { number: Number::Integer(number), inclusive }
    }

    #[test]
    fn limits_of_integers_are_rounded_inwards() {
        assert_eq!(i32::least_at(float(3.5, false)), Some(4));
        assert_eq!(i32::least_at(float(3.0, true)), Some(3));
        assert_eq!(i32::least_at(float(3.0, false)), Some(4));
        assert_eq!(i32::greatest_at(float(-3.5, true)), Some(-4));
        assert_eq!(i32::greatest_at(float(3.0, false)), Some(2));
        assert_eq!(u8::least_at(integer(-4, true)), Some(0));
        assert_eq!(u8::greatest_at(integer(255, false)), Some(254));
        assert_eq!(u64::greatest_at(float(f64::INFINITY, false)), Some(u64::MAX));
    }

    #[test]
    fn limits_beyond_the_type_leave_nothing() {
        assert_eq!(u8::least_at(integer(300, true)), None);
        assert_eq!(u8::greatest_at(integer(-1, true)), None);
        assert_eq!(i64::least_at(integer(i128::MAX, false)), None);
        assert_eq!(u8::greatest_at(integer(0, false)), None);
        assert_eq!(f64::least_at(float(f64::INFINITY, false)), None);
        assert_eq!(f32::greatest_at(float(f64::NEG_INFINITY, false)), None);
    }

    /// The double 0.1 lies between two singles.
    #[test]
    fn limits_of_singles_are_the_nearest_that_pass() {
        let (below, above) = (0.1_f32.next_down(), 0.1_f32);
        assert!(f64::from(below) < 0.1 && 0.1 < f64::from(above));
        for inclusive in [true, false] {
            assert_eq!(f32::least_at(float(0.1, inclusive)), Some(above));
            assert_eq!(f32::greatest_at(float(0.1, inclusive)), Some(below));
            assert_eq!(f32::greatest_at(float(-0.1, inclusive)), Some(-above));
        }
        assert_eq!(f32::least_at(float(0.5, true)), Some(0.5));
        assert_eq!(f32::least_at(float(0.5, false)), Some(0.5_f32.next_up()));
        assert_eq!(f32::least_at(integer(1, true)), None);
    }

    #[test]
    fn zeros_of_either_sign_are_equal() {
        // No negative number and no zero passes.
        for zero in [0.0, -0.0] {
            let least = f64::least_at(float(zero, false)).unwrap();
            assert!(least > 0.0 && least < 1e-300);
            assert_eq!(f64::least_at(float(zero, true)).unwrap(), 0.0);
        }
        assert_eq!(0.0_f64.order(-0.0), Ordering::Equal);
    }
}
