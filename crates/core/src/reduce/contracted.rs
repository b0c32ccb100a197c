//! The statistics of groups, added up to those of coarser groups.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray, UInt64Array,
    downcast_primitive_array,
};
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, Int64Type, UInt64Type};

use super::group_stats::{GroupStats, RequestedStats};
use super::moments::Moments;
use super::pair_sums::Pairs;
use crate::error::{Error, Result};

/// How groups are added up: each has a coarser group, or does not count.
#[derive(Debug, Clone, Copy)]
pub struct Coarser<'a> {
    /// The place of the coarser group, for each group.
    pub places: &'a [usize],
    /// The number of coarser groups.
    pub groups: usize,
    /// Whether each group counts.
    pub counted: &'a [bool],
}

impl Coarser<'_> {
    /// Returns each group that counts, with the place of its coarser group.
    pub(super) fn pairs(self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.places.iter().copied().enumerate().zip(self.counted);
        pairs.filter(|(_, counted)| **counted).map(|(pair, _)| pair)
    }

    /// Folds a state of each group into that of its coarser group.
    pub(super) fn fold<S: Clone, C: Copy>(
        self,
        empty: S,
        states: &[C],
        fold: impl Fn(&mut S, C),
    ) -> Vec<S> {
        let mut coarse = vec![empty; self.groups];
        self.pairs().for_each(|(group, place)| fold(&mut coarse[place], states[group]));
        coarse
    }

    /// Adds up counts.
    pub fn counts(self, counts: &[u64]) -> Vec<u64> {
        self.fold(0, counts, |sum, count| *sum += count)
    }

    /// Adds up the counts, and those of the `requested` statistics. Sums of weighted cells and numbers of
    /// cells are not among them.
    ///
    /// # Errors
    /// `Internal` if extremes are not numbers.
    pub fn stats(self, stats: &GroupStats, requested: RequestedStats) -> Result<GroupStats> {
        let RequestedStats { sum, wide_sum, min, max, spread, pairs } = requested;
        let extreme = |array: Option<&ArrayRef>, is_max: bool| {
            array.map(|array| self.extremes(array, &stats.counts, is_max)).transpose()
        };
        let sums = stats.sums.as_deref().filter(|_| sum);
        let wide_sums = stats.wide_sums.as_ref().filter(|_| wide_sum);
        let spreads = stats.spreads.as_deref().filter(|_| spread);
        let pairs = stats.pairs.as_deref().filter(|_| pairs);
        Ok(GroupStats {
            counts: self.counts(&stats.counts),
            sums: sums.map(|sums| self.fold(0.0, sums, |sum, other| *sum += other)),
            wide_sums: wide_sums.map(|sums| self.wide_sums(sums)).transpose()?,
            mins: extreme(stats.mins.as_ref().filter(|_| min), false)?,
            maxs: extreme(stats.maxs.as_ref().filter(|_| max), true)?,
            spreads: spreads.map(|all| self.fold(Moments::default(), all, Moments::merge)),
            weighted: None,
            pairs: pairs
                .map(|all| self.fold(Pairs::NONE, all, |pairs, more| *pairs = pairs.and(more))),
            cells: None,
        })
    }

    /// Adds up integers, which wrap.
    fn wide_sums(self, sums: &ArrayRef) -> Result<ArrayRef> {
        fn folded<T: ArrowPrimitiveType>(coarser: Coarser<'_>, sums: &PrimitiveArray<T>) -> ArrayRef
        where
            T::Native: ArrowNativeTypeOp,
        {
            let add = |sum: &mut T::Native, other: T::Native| *sum = sum.add_wrapping(other);
            let coarse = coarser.fold(T::Native::ZERO, sums.values(), add);
            Arc::new(PrimitiveArray::<T>::new(coarse.into(), None))
        }
        let signed = sums.as_primitive_opt::<Int64Type>().map(|sums| folded(self, sums));
        let any = signed.or_else(|| Some(folded(self, sums.as_primitive_opt::<UInt64Type>()?)));
        any.ok_or_else(|| Error::internal("sums that are not 64-bit integers"))
    }

    /// Returns the extremes of the coarser groups; NULL for those without a value.
    fn extremes(self, array: &ArrayRef, counts: &[u64], is_max: bool) -> Result<ArrayRef> {
        let mut best: Vec<Option<u64>> = vec![None; self.groups];
        let found = self.pairs().filter(|(group, _)| counts[*group] > 0);
        downcast_primitive_array!(
            array => for (group, place) in found {
                let is_better = best[place].is_none_or(|best| {
                    let (new, old) = (array.value(group), array.value(best as usize));
                    if is_max { new.is_gt(old) } else { new.is_lt(old) }
                });
                if is_better {
                    best[place] = Some(group as u64);
                }
            },
            _ => return Err(Error::internal("extremes that are not numbers"))
        );
        take(array, &UInt64Array::from(best), None)
            .map_err(|cause| Error::internal("Arrow failed to take extremes").caused_by(cause))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Int64Array, StringArray};

    use super::*;

    fn all() -> RequestedStats {
        RequestedStats {
            sum: true,
            wide_sum: true,
            min: true,
            max: true,
            spread: true,
            pairs: true,
        }
    }

    /// Groups 0, 2 and 3 become one, and group 4 another; group 1 does not count, and nothing becomes the last one.
    #[test]
    fn groups_are_added_up() {
        let coarser = Coarser {
            places: &[0, 0, 0, 0, 1],
            groups: 3,
            counted: &[true, false, true, true, true],
        };
        let one = |mean: f64| Moments { count: 1, mean, m2: 0.0 };
        let stats = GroupStats {
            counts: vec![1, 1, 1, 0, 1],
            sums: Some(vec![1.0, 100.0, 3.0, 0.0, 5.0]),
            wide_sums: Some(Arc::new(Int64Array::from(vec![i64::MAX, 100, 2, 0, 5]))),
            // The extremes of groups without a value mean nothing.
            mins: Some(Arc::new(Float32Array::from(vec![1.0, -9.0, 3.0, -7.0, 5.0]))),
            maxs: Some(Arc::new(Float32Array::from(vec![1.0, 90.0, 3.0, 70.0, 5.0]))),
            spreads: Some(vec![one(1.0), one(100.0), one(3.0), Moments::default(), one(5.0)]),
            pairs: Some(
                (0..5).map(|at| Pairs::from_pair(f64::from(at), f64::from(2 * at))).collect(),
            ),
            ..GroupStats::default()
        };
        let found = coarser.stats(&stats, all()).unwrap();
        assert_eq!(found.counts, [2, 1, 0]);
        assert_eq!(found.sums.unwrap(), [4.0, 5.0, 0.0]);
        let wide = Int64Array::from(vec![i64::MIN + 1, 5, 0]);
        assert_eq!(found.wide_sums.unwrap().as_ref(), &wide as &dyn Array);
        let (mins, maxs) = ([Some(1.0_f32), Some(5.0), None], [Some(3.0_f32), Some(5.0), None]);
        assert_eq!(found.mins.unwrap().as_ref(), &Float32Array::from_iter(mins) as &dyn Array);
        assert_eq!(found.maxs.unwrap().as_ref(), &Float32Array::from_iter(maxs) as &dyn Array);
        let spread = Moments { count: 2, mean: 2.0, m2: 2.0 };
        assert_eq!(found.spreads.unwrap(), [spread, one(5.0), Moments::default()]);
        let pairs = found.pairs.unwrap();
        assert!(pairs[0].count == 3 && (pairs[0].mean_x - 5.0 / 3.0).abs() < 1e-12);
        assert!(pairs[0].xx > 4.0 && (pairs[0].xy - 2.0 * pairs[0].xx).abs() < 1e-12);
        assert_eq!(pairs[1..], [Pairs::from_pair(4.0, 8.0), Pairs::NONE]);
        let none = coarser.stats(&stats, RequestedStats::default()).unwrap();
        assert!(none.sums.is_none() && none.mins.is_none() && none.spreads.is_none());
    }

    #[test]
    fn texts_have_no_sums_and_no_extremes() {
        let coarser = Coarser { places: &[0], groups: 1, counted: &[true] };
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let counts = vec![1];
        let mins = Some(Arc::clone(&text));
        for stats in [
            GroupStats { counts: counts.clone(), mins, ..GroupStats::default() },
            GroupStats { counts, wide_sums: Some(text), ..GroupStats::default() },
        ] {
            assert!(coarser.stats(&stats, all()).is_err());
        }
    }
}
