//! The inner loops, which add the cells of a batch to the states of their groups.
//!
//! Each pass is compiled for several processors ([`pass`], [`moments`], [`weighted`]), and the fastest one that the
//! machine supports is chosen once per batch. All of them execute the same additions in the same order, so
//! results do not depend on the machine.
//!
//! A pass that computes sums also counts the cells that pass the test, so values with NULLs are read once.

use multiversion::multiversion;

use super::batch::{Batch, GroupPlaces, Rows};
use super::cell::Cell;
use super::keep::Test;
use super::moments::{Moments, add_moments};
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
pub(super) fn moments<T: Cell, K: Test<T>>(
    states: &mut [Moments],
    batch: Batch<'_, T>,
    test: K,
) {
    add_moments::<T, K>(states, batch, test);
}

/// Adds the cells of `batch` that pass `test`, times their weights, to the states of their groups.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi1+bmi2",
    "x86_64+avx2+bmi1+bmi2"
))]
pub(super) fn weighted<T: Cell, K: Test<T>>(
    states: &mut WeightedStates,
    batch: Batch<'_, T>,
    weights: &RowWeights<'_>,
    test: K,
) {
    add_weighted::<T, K>(states, batch, weights, test);
}

/// The number of independent lanes per run: they break the chain of dependent additions and fill
/// vector registers.
pub(super) const LANES: usize = 16;

/// The rows that are added side by side to the states of their columns, so that each state is loaded and
/// stored once for all of them.
const ROWS: usize = 4;

/// See [`pass`].
#[inline(always)]
pub(super) fn fold_batch<T: Cell, S: Statistic<T>, K: Test<T>>(
    states: &mut [S::State],
    counts: &mut [u64],
    batch: Batch<'_, T>,
    test: K,
) {
    for segment in batch.inner {
        match &segment.places {
            GroupPlaces::Fixed(place) => {
                for (start, base) in batch.rows.each() {
                    let (lane, kept) = fold_run::<T, S, K>(batch.row(segment, start), test);
                    S::merge(&mut states[base + place], lane);
                    if S::COUNTS && K::MAY_FAIL {
                        counts[base + place] += u64::from(kept);
                    }
                }
            }
            GroupPlaces::Steps { first, step: 1 } => {
                let row = |start| batch.row(segment, start);
                for Rows { start, stride, place, count, .. } in batch.rows.by_place() {
                    let at = place + first..place + first + segment.len;
                    let counted = if S::COUNTS && K::MAY_FAIL { at.clone() } else { 0..0 };
                    let (states, counts) = (&mut states[at], &mut counts[counted]);
                    let starts = |from: usize| start + from * stride;
                    let mut from = 0;
                    while from + ROWS <= count {
                        let rows: [_; ROWS] = std::array::from_fn(|at| row(starts(from + at)));
                        fold_columns::<T, S, K, ROWS>(states, counts, rows, test);
                        from += ROWS;
                    }
                    for from in from..count {
                        fold_columns::<T, S, K, 1>(states, counts, [row(starts(from))], test);
                    }
                }
            }
            places => {
                for (start, base) in batch.rows.each() {
                    for (at, cell) in batch.row(segment, start).iter().enumerate() {
                        let place = base + places.at(at);
                        let (lane, kept) = tested::<T, S, K>(*cell, test);
                        S::merge(&mut states[place], lane);
                        if S::COUNTS && K::MAY_FAIL {
                            counts[place] += u64::from(kept);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the lane of a cell and 1, or the neutral lane and 0 if the cell fails the test.
#[inline(always)]
fn tested<T: Cell, S: Statistic<T>, K: Test<T>>(cell: T::Bytes, test: K) -> (S::Lane, u32) {
    let cell = T::load(cell);
    let keeps = test.keeps(cell);
    (if keeps { S::lane(cell) } else { S::NEUTRAL }, u32::from(keeps))
}

/// Folds the cells of a run, of at most a batch, and counts those that pass the test. Sums of floats round
/// differently from a sum in order, but always in the same way for the same run.
#[inline(always)]
pub(super) fn fold_run<T: Cell, S: Statistic<T>, K: Test<T>>(
    cells: &[T::Bytes],
    test: K,
) -> (S::Lane, u32) {
    let (blocks, rest) = cells.as_chunks::<LANES>();
    // Short runs, such as of 73 or 90 cells, have a long rest: it fills a quarter of the lanes at a time.
    let (quarters, rest) = rest.as_chunks::<{ LANES / 4 }>();
    let mut lanes = [S::NEUTRAL; LANES];
    let mut kept = [0_u32; LANES];
    let mut fold = |at: usize, cell: T::Bytes| {
        let (lane, is_kept) = tested::<T, S, K>(cell, test);
        lanes[at] = S::fold(lanes[at], lane);
        if S::COUNTS && K::MAY_FAIL {
            kept[at] = kept[at].wrapping_add(is_kept);
        }
    };
    for block in blocks {
        for (at, cell) in block.iter().enumerate() {
            fold(at, *cell);
        }
    }
    for quarter in quarters {
        for (at, cell) in quarter.iter().enumerate() {
            fold(at, *cell);
        }
    }
    for cell in rest {
        fold(0, *cell);
    }
    for width in [8, 4, 2, 1] {
        for at in 0..width {
            lanes[at] = S::fold(lanes[at], lanes[at + width]);
            kept[at] = kept[at].wrapping_add(kept[at + width]);
        }
    }
    (lanes[0], kept[0])
}

/// Adds `R` rows to the states of their columns. `counts` is as long as `states`, or empty if the pass does
/// not count.
#[inline(always)]
fn fold_columns<T: Cell, S: Statistic<T>, K: Test<T>, const R: usize>(
    states: &mut [S::State],
    counts: &mut [u64],
    rows: [&[T::Bytes]; R],
    test: K,
) {
    let (state_blocks, state_rest) = states.as_chunks_mut::<LANES>();
    let (count_blocks, count_rest) = counts.as_chunks_mut::<LANES>();
    let row_blocks = rows.map(|row| row.as_chunks::<LANES>().0);
    for (number, states) in state_blocks.iter_mut().enumerate() {
        let mut lanes = [S::NEUTRAL; LANES];
        let mut kept = [0_u32; LANES];
        for row in row_blocks {
            for ((lane, kept), cell) in lanes.iter_mut().zip(&mut kept).zip(&row[number]) {
                let (other, is_kept) = tested::<T, S, K>(*cell, test);
                *lane = S::fold(*lane, other);
                *kept = kept.wrapping_add(is_kept);
            }
        }
        for (state, lane) in states.iter_mut().zip(lanes) {
            S::merge(state, lane);
        }
        if S::COUNTS && K::MAY_FAIL {
            for (count, kept) in count_blocks[number].iter_mut().zip(kept) {
                *count = count.wrapping_add(u64::from(kept));
            }
        }
    }
    let first = state_rest.len();
    for row in rows {
        let rest = &row[row.len() - first..];
        for (at, (state, cell)) in state_rest.iter_mut().zip(rest).enumerate() {
            let (lane, kept) = tested::<T, S, K>(*cell, test);
            S::merge(state, lane);
            if S::COUNTS && K::MAY_FAIL {
                count_rest[at] += u64::from(kept);
            }
        }
    }
}
