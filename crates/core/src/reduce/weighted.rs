//! Sums of values times weights, where each cell has a weight of its own.
//!
//! Weights are functions of single dimensions, and the weight of a cell is their product. Weights over
//! outer axes are one number per row, and those over the innermost axis are a vector:
//!
//! ```text
//!   array over time, lat, lon          row of one time and lat    w(time) × w(lat)
//!   weights over all three             cells along lon            × w(lon) per cell
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::batch::{Batch, GroupPlaces};
use super::cell::{Cell, Lane};
use super::keep::Test;
use super::lanes::{InCacheLines, LANES, fold_run, halved, opaque_lanes};
use super::statistic::Sum;
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask};

/// The weights of the cells, or the numbers of their labels: per axis of the array, a number for each index of the axis, or `None` if the
/// weights do not depend on it. Weights are finite; those of indices that are not selected do not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct CellWeights {
    /// The weights per axis.
    pub axes: Vec<Option<Arc<[f64]>>>,
}

impl CellWeights {
    /// Makes the weights of indices from those of the selected indices of each axis.
    pub fn from_selected(selection: &[AxisSelection], selected: &[Option<Arc<[f64]>>]) -> Self {
        let spread = |(selection, selected): (&AxisSelection, &Option<Arc<[f64]>>)| {
            let selected = selected.as_ref()?;
            let mut weights = vec![0.0; selection.len() as usize];
            let mut from = 0;
            for range in selection.ranges() {
                let at = range.start as usize..range.end as usize;
                let len = at.len();
                weights[at].copy_from_slice(&selected[from..from + len]);
                from += len;
            }
            Some(weights.into())
        };
        Self { axes: selection.iter().zip(selected).map(spread).collect() }
    }

    /// Returns the weights of the rows of a chunk. Rows are along the last axis.
    pub(super) fn of_rows<'a>(&'a self, grid: &ChunkGrid, task: &ChunkTask) -> RowWeights<'a> {
        let mut inner = None;
        let mut outer = Vec::new();
        let mut stride = 1;
        for (axis, weights) in self.axes.iter().enumerate().rev() {
            let extent = task.selection[axis].len() as usize;
            if let Some(weights) = weights {
                let first = grid.axis_range(axis, task.coordinates[axis]).start as usize;
                let weights = &weights[first..first + extent];
                if axis + 1 == self.axes.len() {
                    inner = Some(weights);
                } else {
                    outer.push(OuterWeights { stride, weights });
                }
            }
            stride *= extent;
        }
        RowWeights { inner, outer }
    }
}

/// The weights of the rows of a chunk.
#[derive(Debug)]
pub(super) struct RowWeights<'a> {
    /// The weights along the last axis of the chunk.
    inner: Option<&'a [f64]>,
    outer: Vec<OuterWeights<'a>>,
}

/// The weights along an outer axis of a chunk.
#[derive(Debug)]
struct OuterWeights<'a> {
    /// Cells from one index of the axis to the next.
    stride: usize,
    weights: &'a [f64],
}

impl<'a> RowWeights<'a> {
    /// The weight 1 for all rows.
    pub(super) const ONE: Self = Self { inner: None, outer: Vec::new() };

    /// Makes one weight per row of `stride` cells.
    #[cfg(test)]
    pub(super) fn of_rows_of(stride: usize, rows: &'a [f64]) -> Self {
        Self { inner: None, outer: vec![OuterWeights { stride, weights: rows }] }
    }

    /// Makes weights along rows of 150 cells, and one weight per row.
    #[cfg(test)]
    pub(super) fn from_parts(inner: Option<&'a [f64]>, rows: &'a [f64]) -> Self {
        Self { inner, outer: vec![OuterWeights { stride: 150, weights: rows }] }
    }

    /// Returns the weights of some cells along the last axis; `None` if they are those of the row alone.
    #[inline(always)]
    pub(super) fn along_row(&self, cells: &Range<usize>) -> Option<&'a [f64]> {
        Some(&self.inner?[cells.start..cells.end])
    }

    /// Returns the product of the outer weights of the row that begins at cell `start`.
    pub(super) fn of_row(&self, start: usize) -> f64 {
        let weight =
            |outer: &OuterWeights<'_>| outer.weights[start / outer.stride % outer.weights.len()];
        self.outer.iter().map(weight).product()
    }
}

/// The states of groups, indexed by place: sums of weights times values, and of the weights of these values.
#[derive(Debug, Clone, Default)]
pub struct WeightedStates {
    /// The sums of weight × value.
    pub sums: Vec<f64>,
    /// The sums of the weights.
    pub weights: Vec<f64>,
}

impl WeightedStates {
    pub(super) fn new(groups: usize) -> Self {
        Self { sums: vec![0.0; groups], weights: vec![0.0; groups] }
    }
}

