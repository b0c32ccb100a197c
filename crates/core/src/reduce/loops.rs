//! The inner loops, which add the cells of a batch to the states of their groups.
//!
//! Each pass is compiled for several processors: [`pass`], [`moments`], [`weighted`], [`pairs`], [`cells`], [`tested`], [`masked`].
//! The fastest one that the machine supports is chosen once per batch. All of them execute the same additions in the same order, so
//! results do not depend on the machine.
//!
//! A pass that computes sums also counts the cells that pass the test, so values with NULLs are read once.
//!
//! Sums of floats need no test for NaN. A NaN makes the sum of its run NaN, and that run is then summed again with a
//! test.

use std::ops::Range;

use multiversion::multiversion;

use super::batch::{Batch, Rows};
use super::cell::Cell;
use super::cell_states::{CellStates, add_cells};
use super::keep::Test;
use super::lanes::fold_batch;
use super::masks::{mask_rows, test_rows};
use super::moments::{Moments, add_moments};
use super::pairs::{PairStates, add_pairs};
use super::statistic::Statistic;
use super::weighted::{RowWeights, WeightedStates, add_weighted};

/// Adds the cells of `batch` that pass `test` to the states of their groups, and counts them if the
/// statistic does and some may fail.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn pass<T: Cell, S: Statistic<T>, K: Test<T>>(
    states: &mut [S::State],
    counts: &mut [u64],
    batch: Batch<'_, T>,
    test: K,
) {
    fold_batch::<T, S, K>(states, counts, batch, test);
}

/// Adds the cells of `batch` that pass `test` to the moments of their groups.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn moments<T: Cell, K: Test<T>>(states: &mut [Moments], batch: Batch<'_, T>, test: K) {
    add_moments::<T, K>(states, batch, test);
}

/// Adds the cells of `batch` that pass `test`, times their weights, to the states of their groups, and counts
/// them unless `counts` is empty.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn weighted<T: Cell, K: Test<T>>(
    states: &mut WeightedStates,
    counts: &mut [u64],
    batch: Batch<'_, T>,
    weights: &RowWeights<'_>,
    test: K,
) {
    add_weighted::<T, K>(states, counts, batch, weights, test);
}

/// Adds the cells of `batch` that pass `test`, with the numbers of their labels, to the pairs of their groups.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn pairs<T: Cell, K: Test<T>>(
    states: &mut PairStates,
    batch: Batch<'_, T>,
    numbers: &RowWeights<'_>,
    test: K,
) {
    add_pairs::<T, K>(states, batch, numbers, test);
}

/// Adds the cells of `batch` that pass `test` to the cells of extremes, and the others to those of NULLs.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn cells<T: Cell, K: Test<T>>(
    states: &mut CellStates<T>,
    batch: Batch<'_, T>,
    first: u64,
    test: K,
) {
    add_cells::<T, K>(states, batch, first, test);
}

/// Clears the bytes of the cells that fail `test`.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn tested<T: Cell, K: Test<T>>(
    cells: &[T::Bytes],
    rows: Rows,
    columns: &Range<usize>,
    test: K,
    mask: &mut [u8],
) {
    test_rows::<T, K>(cells, rows, columns, test, mask);
}

