//! Some rows of a tile, and the groups of their cells.
//!
//! A [`Batch`] is small enough to stay in cache while one statistic after the other passes over it. So only
//! the first pass waits for memory. The groups along the innermost axis decide the loop:
//!
//! ```text
//!   one group per run       0 0 0 0 1 1 1 1    each run is folded in registers, then merged
//!   one group per cell      0 1 2 3 4 5 6 7    states and cells side by side, several rows at a time
//!   groups in any order     3 1 3 0 2 2 1 0    each cell looks up its group
//! ```

use std::ops::Range;

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

impl Segment {
    /// Returns the index behind the last cell.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.start + self.len
    }

    /// Returns the cells.
    #[inline(always)]
    pub(super) fn cells(&self) -> Range<usize> {
        self.start..self.end()
    }
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
    /// The cells of the tile from `base` on.
    pub(super) cells: &'a [T::Bytes],
    pub(super) base: usize,
    pub(super) rows: Rows,
    /// The selected cells of each row.
    pub(super) inner: &'a [Segment],
}

impl<'a, T: Cell> Batch<'a, T> {
    /// Whether each column is a group, and several rows share these groups.
    #[inline(always)]
    pub(super) fn is_of_columns(&self) -> bool {
        let is_column =
            |segment: &Segment| matches!(segment.places, GroupPlaces::Steps { step: 1, .. });
        self.rows.step == 0 && self.rows.count > 1 && self.inner.iter().all(is_column)
    }

    /// Returns some cells of the row that begins at `start`.
    #[inline(always)]
    pub(super) fn row(&self, cells: &Range<usize>, start: usize) -> &'a [T::Bytes] {
        &self.cells[start + cells.start - self.base..start + cells.end - self.base]
    }
}
