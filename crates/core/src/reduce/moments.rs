//! Means and spreads, for variances. A sum of squares would be simpler, but loses its digits where the mean
//! is large and the spread is small.

use super::batch::{Batch, GroupPlaces};
use super::cell::{Cell, Lane};
use super::keep::Test;
use super::lanes::{InCacheLines, LANES, fold_run, opaque_lanes};
use super::statistic::Sum;

/// The count, the mean and the spread of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// The number of values.
    pub count: u64,
    /// The mean of the values.
    pub mean: f64,
    /// The sum of the squared distances of the values from the mean.
    pub m2: f64,
}

impl Moments {
    /// Returns the moments of some values, in two passes.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let m2 = values.iter().map(|it| (it - mean) * (it - mean)).sum();
        Self { count: values.len() as u64, mean, m2 }
    }

    /// Adds a value with Welford's update, which divides once per value. The sum of squared distances grows
    /// by the distance to the old mean times that to the new one.
    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.m2 += distance * (value - self.mean);
    }

    /// Merges two states with Chan's formula: both sums of squared distances, and the part between the
    /// means. An empty state changes nothing, and its mean of 0 must not count.
    #[inline(always)]
    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let count = ours + theirs;
        let distance = other.mean - self.mean;
        // Equal means stay as they are, so equal values have a spread of exactly 0.
        if distance != 0.0 {
            self.mean = (ours * self.mean + theirs * other.mean) / count;
        }
        self.m2 += other.m2 + distance * distance * ours * theirs / count;
        self.count += other.count;
    }

    /// Returns the moments of `value * scale + offset`.
    pub(super) fn rescaled(self, scale: f64, offset: f64) -> Self {
        Self {
            mean: if self.count == 0 { 0.0 } else { self.mean * scale + offset },
            m2: self.m2 * scale * scale,
            ..self
        }
    }
}

/// Adds the cells of `batch` that pass `test` to the moments of their groups. A run of one group takes two
/// passes, and divides once. Rows that share a group per column are better added as [pairs](super::pairs).
#[inline(always)]
pub(super) fn add_moments<T: Cell, K: Test<T>>(
    moments: &mut [Moments],
    batch: Batch<'_, T>,
    test: K,
) {
    let width = opaque_lanes();
    for segment in batch.inner {
        for (start, base) in batch.rows.each() {
            let row = batch.row(&segment.cells(), start);
            if let GroupPlaces::Fixed(place) = segment.places {
                add_run(&mut moments[base + place], row, test, width);
                continue;
            }
            for (at, cell) in row.iter().enumerate() {
                let cell = T::from_bytes(*cell);
                if test.keeps(cell) {
                    moments[base + segment.places.at(at)].add(cell.to_f64());
                }
            }
        }
    }
}

/// Adds a run: squares the distances from the mean of the run, and merges the result.
#[inline(always)]
fn add_run<T: Cell, K: Test<T>>(moments: &mut Moments, cells: &[T::Bytes], test: K, width: usize) {
    let (sum, kept) = fold_run::<T, Sum, K>(cells, test, width);
    let count = if K::MAY_FAIL { u64::from(kept) } else { cells.len() as u64 };
    if count == 0 {
        return;
    }
    let mean = sum.to_f64() / count as f64;
    if !mean.is_finite() {
        // The sum overflowed, or a cell is infinite: add the cells one by one, as DataFusion does.
        let kept = cells.iter().map(|cell| T::from_bytes(*cell)).filter(|cell| test.keeps(*cell));
        kept.for_each(|cell| moments.add(cell.to_f64()));
        return;
    }
    // Independent sums, so that additions need not wait for each other.
    let InCacheLines(lanes) = &mut InCacheLines([0.0; LANES]);
    for cells in cells.chunks(width) {
        let lanes = &mut lanes[..cells.len()];
        for at in 0..cells.len() {
            let cell = T::from_bytes(cells[at]);
            let keeps = test.keeps(cell);
            let distance = (cell.to_f64() - mean).zero_unless(keeps);
            lanes[at] += distance * distance;
        }
    }
    moments.merge(Moments { count, mean, m2: lanes.iter().sum::<f64>() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    /// The sum of squares of such values has no digit of their spread.
    #[test]
    fn a_large_mean_keeps_the_spread() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        let exact = Moments { count: 4, mean: 1e9 + 10.0, m2: 90.0 };
        assert_eq!(moments(&values), exact);
        for cut in 0..=4 {
            let mut merged = moments(&values[..cut]);
            merged.merge(moments(&values[cut..]));
            let Moments { count, mean, m2 } = merged;
            assert_eq!((count, mean), (4, 1e9 + 10.0));
            assert!((m2 - 90.0).abs() < 1e-6, "{m2}");
        }
    }

    #[test]
    fn equal_values_have_no_spread() {
        let mut third = moments(&[0.1; 3]);
        third.merge(moments(&[0.1; 7]));
        assert_eq!((third.count, third.m2), (10, 0.0));
    }

    #[test]
    fn rescaled_moments_are_those_of_rescaled_values() {
        let found = moments(&[1.0, 2.0, 6.0]).rescaled(-0.5, 10.0);
        assert_eq!(found, moments(&[9.5, 9.0, 7.0]));
        assert_eq!(Moments::default().rescaled(2.0, 5.0), Moments::default());
    }
}
