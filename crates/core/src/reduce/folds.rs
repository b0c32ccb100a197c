//! The operations of [`SlidingFold`](super::SlidingFold).

use super::moments::Moments;
use super::sliding::Fold;

/// The sum of floats.
#[derive(Debug)]
pub struct FloatSum;

impl Fold for FloatSum {
    type Item = f64;
    const IDENTITY: f64 = 0.0;

    #[inline(always)]
    fn combine(earlier: f64, later: f64) -> f64 {
        earlier + later
    }
}

/// The sum of integers, signed or not, which wraps around as DataFusion's does.
#[derive(Debug)]
pub struct IntegerSum;

impl Fold for IntegerSum {
    type Item = i64;
    const IDENTITY: i64 = 0;

    #[inline(always)]
    fn combine(earlier: i64, later: i64) -> i64 {
        earlier.wrapping_add(later)
    }
}

/// The number of values that are not NULL.
#[derive(Debug)]
pub struct ValueCount;

impl Fold for ValueCount {
    type Item = u32;
    const IDENTITY: u32 = 0;

    #[inline(always)]
    fn combine(earlier: u32, later: u32) -> u32 {
        earlier.wrapping_add(later)
    }
}

/// The least number.
#[derive(Debug)]
pub struct Least;

impl Fold for Least {
    type Item = i64;
    const IDENTITY: i64 = i64::MAX;

    #[inline(always)]
    fn combine(earlier: i64, later: i64) -> i64 {
        earlier.min(later)
    }
}

/// The greatest number.
#[derive(Debug)]
pub struct Greatest;

impl Fold for Greatest {
    type Item = i64;
    const IDENTITY: i64 = i64::MIN;

    #[inline(always)]
    fn combine(earlier: i64, later: i64) -> i64 {
        earlier.max(later)
    }
}

/// The first value that is known.
#[derive(Debug)]
pub struct FirstKnown;

impl Fold for FirstKnown {
    type Item = Option<i64>;
    const IDENTITY: Option<i64> = None;

    #[inline(always)]
    fn combine(earlier: Option<i64>, later: Option<i64>) -> Option<i64> {
        earlier.or(later)
    }
}

/// The last value that is known.
#[derive(Debug)]
pub struct LastKnown;

impl Fold for LastKnown {
    type Item = Option<i64>;
    const IDENTITY: Option<i64> = None;

    #[inline(always)]
    fn combine(earlier: Option<i64>, later: Option<i64>) -> Option<i64> {
        later.or(earlier)
    }
}

/// Counts, means and spreads.
#[derive(Debug)]
pub struct Spread;

impl Fold for Spread {
    type Item = Moments;
    const IDENTITY: Moments = Moments { count: 0, mean: 0.0, m2: 0.0 };

    #[inline(always)]
    fn combine(mut earlier: Moments, later: Moments) -> Moments {
        earlier.merge(later);
        earlier
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Frames slide by folding parts: the identity changes nothing, and parts may be combined in any way that keeps their order.
    fn is_a_fold<F: Fold>(items: [F::Item; 3], all: F::Item)
    where
        F::Item: Copy + Debug + PartialEq,
    {
        let [a, b, c] = items;
        for item in items {
            assert_eq!(F::combine(F::IDENTITY, item), item);
            assert_eq!(F::combine(item, F::IDENTITY), item);
        }
        assert_eq!(F::combine(F::combine(a, b), c), all);
        assert_eq!(F::combine(a, F::combine(b, c)), all);
    }

    #[test]
    fn folds_have_an_identity_and_parts() {
        is_a_fold::<FloatSum>([1.5, -2.0, 4.0], 3.5);
        is_a_fold::<IntegerSum>([i64::MAX, 2, -1], i64::MIN);
        is_a_fold::<ValueCount>([1, 0, 7], 8);
        is_a_fold::<Least>([3, -5, 9], -5);
        is_a_fold::<Greatest>([3, -5, 9], 9);
        is_a_fold::<FirstKnown>([None, Some(4), Some(2)], Some(4));
        is_a_fold::<LastKnown>([Some(4), Some(2), None], Some(2));
        let of = |mean: f64| Moments { count: 1, mean, m2: 0.0 };
        is_a_fold::<Spread>([of(1.0), of(3.0), of(5.0)], Moments { count: 3, mean: 3.0, m2: 8.0 });
    }
}
