//! [`SlidingRows`]: an aggregate of the rows of a frame that moves forwards, without taking anything back.
//!
//! DataFusion tells an accumulator which rows enter the frame and how many leave it. The rows that left are forgotten, and
//! the others are aggregated by [`SlidingFold`]. Its cost per row does not depend on the length of frames.

use std::fmt;
use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::exec::window::Steps;
use crate::reduce::{Fold, SlidingFold};

/// Rows that have left frames are removed in runs of at least so many, because removing moves all others.
const FEWEST_TO_FORGET: usize = 1024;

/// A function of the rows of a frame.
pub(in crate::exec) trait SlidingFunction: Send + Sync + 'static {
    /// The operation on cells.
    type Fold: Fold<Item: Sync>;

    /// Returns a cell per row; the identity for rows that do not count.
    ///
    /// # Errors
    /// `Internal` for arguments of other types than planned.
    fn cells(&self, arguments: &[ArrayRef]) -> Result<Vec<<Self::Fold as Fold>::Item>>;

    /// Returns the value of the aggregated cells of a frame.
    ///
    /// # Errors
    /// Internal errors only.
    fn value(&self, aggregate: <Self::Fold as Fold>::Item) -> Result<ScalarValue>;
}

/// The accumulator of a frame that moves.
pub(in crate::exec) struct SlidingRows<S: SlidingFunction> {
    function: S,
    sliding: SlidingFold<S::Fold>,
    /// The rows of the frame, counted from the first row ever.
    frame: Range<usize>,
    /// The first row that is kept.
    kept_from: usize,
}

impl<S: SlidingFunction> SlidingRows<S> {
    /// Starts with an empty frame.
    pub(in crate::exec) fn new(function: S) -> Self {
        Self { function, sliding: SlidingFold::new(1, 0), frame: 0..0, kept_from: 0 }
    }
}

impl<S: SlidingFunction> fmt::Debug for SlidingRows<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingRows").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl<S: SlidingFunction> Accumulator for SlidingRows<S> {
    fn update_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        let cells = self.function.cells(arguments)?;
        self.frame.end += cells.len();
        self.sliding.push(cells);
        Ok(())
    }

    fn retract_batch(&mut self, arguments: &[ArrayRef]) -> Result<()> {
        self.frame.start += arguments.first().map_or(0, |argument| argument.len());
        if self.frame.start > self.frame.end {
            return internal_err!("more rows leave a frame than are in it");
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut aggregate = [S::Fold::IDENTITY];
        self.sliding.aggregate(&self.frame, &mut aggregate);
        let (gone, left) = (self.frame.start - self.kept_from, self.frame.len());
        if gone >= FEWEST_TO_FORGET.max(left) {
            self.sliding.forget(self.frame.start);
            self.kept_from = self.frame.start;
        }
        let [aggregate] = aggregate;
        self.function.value(aggregate)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sliding.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("the state of a moving frame is never merged")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("the state of a moving frame is never merged")
    }
}

/// A function of one argument, by the steps of windows along an axis.
pub(super) struct OfSteps<S>(pub(super) S);

/// An operation, and the number of values.
pub(super) struct Counting<F>(std::marker::PhantomData<F>);

impl<F: Fold> Fold for Counting<F> {
    type Item = (F::Item, u32);
    const IDENTITY: Self::Item = (F::IDENTITY, 0);

    #[inline(always)]
    fn combine(earlier: Self::Item, later: Self::Item) -> Self::Item {
        (F::combine(earlier.0, later.0), earlier.1 + later.1)
    }
}

impl<S> SlidingFunction for OfSteps<S>
where
    S: Steps<Fold: Fold<Item: Sync> + 'static> + Sync + 'static,
{
    type Fold = Counting<S::Fold>;

    fn cells(&self, arguments: &[ArrayRef]) -> Result<Vec<<Self::Fold as Fold>::Item>> {
        let [argument] = arguments else { return internal_err!("a function has one argument") };
        let cells = self.0.cells(argument.as_ref())?;
        let nulls = argument.logical_nulls();
        let counts = |row| u32::from(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)));
        Ok(cells.iter().enumerate().map(|(row, cell)| (*cell, counts(row))).collect())
    }

    fn value(&self, (aggregate, count): <Self::Fold as Fold>::Item) -> Result<ScalarValue> {
        let value = self.0.results(vec![aggregate], &[count])?;
        ScalarValue::try_from_array(&value, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Float64Array;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::exec::window::SumStep;

    #[test]
    fn frames_of_rows_have_the_sum_of_their_rows() {
        let mut random = StdRng::seed_from_u64(11);
        for _ in 0..20 {
            let count = random.random_range(1..2_500);
            let values: Vec<Option<f64>> = (0..count)
                .map(|_| match random.random_range(0..8) {
                    0 => None,
                    1 => Some(f64::INFINITY),
                    2 => Some(1e300),
                    _ => Some(random.random_range(-8..8).into()),
                })
                .collect();
            let mut sum = SlidingRows::new(OfSteps(SumStep { is_average: false }));
            let (mut start, mut end) = (0, 0);
            let longest = random.random_range(2..40);
            while start < count {
                let rows = |from: usize, to: usize| -> [ArrayRef; 1] {
                    [Arc::new(Float64Array::from(values[from..to].to_vec()))]
                };
                let enter = (end + random.random_range(0..longest)).min(count);
                sum.update_batch(&rows(end, enter)).unwrap();
                end = enter;
                let leave = (start + random.random_range(0..longest)).min(end);
                sum.retract_batch(&rows(start, leave)).unwrap();
                start = leave;
                let of_frame: Vec<f64> = values[start..end].iter().flatten().copied().collect();
                let expected = (!of_frame.is_empty()).then(|| of_frame.iter().sum::<f64>());
                let ScalarValue::Float64(actual) = sum.evaluate().unwrap() else { panic!() };
                let is_near = match (actual, expected) {
                    (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * b.abs(),
                    (a, b) => a == b,
                };
                assert!(is_near, "{actual:?} {expected:?}");
                if end == count && random.random_range(0..3) == 0 {
                    break;
                }
            }
            assert!(sum.size() < 16 * 24 * (FEWEST_TO_FORGET + 2 * longest * 200) + 100_000);
        }
    }
}