/// Copies the cells of `batch` whose bytes are 1, and `failing` for the others.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn masked<T: Cell>(
    batch: &Batch<'_, T>,
    columns: &Range<usize>,
    mask: &[u8],
    failing: T,
    masked: &mut [T::Bytes],
) {
    mask_rows::<T>(batch, columns, mask, failing, masked);
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::reduce::batch::{GroupPlaces, Segment};
    use crate::reduce::bounds::Bounds;
    use crate::reduce::group_stats::RequestedCells;
    use crate::reduce::keep::{Keep, KeepAll, Numbers};
    use crate::reduce::statistic::{Count, Max, Min, Sum, WideSum};
    use crate::reduce::value_range::ValueRange;

    /// The pass for processors with AVX2 only.
    #[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
    fn pass_avx2<T: Cell, S: Statistic<T>, K: Test<T>>(
        states: &mut [S::State],
        counts: &mut [u64],
        batch: Batch<'_, T>,
        test: K,
    ) {
        fold_batch::<T, S, K>(states, counts, batch, test);
    }

    /// The other passes for processors with AVX2 only.
    #[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
    fn moments_avx2<T: Cell, K: Test<T>>(states: &mut [Moments], batch: Batch<'_, T>, test: K) {
        add_moments::<T, K>(states, batch, test);
    }

    #[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
    fn weighted_avx2<T: Cell, K: Test<T>>(
        states: &mut WeightedStates,
        counts: &mut [u64],
        batch: Batch<'_, T>,
        weights: &RowWeights<'_>,
        test: K,
    ) {
        add_weighted::<T, K>(states, counts, batch, weights, test);
    }

    #[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
    fn pairs_avx2<T: Cell, K: Test<T>>(
        states: &mut PairStates,
        batch: Batch<'_, T>,
        numbers: &RowWeights<'_>,
        test: K,
    ) {
        add_pairs::<T, K>(states, batch, numbers, test);
    }

    #[multiversion(targets("x86_64+avx2+bmi1+bmi2"))]
    fn cells_avx2<T: Cell, K: Test<T>>(
        states: &mut CellStates<T>,
        batch: Batch<'_, T>,
        first: u64,
        test: K,
    ) {
        add_cells::<T, K>(states, batch, first, test);
    }

    /// Five rows of 150 cells: runs, columns, or places in any order; some rows share their groups.
    fn batches(rng: &mut StdRng) -> (Rows, Vec<Segment>, usize) {
        let places = match rng.random_range(0..3) {
            0 => GroupPlaces::Fixed(3),
            1 => GroupPlaces::Steps { first: 2, step: 1 },
            _ => GroupPlaces::Listed((0..73).map(|_| rng.random_range(0..80)).collect()),
        };
        let len = rng.random_range(1..=73);
        let rows = Rows {
            start: 1,
            stride: 150,
            place: 4,
            step: if rng.random_bool(0.5) { 0 } else { 90 },
            count: rng.random_range(1..=5),
        };
        (rows, vec![Segment { start: 7, len, places }], 90 * 6)
    }

    /// Runs a pass as compiled for the build's processors, for AVX2, and for the best processor.
    fn agree<T: Cell, S: Statistic<T>, K: Test<T>>(cells: &[T], rng: &mut StdRng, test: K)
    where
        S::State: Debug,
    {
        let (rows, inner, groups) = batches(rng);
        let cells: Vec<T::Bytes> = cells.iter().map(|cell| cell.to_bytes()).collect();
        let batch = Batch { cells: &cells, base: 0, rows, inner: &inner };
        let results = [fold_batch::<T, S, K>, pass_avx2::<T, S, K>, pass::<T, S, K>].map(|pass| {
            let (mut states, mut counts) = (vec![S::EMPTY; groups], vec![0; groups]);
            pass(&mut states, &mut counts, batch, test);
            // Debug text tells zeros of different sign apart, and takes NaNs as equal.
            (format!("{states:?}"), counts)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
    }

    /// Does the same with moments, with weighted sums and with cells.
    fn others_agree<T: Cell + Debug, K: Test<T>>(cells: &[T], rng: &mut StdRng, test: K) {
        let (rows, inner, groups) = batches(rng);
        let cells: Vec<T::Bytes> = cells.iter().map(|cell| cell.to_bytes()).collect();
        let batch = Batch { cells: &cells, base: 0, rows, inner: &inner };
        let all = [add_moments::<T, K>, moments_avx2::<T, K>, moments::<T, K>].map(|pass| {
            let mut states = vec![Moments::default(); groups];
            pass(&mut states, batch, test);
            format!("{states:?}")
        });
        assert!(all.iter().all(|other| *other == all[0]));
        let along: Vec<f64> = (0..150).map(|_| rng.random_range(-2.0..2.0)).collect();
        let weights =
            RowWeights::from_parts(rng.random::<bool>().then_some(&along[..]), &along[..5]);
        let passes = [add_weighted::<T, K>, weighted_avx2::<T, K>, weighted::<T, K>];
        let all = passes.map(|pass| {
            let (mut states, mut counts) = (WeightedStates::new(groups), vec![0; groups]);
            pass(&mut states, &mut counts, batch, &weights, test);
            format!("{states:?} {counts:?}")
        });
        assert!(all.iter().all(|other| *other == all[0]));
        let all = [add_pairs::<T, K>, pairs_avx2::<T, K>, pairs::<T, K>].map(|pass| {
            let mut states = PairStates::new(groups);
            pass(&mut states, batch, &weights, test);
            format!("{:?}", states.finish())
        });
        assert!(all.iter().all(|other| *other == all[0]));
        let requested = RequestedCells { least: rng.random(), greatest: true, null: rng.random() };
        let all = [add_cells::<T, K>, cells_avx2::<T, K>, super::cells::<T, K>].map(|pass| {
            let mut states = CellStates::new(requested, groups);
            pass(&mut states, batch, 5 << 32, test);
            format!("{states:?}")
        });
        assert!(all.iter().all(|other| *other == all[0]));
    }

    fn all_agree<T>(rng: &mut StdRng, make: impl Fn(&mut StdRng) -> T)
    where
        T: Cell + Bounds + Debug,
        T::Wide: Debug,
    {
        for _ in 0..60 {
            let cells: Vec<T> = (0..150 * 6).map(|_| make(rng)).collect();
            let fill = Some(make(rng));
            let fills = Keep::between(T::LEAST, T::GREATEST, fill, false);
            macro_rules! each {
                ($test:expr) => {
                    agree::<T, Sum, _>(&cells, rng, $test);
                    agree::<T, WideSum, _>(&cells, rng, $test);
                    agree::<T, Count, _>(&cells, rng, $test);
                    agree::<T, Min, _>(&cells, rng, $test);
                    agree::<T, Max, _>(&cells, rng, $test);
                    others_agree::<T, _>(&cells, rng, $test);
                };
            }
            each!(KeepAll);
            each!(Numbers);
            if let Keep::Interval(interval) = fills {
                each!(interval);
            }
            let range = ValueRange::default();
            assert!(!matches!(Keep::<T>::new(true, None, &range), Keep::Nothing));
        }
    }

    #[test]
    fn all_processors_compute_the_same_bits() {
        let mut rng = StdRng::seed_from_u64(3);
        let float = |rng: &mut StdRng| match rng.random_range(0..10) {
            0 => f64::NAN,
            1 => -0.0,
            _ => rng.random_range(-1e3..1e3),
        };
        all_agree::<f32>(&mut rng, |rng| float(rng) as f32);
        all_agree::<f64>(&mut rng, float);
        all_agree::<i8>(&mut rng, |rng| rng.random());
        all_agree::<i16>(&mut rng, |rng| rng.random());
        all_agree::<i32>(&mut rng, |rng| rng.random());
        all_agree::<i64>(&mut rng, |rng| rng.random());
        all_agree::<u8>(&mut rng, |rng| rng.random());
        all_agree::<u16>(&mut rng, |rng| rng.random());
        all_agree::<u32>(&mut rng, |rng| rng.random());
        all_agree::<u64>(&mut rng, |rng| rng.random());
    }
}
