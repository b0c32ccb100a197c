//! Loops over the cells of a batch that vectorise: runs are folded in lanes, and columns several rows at a time.
//!
//! ```text
//!   run       c0 c1 … c15 │ c16 … c31 │ …      lane i folds c_i, c_(16 + i), …; lanes are folded at the end
//!   columns   row 0  c0 c1 c2 …
//!             row 1  c0 c1 c2 …                state i folds c_i of all rows
//! ```
//!
//! [`loops`](super::loops) compiles them for several processors.
//!
//! The compiler vectorises a loop of unknown length over rows that have names, and few others. So runs are cut into
//! blocks, and columns are added four rows at a time. Lanes of narrow integers are narrow.

use std::ops::Range;

use super::batch::{Batch, GroupPlaces, Segment};
use super::cell::Cell;
use super::columns::{Columns, WIDTH};
use super::keep::Test;
use super::statistic::Statistic;

/// The number of independent lanes per run: they break the chain of dependent additions and fill
/// vector registers.
pub(super) const LANES: usize = 16;

/// Lanes that begin with a cache line. A register of lanes that lies across two lines is stored in two steps, and loads of it
/// wait for both: then a short run takes several times as long.
#[repr(align(64))]
pub(super) struct InCacheLines<L>(pub(super) L);

/// Returns [`LANES`] as a number that the compiler does not know. Loops over a known number of lanes are unrolled,
/// and then only sometimes vectorise.
#[inline(always)]
pub(super) fn opaque_lanes() -> usize {
    std::hint::black_box(LANES)
}

/// The rows that are added side by side to the states of their columns. Each state is loaded and stored once
/// for all of them.
pub(super) const ROWS: usize = 4;

/// The bytes of a row up to which rows that follow one another are added one by one. Then memory is read in order,
/// which matters more than the states, which stay in the nearest cache.
const SHORT_ROW: usize = 2048;

/// Runs `$body` for each column `$at` below `$len` of some rows. `$lane` folds the column's cells that pass the
/// test, and `$kept` is their number.
///
/// Such a loop vectorises on every processor, other forms do not: the rows have names instead of being an
/// array, and the length is not known when the loop is compiled.
macro_rules! columns {
    ($len:expr, $test:expr, [$($row:ident),+], |$at:ident, $lane:ident, $kept:ident| $body:block) => {{
        let (len, test) = ($len, $test);
        $(let $row = &$row[..len];)+
        for $at in 0..len {
            let (mut $lane, mut $kept) = (S::NEUTRAL, 0_u32);
            $(
                let (other, is_kept) = tested::<T, S, K>(T::from_bytes($row[$at]), test);
                $lane = S::fold($lane, other);
                $kept = $kept.wrapping_add(is_kept);
            )+
            $body
        }
    }};
}