/// Adds the cells of `batch` that pass `test`, times their weights, to the states of their groups, and counts
/// them unless `counts` is empty. The rows of the batch are those of the last axis, if the weights depend on it.
#[inline(always)]
pub(super) fn add_weighted<T: Cell, K: Test<T>>(
    states: &mut WeightedStates,
    counts: &mut [u64],
    batch: Batch<'_, T>,
    weights: &RowWeights<'_>,
    test: K,
) {
    let width = opaque_lanes();
    for segment in batch.inner {
        let inner = weights.along_row(&segment.cells());
        for (start, base) in batch.rows.each() {
            let row = batch.row(&segment.cells(), start);
            let of_row = weights.of_row(start);
            match (&segment.places, inner) {
                (GroupPlaces::Fixed(place), Some(inner)) => {
                    let (sum, weight, kept) = weigh_run::<T, K>(row, inner, test, width);
                    states.sums[base + place] += of_row * sum;
                    states.weights[base + place] += of_row * weight;
                    if !counts.is_empty() {
                        counts[base + place] += u64::from(kept);
                    }
                }
                (GroupPlaces::Fixed(place), None) => {
                    let (sum, kept) = fold_run::<T, Sum, K>(row, test, width);
                    let kept = if K::MAY_FAIL { kept as usize } else { row.len() };
                    states.sums[base + place] += of_row * sum.to_f64();
                    states.weights[base + place] += of_row * kept as f64;
                    if !counts.is_empty() {
                        counts[base + place] += kept as u64;
                    }
                }
                (GroupPlaces::Steps { first, step: 1 }, _) => {
                    let place = base + first;
                    let sums = &mut states.sums[place..][..row.len()];
                    let totals = &mut states.weights[place..][..row.len()];
                    weigh_columns::<T, K>(sums, totals, row, inner, of_row, test);
                    if !counts.is_empty() {
                        let counts = &mut counts[place..][..row.len()];
                        for (count, cell) in counts.iter_mut().zip(row) {
                            *count =
                                count.wrapping_add(u64::from(test.keeps(T::from_bytes(*cell))));
                        }
                    }
                }
                (places, _) => {
                    for (at, cell) in row.iter().enumerate() {
                        let weight = inner.map_or(of_row, |inner| of_row * inner[at]);
                        let cell = T::from_bytes(*cell);
                        let (product, weight) = weigh::<T, K>(cell, weight, test);
                        states.sums[base + places.at(at)] += product;
                        states.weights[base + places.at(at)] += weight;
                        if !counts.is_empty() {
                            counts[base + places.at(at)] += u64::from(test.keeps(cell));
                        }
                    }
                }
            }
        }
    }
}

/// Returns weight × value and the weight of a cell; zeros if the cell fails the test.
#[inline(always)]
fn weigh<T: Cell, K: Test<T>>(cell: T, weight: f64, test: K) -> (f64, f64) {
    let keeps = test.keeps(cell);
    (weight * cell.zero_unless(keeps).to_f64(), weight.zero_unless(keeps))
}

/// Adds a row of cells to the states of their columns.
#[inline(always)]
fn weigh_columns<T: Cell, K: Test<T>>(
    sums: &mut [f64],
    totals: &mut [f64],
    row: &[T::Bytes],
    inner: Option<&[f64]>,
    of_row: f64,
    test: K,
) {
    let len = row.len();
    let (sums, totals) = (&mut sums[..len], &mut totals[..len]);
    match inner.map(|inner| &inner[..len]) {
        Some(inner) => {
            for at in 0..len {
                let (product, weight) =
                    weigh::<T, K>(T::from_bytes(row[at]), of_row * inner[at], test);
                sums[at] += product;
                totals[at] += weight;
            }
        }
        None => {
            for at in 0..len {
                let (product, weight) = weigh::<T, K>(T::from_bytes(row[at]), of_row, test);
                sums[at] += product;
                totals[at] += weight;
            }
        }
    }
}

/// Returns the sum of the cells of a run that pass the test, times their weights. Also returns the sum of the
/// weights, and the number of these cells. `width` is the number of lanes.
#[inline(always)]
fn weigh_run<T: Cell, K: Test<T>>(
    cells: &[T::Bytes],
    weights: &[f64],
    test: K,
    width: usize,
) -> (f64, f64, u32) {
    let InCacheLines([sums, totals]) = &mut InCacheLines([[0.0; LANES]; 2]);
    let InCacheLines(kept) = &mut InCacheLines([0_u32; LANES]);
    // As in `lanes`: blocks side by side, in a loop of unknown length.
    let (blocks, rest) = cells.as_chunks::<LANES>();
    let (weight_blocks, weight_rest) = weights.as_chunks::<LANES>();
    let (fours, blocks) = blocks.as_chunks::<4>();
    let (weight_fours, weight_blocks) = weight_blocks.as_chunks::<4>();
    macro_rules! add {
        ($len:expr, $(($cells:ident, $weights:ident)),+) => {{
            let len = $len;
            $(let ($cells, $weights) = (&$cells[..len], &$weights[..len]);)+
            for at in 0..len {
                let (mut sum, mut total, mut count) = (0.0, 0.0, 0_u32);
                $(
                    let cell = T::from_bytes($cells[at]);
                    let (product, weight) = weigh::<T, K>(cell, $weights[at], test);
                    sum += product;
                    total += weight;
                    count = count.wrapping_add(u32::from(test.keeps(cell)));
                )+
                sums[at] += sum;
                totals[at] += total;
                kept[at] = kept[at].wrapping_add(count);
            }
        }};
    }
    for ([a, b, c, d], [p, q, r, s]) in fours.iter().zip(weight_fours) {
        add!(width, (a, p), (b, q), (c, r), (d, s));
    }
    for (cells, weights) in blocks.iter().zip(weight_blocks) {
        add!(width, (cells, weights));
    }
    add!(rest.len(), (rest, weight_rest));
    let total = |lanes: [f64; LANES]| {
        let lanes: [f64; 8] = halved(lanes, f64::plus);
        let lanes: [f64; 4] = halved(lanes, f64::plus);
        let [a, b]: [f64; 2] = halved(lanes, f64::plus);
        a + b
    };
    (total(*sums), total(*totals), kept.iter().copied().fold(0, u32::wrapping_add))
}
