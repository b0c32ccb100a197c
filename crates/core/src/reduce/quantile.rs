//! [`Quantile`]: the rank of a quantile among sorted values, and the number between two of them.

use arrow::datatypes::ArrowNativeTypeOp;

use super::gathered_values::TotalOrder;

/// A quantile, which lies at a rank or between it and the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantile {
    /// The middle value, or the mean of the two middle ones, in the precision of the values.
    Median,
    /// A fraction of the values, from 0 to 1: values are interpolated in double precision.
    Fraction(f64),
}

impl Quantile {
    /// Returns the fraction of the values that are less.
    pub(super) fn fraction(self) -> f64 {
        match self {
            Self::Median => 0.5,
            Self::Fraction(fraction) => fraction,
        }
    }

    /// Returns the rank of the value at or below the quantile of `len` values; `None` without values.
    pub(super) fn rank(self, len: usize) -> Option<usize> {
        let last = len.checked_sub(1)?;
        Some(match self {
            Self::Median => last / 2,
            Self::Fraction(fraction) => (fraction * last as f64).floor() as usize,
        })
    }

    /// Returns the quantile of `len` values, from the value at its rank and the next one.
    ///
    /// These are the formulas of DataFusion's `median` and `percentile_cont`, so that both agree to the last digit.
    pub(super) fn between<T: TotalOrder>(
        self,
        len: usize,
        low: T::Native,
        high: T::Native,
    ) -> T::Native {
        /// Weights are whole multiples of its inverse.
        const STEPS: f64 = 1_000_000.0;
        match self {
            Self::Median if len % 2 == 1 => low,
            Self::Median => low.add_wrapping(high).div_wrapping(T::from_double(2.0)),
            Self::Fraction(fraction) => {
                let at = fraction * (len - 1) as f64;
                let beyond = at - at.floor();
                if beyond == 0.0 {
                    return low;
                }
                let weight = (beyond * STEPS) as usize as f64 / STEPS;
                let (low, high) = (T::to_double(low), T::to_double(high));
                T::from_double(low + (high - low) * weight)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float32Array, Float64Array};
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{Float32Type, Float64Type};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::reduce::GatheredValues;

    /// Each group is sorted, and its quantiles are read off.
    #[test]
    fn quantiles_are_those_of_sorted_groups() {
        let mut rng = StdRng::seed_from_u64(45);
        let wanted = [0.9, 0.0, 0.5, 1.0, 0.25].map(Quantile::Fraction);
        let wanted = [&wanted[..], &[Quantile::Median]].concat();
        for _ in 0..500 {
            let count = rng.random_range(1..20);
            let mut sorted = vec![vec![]; count];
            let mut gathered = GatheredValues::<Float64Type>::default();
            for _ in 0..rng.random_range(0..5) {
                let rows = rng.random_range(0..60);
                let groups: Vec<usize> = (0..rows).map(|_| rng.random_range(0..count)).collect();
                let values: Vec<Option<f64>> = (0..rows)
                    .map(|_| rng.random_bool(0.7).then(|| f64::from(rng.random_range(-9..9))))
                    .collect();
                let mask: Vec<bool> = (0..rows).map(|_| rng.random_bool(0.8)).collect();
                for ((group, value), kept) in groups.iter().zip(&values).zip(&mask) {
                    sorted[*group].extend(value.filter(|_| *kept));
                }
                let mask = NullBuffer::from(mask);
                gathered.push(&Float64Array::from(values), &groups, Some(&mask));
            }
            sorted.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
            let columns = gathered.grouped(count).quantiles(&wanted);
            for (quantile, column) in wanted.iter().zip(columns) {
                for (group, values) in sorted.iter().enumerate() {
                    let expected = (!values.is_empty()).then(|| {
                        let at = quantile.fraction() * (values.len() - 1) as f64;
                        let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
                        low + (high - low) * (at - at.floor())
                    });
                    let actual = column.is_valid(group).then(|| column.value(group));
                    match (actual, expected) {
                        (Some(actual), Some(expected)) => {
                            assert!((actual - expected).abs() < 1e-4, "{actual} {expected}");
                        }
                        (actual, expected) => assert_eq!(actual, expected),
                    }
                }
            }
        }
    }

    #[test]
    fn nan_is_the_greatest_and_lists_hold_all_values() {
        let numbers = [f32::NAN, -0.0, f32::NEG_INFINITY, 3.5, f32::INFINITY, 0.0, -7.25];
        let values = Float32Array::from(numbers.to_vec());
        let gathered = || {
            let mut gathered = GatheredValues::<Float32Type>::default();
            gathered.push(&values, &[0; 7], None);
            gathered.grouped(2)
        };
        let ranks: Vec<Quantile> =
            (0..7).map(|rank| Quantile::Fraction(f64::from(rank) / 6.0)).collect();
        let mut sorted = numbers;
        sorted.sort_by(f32::total_cmp);
        for (column, expected) in gathered().quantiles(&ranks).iter().zip(sorted) {
            assert_eq!(column.value(0).to_bits(), expected.to_bits());
            assert!(column.is_null(1));
        }
        let lists = gathered().lists().unwrap();
        assert_eq!((lists.len(), lists.value(0).len(), lists.value(1).len()), (2, 7, 0));
    }
}