/// Adds the cells of `batch` that pass `test` to the states of their groups, and counts them if the statistic
/// does and some may fail.
#[inline(always)]
pub(super) fn fold_batch<T: Cell, S: Statistic<T>, K: Test<T>>(
    states: &mut [S::State],
    counts: &mut [u64],
    batch: Batch<'_, T>,
    test: K,
) {
    let width = opaque_lanes();
    let folded_first = batch.rows.are_folded_first(batch.inner);
    let mut columns = folded_first.then_some(Columns::<T, S>::EMPTY);
    for segments in batch.inner.chunk_by(|a, b| folded_first && a.end() == b.start) {
        let [segment, ..] = segments else { continue };
        let (mut cells, mut first) = (segment.cells(), 0);
        match &segment.places {
            _ if folded_first => cells.end = segments.last().map_or(cells.end, Segment::end),
            GroupPlaces::Fixed(place) => {
                let fours = if batch.rows.have_runs_side_by_side(cells.len()) {
                    batch.rows.count / ROWS
                } else {
                    0
                };
                for four in 0..fours {
                    let (lane, kept) =
                        fold_runs::<T, S, K>(batch, &cells, four * ROWS, test, width);
                    add::<T, S, K>(states, counts, batch.rows.place + place, lane, kept);
                }
                for (start, base) in batch.rows.each().skip(fours * ROWS) {
                    let (lane, kept) = fold_run::<T, S, K>(batch.row(&cells, start), test, width);
                    add::<T, S, K>(states, counts, base + place, lane, kept);
                }
                continue;
            }
            GroupPlaces::Steps { first: place, step: 1 } => first = *place,
            places => {
                for (start, base) in batch.rows.each() {
                    for (at, cell) in batch.row(&cells, start).iter().enumerate() {
                        let cell = T::from_bytes(*cell);
                        let (lane, kept) = tested::<T, S, K>(cell, test);
                        add::<T, S, K>(states, counts, base + places.at(at), lane, kept);
                    }
                }
                continue;
            }
        }
        let step = if folded_first { WIDTH } else { cells.len().max(1) };
        for from in cells.clone().step_by(step) {
            let cells = from..cells.end.min(from + step);
            for rows in batch.rows.by_place() {
                let batch = Batch { rows, ..batch };
                let (states, counts) = match &mut columns {
                    Some(columns) => columns.all(),
                    None => {
                        let at = rows.place + first..rows.place + first + cells.len();
                        let counted = if S::COUNTS && K::MAY_FAIL { at.clone() } else { 0..0 };
                        (&mut states[at], &mut counts[counted])
                    }
                };
                fold_columns::<T, S, K>(states, counts, batch, &cells, test);
            }
            if let Some(columns) = &mut columns {
                let counts = if S::COUNTS && K::MAY_FAIL { &mut *counts } else { &mut [] };
                columns.hand_out(states, counts, segments, cells, batch.rows.place);
            }
        }
    }
}

/// Adds a lane, of `kept` cells that pass the test, to the state of the group at `place`.
#[inline(always)]
fn add<T: Cell, S: Statistic<T>, K: Test<T>>(
    states: &mut [S::State],
    counts: &mut [u64],
    place: usize,
    lane: S::Lane,
    kept: u32,
) {
    S::merge(&mut states[place], lane);
    if S::COUNTS && K::MAY_FAIL {
        counts[place] += u64::from(kept);
    }
}

/// Adds rows that share their groups to the states of the columns. `counts` is as long as `states`, or empty if
/// the pass does not count.
#[inline(always)]
fn fold_columns<T: Cell, S: Statistic<T>, K: Test<T>>(
    states: &mut [S::State],
    counts: &mut [u64],
    batch: Batch<'_, T>,
    cells: &Range<usize>,
    test: K,
) {
    let len = cells.len();
    let states = &mut states[..len];
    let row = |number| batch.row(cells, batch.rows.start + number * batch.rows.stride);
    let in_order = batch.rows.stride == len && len * size_of::<T>() <= SHORT_ROW;
    let fours = if in_order { 0 } else { batch.rows.count / ROWS };
    for first in (0..fours).map(|four| four * ROWS) {
        let [a, b, c, d] = std::array::from_fn(|at| row(first + at));
        if S::COUNTS && K::MAY_FAIL {
            let counts = &mut counts[..len];
            columns!(len, test, [a, b, c, d], |at, lane, kept| {
                S::merge(&mut states[at], lane);
                counts[at] = counts[at].wrapping_add(u64::from(kept));
            });
        } else {
            columns!(len, test, [a, b, c, d], |at, lane, _kept| {
                S::merge(&mut states[at], lane);
            });
        }
    }
    for a in (fours * ROWS..batch.rows.count).map(row) {
        if S::COUNTS && K::MAY_FAIL {
            let counts = &mut counts[..len];
            columns!(len, test, [a], |at, lane, kept| {
                S::merge(&mut states[at], lane);
                counts[at] = counts[at].wrapping_add(u64::from(kept));
            });
        } else {
            columns!(len, test, [a], |at, lane, _kept| {
                S::merge(&mut states[at], lane);
            });
        }
    }
}

/// Returns the lane of a cell and 1, or the neutral lane and 0 if the cell fails the test.
#[inline(always)]
fn tested<T: Cell, S: Statistic<T>, K: Test<T>>(cell: T, test: K) -> (S::Lane, u32) {
    let keeps = test.keeps(cell);
    (S::lane_if(cell, keeps), u32::from(keeps))
}

