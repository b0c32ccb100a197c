//! The inner loops, which add cells to the states of groups.
//!
//! A [`Batch`] is some rows of a tile. It is small enough to stay in cache while one statistic after
//! the other passes over it, so only the first pass waits for memory. The groups along the innermost
//! axis decide the loop:
//!
//! ```text
//!   one group per run       0 0 0 0 1 1 1 1    each run is folded in registers, then merged
//!   one group per cell      0 1 2 3 4 5 6 7    states and cells side by side
//!   groups in any order     3 1 3 0 2 2 1 0    each cell looks up its group
//! ```
//!
//! Every loop exists twice. One version takes all cells. The other tests each cell and, where possible,
//! adds a neutral element instead of branching.

use super::cell::Cell;

/// The places of the groups of neighbouring cells along an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GroupPlaces {
    /// All cells have this place.
    Fixed(usize),
    /// The first cell's place is `first`, and each next place is `step` further.
    Steps { first: usize, step: usize },
    /// One place per cell, in any order.
    Listed(Vec<usize>),
}

impl GroupPlaces {
    /// Returns the place of cell number `at`.
    #[inline]
    pub(super) fn at(&self, at: usize) -> usize {
        match self {
            Self::Fixed(place) => *place,
            Self::Steps { first, step } => first + at * step,
            Self::Listed(places) => places[at],
        }
    }
}

/// Neighbouring cells of an axis and their groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// The first cell, as an index along the axis of the tile.
    pub(super) start: usize,
    /// The number of cells.
    pub(super) len: usize,
    pub(super) places: GroupPlaces,
}

/// Evenly spaced rows of a tile; a row is the cells of the innermost axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rows {
    /// The cell where the first row begins; the next rows begin `stride` cells further each.
    pub(super) start: usize,
    pub(super) stride: usize,
    /// The first row's place in the group table; the next rows' places are `step` further each.
    pub(super) place: usize,
    pub(super) step: usize,
    /// The number of rows.
    pub(super) count: usize,
}

impl Rows {
    /// Returns the first cell of each row, and its place.
    #[inline(always)]
    pub(super) fn each(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.count)
            .map(move |row| (self.start + row * self.stride, self.place + row * self.step))
    }

    /// Splits the rows into parts that each have a single place.
    #[inline(always)]
    pub(super) fn by_place(self) -> impl Iterator<Item = Self> {
        let (parts, count) = if self.step == 0 { (1, self.count) } else { (self.count, 1) };
        (0..parts).map(move |row| Self {
            start: self.start + row * self.stride,
            place: self.place + row * self.step,
            count,
            ..self
        })
    }
}

/// Some rows, with the selected cells of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch<'a, T: Cell> {
    /// All cells of the tile.
    pub(super) cells: &'a [T::Bytes],
    pub(super) rows: Rows,
    /// The selected cells of each row.
    pub(super) inner: &'a [Segment],
}

impl<'a, T: Cell> Batch<'a, T> {
    /// Returns the cells of `segment` in the row that begins at `start`.
    #[inline(always)]
    pub(super) fn row(&self, segment: &Segment, start: usize) -> &'a [T::Bytes] {
        &self.cells[start + segment.start..][..segment.len]
    }
}

/// A statistic of the cells of a group, computed cell by cell.
pub(super) trait Statistic<T: Cell> {
    /// The state of one group.
    type State: Copy + Send + Sync + 'static;
    /// The state of a group without cells.
    const EMPTY: Self::State;

    /// Adds a cell.
    fn add(state: &mut Self::State, cell: T);
    /// Adds a cell if `keep`, without a branch where that is possible.
    fn add_if(state: &mut Self::State, cell: T, keep: bool);
    /// Adds the cells of another state.
    fn merge(state: &mut Self::State, other: Self::State);

    /// Adds a run of cells.
    #[inline(always)]
    fn add_run(state: &mut Self::State, cells: &[T::Bytes]) {
        fold_lanes::<T, Self, _>(state, cells, |lane, cell| Self::add(lane, cell));
    }

    /// Adds the cells of a run that `keep` accepts.
    #[inline(always)]
    fn add_run_if<K: Fn(T) -> bool>(state: &mut Self::State, cells: &[T::Bytes], keep: K) {
        fold_lanes::<T, Self, _>(state, cells, |lane, cell| Self::add_if(lane, cell, keep(cell)));
    }
}

