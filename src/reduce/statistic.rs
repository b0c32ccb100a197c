//! The statistics that kernels compute: sums, extremes, moments.
//!
//! Sums and extremes have a neutral element, so `add_if` adds that for a cell that does not count,
//! without a branch: 0 for a sum, the greatest value for a minimum. Moments have none, and branch.

use super::cell::Cell;
use super::kernel::Statistic;
use super::subtract::dropped;

/// The sum of the cells as doubles.
pub(super) struct Sum;

impl<T: Cell> Statistic<T> for Sum {
    type State = f64;
    const EMPTY: f64 = 0.0;

    #[inline(always)]
    fn add(state: &mut f64, cell: T) {
        *state += cell.to_f64();
    }
    #[inline(always)]
    fn add_if(state: &mut f64, cell: T, keep: bool) {
        *state += if keep { cell.to_f64() } else { 0.0 };
    }
    #[inline(always)]
    fn merge(state: &mut f64, other: f64) {
        *state += other;
    }
}

/// The sum of integers, wrapping as DataFusion's does.
pub(super) struct WideSum;

impl<T: Cell> Statistic<T> for WideSum {
    type State = T::Wide;
    const EMPTY: T::Wide = T::ZERO;

    #[inline(always)]
    fn add(state: &mut T::Wide, cell: T) {
        *state = T::add(*state, cell.widen());
    }
    #[inline(always)]
    fn add_if(state: &mut T::Wide, cell: T, keep: bool) {
        *state = T::add(*state, if keep { cell.widen() } else { T::ZERO });
    }
    #[inline(always)]
    fn merge(state: &mut T::Wide, other: T::Wide) {
        *state = T::add(*state, other);
    }
}

/// The least cell; no cell may be NaN, because comparisons with it are false.
pub(super) struct Min;

impl<T: Cell> Statistic<T> for Min {
    type State = T;
    const EMPTY: T = T::GREATEST;

    #[inline(always)]
    fn add(state: &mut T, cell: T) {
        *state = if cell < *state { cell } else { *state };
    }
    #[inline(always)]
    fn add_if(state: &mut T, cell: T, keep: bool) {
        Self::add(state, if keep { cell } else { T::GREATEST });
    }
    #[inline(always)]
    fn merge(state: &mut T, other: T) {
        Self::add(state, other);
    }
}

/// The greatest cell; no cell may be NaN.
pub(super) struct Max;

impl<T: Cell> Statistic<T> for Max {
    type State = T;
    const EMPTY: T = T::LEAST;

    #[inline(always)]
    fn add(state: &mut T, cell: T) {
        *state = if cell > *state { cell } else { *state };
    }
    #[inline(always)]
    fn add_if(state: &mut T, cell: T, keep: bool) {
        Self::add(state, if keep { cell } else { T::LEAST });
    }
    #[inline(always)]
    fn merge(state: &mut T, other: T) {
        Self::add(state, other);
    }
}

/// The [`Moments`] of the cells, for variances. A sum of squares would be simpler, but loses its digits
/// where the mean is large and the spread is small.
pub(super) struct Spread;

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

impl<T: Cell> Statistic<T> for Spread {
    type State = Moments;
    const EMPTY: Moments = Moments { count: 0, mean: 0.0, m2: 0.0 };

    /// Adds a cell with Welford's update, which divides once per cell. The sum of squared distances grows
    /// by the distance to the old mean times that to the new one.
    #[inline(always)]
    fn add(state: &mut Moments, cell: T) {
        let value = cell.to_f64();
        state.count += 1;
        let distance = value - state.mean;
        state.mean += distance / state.count as f64;
        state.m2 += distance * (value - state.mean);
    }
    #[inline(always)]
    fn add_if(state: &mut Moments, cell: T, keep: bool) {
        if keep {
            <Self as Statistic<T>>::add(state, cell);
        }
    }
    /// Merges two states with Chan's formula: both sums of squared distances, and the part between the
    /// means. An empty state changes nothing, and its mean of 0 must not count.
    #[inline(always)]
    fn merge(state: &mut Moments, other: Moments) {
        if other.count == 0 {
            return;
        }
        if state.count == 0 {
            *state = other;
            return;
        }
        let (ours, theirs) = (state.count as f64, other.count as f64);
        let count = ours + theirs;
        let distance = other.mean - state.mean;
        state.mean = (ours * state.mean + theirs * other.mean) / count;
        state.m2 += other.m2 + distance * distance * ours * theirs / count;
        state.count += other.count;
    }
    /// Computes the mean of the run first, and then the distances from it, without a division per cell.
    #[inline(always)]
    fn add_run(state: &mut Moments, cells: &[T::Bytes]) {
        let mut sum = 0.0;
        <Sum as Statistic<T>>::add_run(&mut sum, cells);
        add_around::<T>(state, cells, cells.len() as u64, sum, |_| true);
    }
    #[inline(always)]
    fn add_run_if<K: Fn(T) -> bool>(state: &mut Moments, cells: &[T::Bytes], keep: K) {
        let count = cells.len() as u64 - u64::from(dropped(cells, &keep));
        let mut sum = 0.0;
        <Sum as Statistic<T>>::add_run_if(&mut sum, cells, &keep);
        add_around(state, cells, count, sum, keep);
    }
}

/// Adds a run of which `count` cells with this `sum` pass `keep`: squares their distances from the mean
/// of the run, and merges the result. `count` and `sum` took a pass over the run before; it is still in
/// cache.
#[inline(always)]
fn add_around<T: Cell>(
    state: &mut Moments,
    cells: &[T::Bytes],
    count: u64,
    sum: f64,
    keep: impl Fn(T) -> bool,
) {
    if count == 0 {
        return;
    }
    let mean = sum / count as f64;
    if !mean.is_finite() {
        // The sum overflowed, or a cell is infinite: add the cells one by one, as DataFusion does.
        let kept = cells.iter().map(|cell| T::load(*cell)).filter(|cell| keep(*cell));
        kept.for_each(|cell| <Spread as Statistic<T>>::add(state, cell));
        return;
    }
    // Independent sums, so that additions need not wait for each other.
    let mut lanes = [0.0; 8];
    let (blocks, rest) = cells.as_chunks::<8>();
    let distance = |cell: &T::Bytes| {
        let cell = T::load(*cell);
        if keep(cell) { cell.to_f64() - mean } else { 0.0 }
    };
    for block in blocks {
        for (lane, cell) in lanes.iter_mut().zip(block) {
            let distance = distance(cell);
            *lane += distance * distance;
        }
    }
    let rest: f64 = rest.iter().map(|cell| distance(cell).powi(2)).sum();
    let m2 = lanes.iter().sum::<f64>() + rest;
    <Spread as Statistic<T>>::merge(state, Moments { count, mean, m2 });
}
