//! The cells of extremes: per group, where the least or greatest number is, and where the first NULL.
//!
//! ```text
//!   run       12 15 11 15      the greatest of the run, 15; searched for only if it beats the state: cell 1
//!   columns   12 15 11 15      each cell is compared with the state of its column, and the better number is
//!             13 15 10 16      kept with its cell, without a branch
//! ```
//!
//! Of equal numbers, the cell with the least [`CellNumber`] stays: the first one of the chunk that is first in the array. So the
//! result depends neither on the order in which chunks come nor on that of the loops.

use super::batch::{Batch, GroupPlaces};
use super::cell::Cell;
use super::cell_number::CellNumber;
use super::group_stats::RequestedCells;
use super::keep::{Keep, KeepAll, Numbers, Test};
use super::lanes::{InCacheLines, LANES, opaque_lanes};
use super::loops;

/// The state before any cell.
const NONE: u64 = CellNumber::NONE.0;

/// The states of groups, indexed by place. Cells that are not requested have no states.
#[derive(Debug)]
pub(super) struct CellStates<T> {
    pub(super) least: ExtremeCells<T>,
    pub(super) greatest: ExtremeCells<T>,
    /// The first NULLs.
    pub(super) nulls: Vec<u64>,
}

/// The least or the greatest number of each group, and its cell.
#[derive(Debug)]
pub(super) struct ExtremeCells<T> {
    is_greatest: bool,
    pub(super) numbers: Vec<T>,
    pub(super) cells: Vec<u64>,
}

impl<T: Cell> CellStates<T> {
    pub(super) fn new(requested: RequestedCells, groups: usize) -> Self {
        let places = |is_requested: bool| if is_requested { groups } else { 0 };
        let (least, greatest) = (places(requested.least), places(requested.greatest));
        let extremes = |is_greatest, groups, worst| ExtremeCells {
            is_greatest,
            numbers: vec![worst; groups],
            cells: vec![NONE; groups],
        };
        Self {
            least: extremes(false, least, T::GREATEST),
            greatest: extremes(true, greatest, T::LEAST),
            nulls: vec![NONE; places(requested.null)],
        }
    }

    /// Adds the cells of `batch` that `keep` keeps, and as NULLs those that it does not keep. The first cell of the tile has
    /// the number `first`.
    pub(super) fn add(&mut self, batch: Batch<'_, T>, keep: Keep<T>, first: u64) {
        if self.least.cells.len() + self.greatest.cells.len() + self.nulls.len() == 0 {
            return;
        }
        match keep {
            Keep::Nothing => {} // of a condition, which no NULL meets
            Keep::Numbers if T::IS_FLOAT => loops::cells(self, batch, first, Numbers),
            Keep::All | Keep::Numbers => loops::cells(self, batch, first, KeepAll),
            Keep::Between(between) => loops::cells(self, batch, first, between),
            Keep::Interval(interval) => loops::cells(self, batch, first, interval),
        }
    }
}

/// Adds the cells of `batch`. The first cell of the tile has the number `first`.
#[inline(always)]
pub(super) fn add_cells<T: Cell, K: Test<T>>(
    states: &mut CellStates<T>,
    batch: Batch<'_, T>,
    first: u64,
    test: K,
) {
    for extremes in [&mut states.least, &mut states.greatest] {
        if !extremes.cells.is_empty() {
            add_extremes(extremes, batch, first, test);
        }
    }
    if K::MAY_FAIL && !states.nulls.is_empty() {
        add_nulls(&mut states.nulls, batch, first, test);
    }
}

/// Whether `a` beats `b`, without a branch.
#[inline(always)]
fn beats<T: Cell>(a: T, b: T, is_greatest: bool) -> bool {
    ((a > b) & is_greatest) | ((a < b) & !is_greatest)
}

/// Whether a cell comes before another.
#[inline(always)]
fn is_before(cell: u64, other: u64) -> bool {
    (cell as i64) < (other as i64)
}