/// The number of independent states per run: they break the chain of dependent additions and fill
/// vector registers.
const LANES: usize = 16;

/// Folds a run into `LANES` independent states, and merges them into `state` pairwise. So sums of floats
/// round differently from a sum in order, but always in the same way for the same run.
#[inline(always)]
fn fold_lanes<T: Cell, S: Statistic<T> + ?Sized, F: Fn(&mut S::State, T)>(
    state: &mut S::State,
    cells: &[T::Bytes],
    fold: F,
) {
    let (blocks, rest) = cells.as_chunks::<LANES>();
    let mut lanes = [S::EMPTY; LANES];
    for block in blocks {
        for (lane, cell) in lanes.iter_mut().zip(block) {
            fold(lane, T::load(*cell));
        }
    }
    for (lane, cell) in lanes.iter_mut().zip(rest) {
        fold(lane, T::load(*cell));
    }
    for width in [8, 4, 2, 1] {
        for at in 0..width {
            let other = lanes[at + width];
            S::merge(&mut lanes[at], other);
        }
    }
    S::merge(state, lanes[0]);
}

/// Adds the cells of `batch` that `keep` accepts to the states of their groups; `None` accepts all
/// cells.
pub(super) fn reduce<T: Cell, S: Statistic<T>, K: Fn(T) -> bool + Copy>(
    states: &mut [S::State],
    batch: Batch<'_, T>,
    keep: Option<K>,
) {
    match keep {
        None => reduce_with::<T, S>(
            states,
            batch,
            |state, cells| S::add_run(state, cells),
            |state, cell| S::add(state, cell),
        ),
        Some(keep) => reduce_with::<T, S>(
            states,
            batch,
            |state, cells| S::add_run_if(state, cells, keep),
            |state, cell| S::add_if(state, cell, keep(cell)),
        ),
    }
}

/// The loops of [`reduce`]: `add_run` takes a run of one group, and `add` takes a single cell.
#[inline(always)]
fn reduce_with<T: Cell, S: Statistic<T>>(
    states: &mut [S::State],
    batch: Batch<'_, T>,
    add_run: impl Fn(&mut S::State, &[T::Bytes]),
    add: impl Fn(&mut S::State, T) + Copy,
) {
    for segment in batch.inner {
        for (start, base) in batch.rows.each() {
            let row = batch.row(segment, start);
            match &segment.places {
                GroupPlaces::Fixed(place) => add_run(&mut states[base + place], row),
                GroupPlaces::Steps { first, step: 1 } => {
                    let states = &mut states[base + first..][..segment.len];
                    add_row(states, row, |state, cell| add(state, T::load(cell)));
                }
                places => {
                    for (at, cell) in row.iter().enumerate() {
                        add(&mut states[base + places.at(at)], T::load(*cell));
                    }
                }
            }
        }
    }
}

/// Adds each cell of a row to the state beside it. A separate function lets the compiler assume that
/// states and cells do not overlap, and the blocks let it unroll the loop.
#[inline(never)]
pub(super) fn add_row<B: Copy, S>(states: &mut [S], row: &[B], add: impl Fn(&mut S, B)) {
    let (state_blocks, state_rest) = states.as_chunks_mut::<LANES>();
    let (blocks, rest) = row.as_chunks::<LANES>();
    for (states, cells) in state_blocks.iter_mut().zip(blocks) {
        for (state, cell) in states.iter_mut().zip(cells) {
            add(state, *cell);
        }
    }
    for (state, cell) in state_rest.iter_mut().zip(rest) {
        add(state, *cell);
    }
}

/// Whether `keep` accepts every cell of `batch`. The loop vectorises and stores nothing.
pub(super) fn all_kept<T: Cell>(batch: Batch<'_, T>, keep: impl Fn(T) -> bool + Copy) -> bool {
    let clean = |cells: &[T::Bytes]| {
        let (blocks, rest) = cells.as_chunks::<{ 4 * LANES }>();
        let dropped =
            |cells: &[T::Bytes]| cells.iter().fold(false, |any, cell| any | !keep(T::load(*cell)));
        !blocks.iter().any(|block| dropped(block)) && !dropped(rest)
    };
    let is_clean =
        |segment: &Segment| batch.rows.each().all(|(start, _)| clean(batch.row(segment, start)));
    batch.inner.iter().all(is_clean)
}