/// Folds the cells of a run, of at most a batch, and counts those that pass the test, if some may fail. Sums of floats round
/// differently from a sum in order, but always in the same way for the same run. `width` is the number of
/// lanes ([`opaque_lanes`]).
#[inline(always)]
pub(super) fn fold_run<T: Cell, S: Statistic<T>, K: Test<T>>(
    cells: &[T::Bytes],
    test: K,
    width: usize,
) -> (S::Lane, u32) {
    let InCacheLines(lanes) = &mut InCacheLines([S::NEUTRAL; LANES]);
    let InCacheLines(kept) = &mut InCacheLines([0_u32; LANES]);
    // A run is cut into rows of as many cells as there are lanes.
    let (blocks, rest) = cells.as_chunks::<LANES>();
    let (fours, blocks) = blocks.as_chunks::<4>();
    for [a, b, c, d] in fours {
        columns!(width, test, [a, b, c, d], |at, lane, count| {
            lanes[at] = S::fold(lanes[at], lane);
            if K::MAY_FAIL {
                kept[at] = kept[at].wrapping_add(count);
            }
        });
    }
    for block in blocks {
        columns!(width, test, [block], |at, lane, count| {
            lanes[at] = S::fold(lanes[at], lane);
            if K::MAY_FAIL {
                kept[at] = kept[at].wrapping_add(count);
            }
        });
    }
    columns!(rest.len(), test, [rest], |at, lane, count| {
        lanes[at] = S::fold(lanes[at], lane);
        if K::MAY_FAIL {
            kept[at] = kept[at].wrapping_add(count);
        }
    });
    folded::<T, S>(*lanes, *kept)
}

/// Folds the same run of [`ROWS`] rows from row number `first` on. Lanes are folded once for all of them.
#[inline(always)]
fn fold_runs<T: Cell, S: Statistic<T>, K: Test<T>>(
    batch: Batch<'_, T>,
    cells: &Range<usize>,
    first: usize,
    test: K,
    width: usize,
) -> (S::Lane, u32) {
    let InCacheLines(lanes) = &mut InCacheLines([S::NEUTRAL; LANES]);
    let InCacheLines(kept) = &mut InCacheLines([0_u32; LANES]);
    let row = |at| batch.row(cells, batch.rows.start + (first + at) * batch.rows.stride);
    // The compiler knows how many cells a block has, and vectorises for so many.
    let (a, a_rest) = row(0).as_chunks::<LANES>();
    let (b, b_rest) = row(1).as_chunks::<LANES>();
    let (c, c_rest) = row(2).as_chunks::<LANES>();
    let (d, d_rest) = row(3).as_chunks::<LANES>();
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        columns!(width, test, [a, b, c, d], |at, lane, count| {
            lanes[at] = S::fold(lanes[at], lane);
            if K::MAY_FAIL {
                kept[at] = kept[at].wrapping_add(count);
            }
        });
    }
    columns!(a_rest.len(), test, [a_rest, b_rest, c_rest, d_rest], |at, lane, count| {
        lanes[at] = S::fold(lanes[at], lane);
        if K::MAY_FAIL {
            kept[at] = kept[at].wrapping_add(count);
        }
    });
    folded::<T, S>(*lanes, *kept)
}

/// Folds the lanes into one, and adds up their counts.
#[inline(always)]
fn folded<T: Cell, S: Statistic<T>>(lanes: [S::Lane; LANES], kept: [u32; LANES]) -> (S::Lane, u32) {
    let lanes: [S::Lane; 8] = halved(lanes, S::fold);
    let lanes: [S::Lane; 4] = halved(lanes, S::fold);
    let [a, b]: [S::Lane; 2] = halved(lanes, S::fold);
    (S::fold(a, b), kept.into_iter().fold(0, u32::wrapping_add))
}

/// Folds the second half of the lanes into the first: `M` is half of `N`. As long as all sizes are known, this
/// compiles to a few additions of whole registers.
#[inline(always)]
pub(super) fn halved<L: Copy, const N: usize, const M: usize>(
    lanes: [L; N],
    fold: impl Fn(L, L) -> L,
) -> [L; M] {
    std::array::from_fn(|at| fold(lanes[at], lanes[at + M]))
}