#[inline(always)]
fn add_extremes<T: Cell, K: Test<T>>(
    states: &mut ExtremeCells<T>,
    batch: Batch<'_, T>,
    first: u64,
    test: K,
) {
    let is_greatest = states.is_greatest;
    let width = opaque_lanes();
    for segment in batch.inner {
        for (start, base) in batch.rows.each() {
            let row = batch.row(&segment.cells(), start);
            let first = first + (start + segment.start) as u64;
            match &segment.places {
                GroupPlaces::Fixed(place) => {
                    let place = base + place;
                    let (number, cell) = (&mut states.numbers[place], &mut states.cells[place]);
                    let best = best_of_run::<T, K>(row, *number, is_greatest, test, width);
                    // Only if the run is better, or an equal cell of it would come before.
                    if (beats(best, *number, is_greatest) || is_before(first, *cell))
                        && let Some(at) = row
                            .iter()
                            .map(|cell| T::from_bytes(*cell))
                            .position(|cell| test.keeps(cell) && cell == best)
                    {
                        let found = first + at as u64;
                        if beats(best, *number, is_greatest) || is_before(found, *cell) {
                            (*number, *cell) = (best, found);
                        }
                    }
                }
                GroupPlaces::Steps { first: place, step: 1 } => {
                    let (place, len) = (base + place, row.len());
                    let numbers = &mut states.numbers[place..][..len];
                    let cells = &mut states.cells[place..][..len];
                    for at in 0..len {
                        let (new, number, cell) = (T::from_bytes(row[at]), numbers[at], cells[at]);
                        let found = first + at as u64;
                        let is_tie = (new == number) & is_before(found, cell);
                        let takes = test.keeps(new) & (beats(new, number, is_greatest) | is_tie);
                        numbers[at] = if takes { new } else { number };
                        cells[at] = if takes { found } else { cell };
                    }
                }
                places => {
                    for (at, new) in row.iter().enumerate() {
                        let (new, place) = (T::from_bytes(*new), base + places.at(at));
                        let (number, cell) = (&mut states.numbers[place], &mut states.cells[place]);
                        let found = first + at as u64;
                        let is_tie = (new == *number) & is_before(found, *cell);
                        if test.keeps(new) & (beats(new, *number, is_greatest) | is_tie) {
                            (*number, *cell) = (new, found);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the best of `number` and the cells of a run that pass the test.
#[inline(always)]
fn best_of_run<T: Cell, K: Test<T>>(
    row: &[T::Bytes],
    number: T,
    is_greatest: bool,
    test: K,
    width: usize,
) -> T {
    let better = |best: T, cell: T| {
        if test.keeps(cell) & beats(cell, best, is_greatest) { cell } else { best }
    };
    let InCacheLines(lanes) = &mut InCacheLines([number; LANES]);
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        let block = &block[..width];
        for at in 0..width {
            lanes[at] = better(lanes[at], T::from_bytes(block[at]));
        }
    }
    let best = rest.iter().fold(number, |best, cell| better(best, T::from_bytes(*cell)));
    // Lanes hold numbers that passed, or the state.
    lanes
        .iter()
        .copied()
        .fold(best, |best, lane| if beats(lane, best, is_greatest) { lane } else { best })
}

#[inline(always)]
fn add_nulls<T: Cell, K: Test<T>>(nulls: &mut [u64], batch: Batch<'_, T>, first: u64, test: K) {
    for segment in batch.inner {
        for (start, base) in batch.rows.each() {
            let row = batch.row(&segment.cells(), start);
            let first = first + (start + segment.start) as u64;
            match &segment.places {
                GroupPlaces::Fixed(place) => {
                    let null = &mut nulls[base + place];
                    if is_before(first, *null)
                        && let Some(at) = first_failing::<T, K>(row, test)
                        && is_before(first + at as u64, *null)
                    {
                        *null = first + at as u64;
                    }
                }
                GroupPlaces::Steps { first: place, step: 1 } => {
                    let (place, len) = (base + place, row.len());
                    let nulls = &mut nulls[place..][..len];
                    for at in 0..len {
                        let (found, null) = (first + at as u64, nulls[at]);
                        let takes = !test.keeps(T::from_bytes(row[at])) & is_before(found, null);
                        nulls[at] = if takes { found } else { null };
                    }
                }
                places => {
                    for (at, cell) in row.iter().enumerate() {
                        let null = &mut nulls[base + places.at(at)];
                        if !test.keeps(T::from_bytes(*cell)) & is_before(first + at as u64, *null) {
                            *null = first + at as u64;
                        }
                    }
                }
            }
        }
    }
}

/// Returns the first cell that fails the test.
#[inline(always)]
fn first_failing<T: Cell, K: Test<T>>(row: &[T::Bytes], test: K) -> Option<usize> {
    /// The cells that are tested together, without a branch.
    const BLOCK: usize = 64;
    let fails = |cell: &T::Bytes| !test.keeps(T::from_bytes(*cell));
    let block = row
        .chunks(BLOCK)
        .position(|block| block.iter().fold(false, |any, cell| any | fails(cell)))?;
    let from = block * BLOCK;
    Some(from + row[from..].iter().position(fails)?)
}
