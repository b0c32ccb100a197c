//! [`ChunkColumn`]: the cells of a column of chunks that have a match, and the matrix of their weights.
//!
//! ```text
//!   cells with a match   0 … 2047 │ 2048 … 4095 │ 4096 …        a tile's values fit into the cache of a processor
//!   matrix of each tile  groups × cells, in blocks of neighbours or cell by cell
//! ```

use std::ops::Range;

use datafusion::error::Result;

use super::join_part::JoinPart;
use crate::exec::lookup::NONE;
use crate::exec::yield_budget::YieldBudget;
use crate::grid::{AxisSelection, ChunkTask};
use crate::reduce::{SparseBlocks, SparseEntry, SparseRows, SparseRowsBuilder};

/// The most cells of a tile.
const CELLS: usize = 2048;

/// The matches of the cells of a column of chunks.
pub(super) struct ChunkColumn {
    pub(super) tiles: Vec<CellTile>,
    /// The number of cells with a match.
    pub(super) cells: usize,
    /// The memory that is reserved for the tiles.
    pub(super) bytes: usize,
}

/// Some cells with a match.
#[derive(Default)]
pub(super) struct CellTile {
    /// The offset of each cell among the selected cells of a chunk.
    pub(super) selected: Vec<usize>,
    /// The offsets of the cells among all cells of a chunk, in runs.
    pub(super) stored: Vec<Range<usize>>,
    /// The matrix of each row term.
    pub(super) matrices: Vec<TileMatrix>,
}

/// The matrix of a tile.
pub(super) enum TileMatrix {
    /// Cells are gathered before it is applied to them.
    Gathered(SparseRows),
    /// It is applied to the elements of a chunk.
    InPlace(SparseBlocks),
}

impl TileMatrix {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Gathered(rows) => rows.len(),
            Self::InPlace(blocks) => blocks.len(),
        }
    }
}

/// The most bytes of so many entries of a matrix.
pub(super) fn bytes_of_matrix(entries: usize) -> usize {
    entries.saturating_mul(SparseRows::ENTRY_BYTES).max(SparseBlocks::bytes(entries))
}

/// Offsets of positions along some axes of a chunk, in row-major order.
pub(super) struct Offsets {
    pub(super) selected: Vec<usize>,
    pub(super) stored: Vec<usize>,
}

impl Offsets {
    /// Returns those of all selected positions.
    pub(super) fn of(axes: &[usize], task: &ChunkTask) -> Self {
        let selected = |axis: usize| {
            let stride = stride(task, axis, AxisSelection::count);
            (0..task.selection[axis].count() as usize).map(|at| at * stride).collect()
        };
        let stored = |axis: usize| {
            let stride = stride(task, axis, AxisSelection::len);
            let positions = task.selection[axis].ranges().iter().cloned().flatten();
            positions.map(|at| at as usize * stride).collect()
        };
        Self { selected: over_axes(axes, selected), stored: over_axes(axes, stored) }
    }
}

/// Returns the distance of neighbours along an axis of a chunk, whose axes have these lengths.
pub(super) fn stride(task: &ChunkTask, axis: usize, len: impl Fn(&AxisSelection) -> u64) -> usize {
    task.selection[axis + 1..].iter().map(|axis| len(axis) as usize).product()
}

/// Returns the number of cells between the first and the last one along some axes of a chunk, with both.
fn span(axes: &[usize], task: &ChunkTask) -> usize {
    let last = |axis: &usize| {
        let len = task.selection[*axis].len() as usize;
        len.saturating_sub(1) * stride(task, *axis, AxisSelection::len)
    };
    1 + axes.iter().map(last).sum::<usize>()
}

/// Returns the sums of the numbers that each of some axes gives to its selected positions, in row-major order.
pub(super) fn over_axes(axes: &[usize], numbers: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut all = vec![0];
    for axis in axes {
        let inner = numbers(*axis);
        all = all.iter().flat_map(|outer| inner.iter().map(move |it| outer + it)).collect();
    }
    all
}

/// Puts offsets together that follow one another.
fn runs(offsets: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = vec![];
    for offset in offsets {
        match runs.last_mut() {
            Some(run) if run.end == offset => run.end += 1,
            _ => runs.push(offset..offset + 1),
        }
    }
    runs
}

impl ChunkColumn {
    /// Finds the matches of the cells of a column of chunks. `weights` has per row term the weight of each row, and NaN for rows that
    /// do not count. `in_place` tells whether its matrix may be applied to elements.
    ///
    /// # Errors
    /// If the memory pool refuses memory.
    pub(super) async fn try_new(
        part: &JoinPart<'_>,
        joined: &[usize],
        (weights, in_place): (&[Vec<f64>], &[bool]),
        task: &ChunkTask,
        builder: &mut SparseRowsBuilder,
    ) -> Result<Self> {
        let all = joined.iter().map(|axis| task.selection[*axis].count() as usize).product();
        let reserved = part.reservation.size();
        // Two offsets, two places, the number and the first match of each cell.
        part.reservation.try_grow((5 * size_of::<usize>() + size_of::<u32>()) * all)?;
        let grid = part.reduction.lookup.scan.array().grid();
        let offsets = Offsets::of(joined, task);
        let matched = over_axes(joined, |axis| part.matches.table.parts_of(axis, grid, task));
        let keyed = over_axes(joined, |axis| part.table.parts_of(axis, grid, task));
        let firsts = part.matches.firsts(&matched);
        let (firsts, keyed) = (&firsts, &keyed);
        let cells: Vec<usize> = (0..all).filter(|cell| firsts[*cell] != NONE).collect();
        let (mut tiles, mut yields) = (vec![], YieldBudget::default());
        let span = span(joined, task);
        // A cell may be alone in its run.
        let mut bytes = (size_of::<usize>() + size_of::<Range<usize>>()) * cells.len();
        part.reservation.try_grow(bytes)?;
        for cells in cells.chunks(CELLS) {
            let pairs = cells.iter().enumerate().flat_map(|(number, cell)| {
                let mut row = firsts[*cell];
                std::iter::from_fn(move || {
                    let found = row;
                    (found != NONE).then(|| row = part.matches.next(found))?;
                    Some((number, part.place_of(found) + keyed[*cell], found as usize))
                })
            });
            let count = pairs.clone().count();
            let of_tile = weights.len() * bytes_of_matrix(count);
            // Both forms of a matrix, of which one stays, and the offsets.
            let meanwhile = bytes_of_matrix(count) + size_of_val(cells);
            part.reservation.try_grow(of_tile + meanwhile)?;
            bytes += of_tile;
            let stored: Vec<usize> = cells.iter().map(|cell| offsets.stored[*cell]).collect();
            let matrices = weights.iter().zip(in_place).map(|(weights, in_place)| {
                let entries = pairs.clone().map(|(cell, place, row)| SparseEntry {
                    place,
                    cell: cell as u32,
                    weight: weights[row],
                });
                let rows = builder.rows(entries.filter(|entry| !entry.weight.is_nan()));
                let blocks = in_place.then(|| SparseBlocks::try_new(&rows, &stored, span));
                blocks.flatten().map_or(TileMatrix::Gathered(rows), TileMatrix::InPlace)
            });
            tiles.push(CellTile {
                matrices: matrices.collect(),
                selected: cells.iter().map(|cell| offsets.selected[*cell]).collect(),
                stored: runs(stored.iter().copied()),
            });
            part.reservation.shrink(meanwhile);
            yields.spend(4 * count as u64).await;
        }
        part.reservation.try_resize(reserved + bytes)?;
        Ok(Self { tiles, cells: cells.len(), bytes })
    }
}
