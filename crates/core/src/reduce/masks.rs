//! [`MaskedCells`]: the cells of a batch, of which those that fail the tests of other variables are left out.

use std::ops::Range;

use super::batch::{Batch, Rows, Segment};
use super::cell::Cell;
use super::cell_test::TestedTile;
use super::keep::Test;
use super::loops;

/// The masks of a batch: scratch memory, which the next batch reuses.
#[derive(Debug)]
pub(super) struct MaskedCells<T: Cell> {
    /// The tests and the failing element of the masked cells; `None` before the first member of a batch.
    of: Option<(Vec<usize>, T)>,
    /// A byte per cell, 1 if it passes all tests, row after row.
    bytes: Vec<u8>,
    /// The cells, as far apart as in the tile, so that a row is found alike.
    cells: Vec<T::Bytes>,
}

impl<T: Cell> MaskedCells<T> {
    pub(super) fn new() -> Self {
        Self { of: None, bytes: Vec::new(), cells: Vec::new() }
    }

    /// Forgets the batch before.
    pub(super) fn begin(&mut self) {
        self.of = None;
    }

    /// Returns the bytes of scratch memory.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.bytes.capacity() + self.cells.capacity() * size_of::<T>()
    }

    /// Returns `batch` with the element `failing` in place of the cells that fail one of the tests, by their numbers in
    /// `tiles`.
    pub(super) fn masked<'a>(
        &'a mut self,
        batch: Batch<'a, T>,
        tests: &[usize],
        tiles: &[TestedTile<'_>],
        failing: T,
    ) -> Batch<'a, T> {
        let (rows, columns) = (batch.rows, selected_columns(batch.inner));
        let base = rows.start + columns.start;
        let is_new = |(of, before): &(Vec<usize>, T)| of != tests || !before.same_bits(failing);
        if self.of.as_ref().is_none_or(is_new) {
            self.test(rows, &columns, tests, tiles);
            let needed = rows.count.saturating_sub(1) * rows.stride + columns.len();
            if self.cells.len() < needed {
                self.cells.resize(needed, failing.to_bytes());
            }
            loops::masked(&batch, &columns, &self.bytes, failing, &mut self.cells);
            self.of = Some((tests.to_vec(), failing));
        }
        Batch { cells: &self.cells, base, ..batch }
    }

    fn test(
        &mut self,
        rows: Rows,
        columns: &Range<usize>,
        tests: &[usize],
        tiles: &[TestedTile<'_>],
    ) {
        self.bytes.clear();
        self.bytes.resize(rows.count * columns.len(), 1);
        for tile in tests.iter().filter_map(|test| tiles.get(*test)) {
            tile.restrict(rows, columns, &mut self.bytes);
        }
    }

    /// Calls `visit` with the place of each cell of `batch`, the latest that was masked, that has the element `cell` and passes
    /// all tests.
    pub(super) fn each_passing(&self, batch: Batch<'_, T>, cell: T, mut visit: impl FnMut(usize)) {
        let columns = selected_columns(batch.inner);
        let bytes = self.bytes.chunks_exact(columns.len().max(1));
        for ((start, base), bytes) in batch.rows.each().zip(bytes) {
            for segment in batch.inner {
                let bytes = &bytes[segment.start - columns.start..];
                let row = batch.row(&segment.cells(), start).iter().zip(bytes);
                for (at, (other, passes)) in row.enumerate() {
                    if *passes != 0 && T::from_bytes(*other).same_bits(cell) {
                        visit(base + segment.places.at(at));
                    }
                }
            }
        }
    }
}

/// Returns the cells of a row from the first to the last one that is selected.
pub(super) fn selected_columns(inner: &[Segment]) -> Range<usize> {
    let start = inner.first().map_or(0, |segment| segment.start);
    start..inner.last().map_or(start, Segment::end)
}

/// Returns the length of runs of cells that follow one another in the tile, and where each begins. Runs are rows, or all rows together
/// where no cell lies between them: also in a mask or a copy of the rows.
#[inline(always)]
pub(super) fn runs(rows: Rows, columns: &Range<usize>) -> (usize, impl Iterator<Item = usize>) {
    let (first, len) = (rows.start + columns.start, columns.len());
    let (len, count) = match rows.stride == len {
        true => (len * rows.count, 1),
        false => (len, rows.count),
    };
    (len.max(1), (0..count).map(move |row| first + row * rows.stride))
}

/// Clears the bytes of the cells that fail `test`.
#[inline(always)]
pub(super) fn test_rows<T: Cell, K: Test<T>>(
    cells: &[T::Bytes],
    rows: Rows,
    columns: &Range<usize>,
    test: K,
    mask: &mut [u8],
) {
    let (len, starts) = runs(rows, columns);
    for (mask, start) in mask.chunks_exact_mut(len).zip(starts) {
        let cells = &cells[start..][..mask.len()];
        for (passes, cell) in mask.iter_mut().zip(cells) {
            *passes &= u8::from(test.keeps(T::from_bytes(*cell)));
        }
    }
}

/// Copies the cells whose bytes are 1, and `failing` for the others, to `masked`, which begins with the first row.
#[inline(always)]
pub(super) fn mask_rows<T: Cell>(
    batch: &Batch<'_, T>,
    columns: &Range<usize>,
    mask: &[u8],
    failing: T,
    masked: &mut [T::Bytes],
) {
    let first = batch.rows.start + columns.start;
    let (len, starts) = runs(batch.rows, columns);
    for (mask, start) in mask.chunks_exact(len).zip(starts) {
        let cells = &batch.cells[start - batch.base..][..len];
        let masked = &mut masked[start - first..][..len];
        for ((masked, cell), passes) in masked.iter_mut().zip(cells).zip(mask) {
            *masked = if *passes != 0 { *cell } else { failing.to_bytes() };
        }
    }
}
