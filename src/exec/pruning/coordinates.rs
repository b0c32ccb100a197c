//! [`Coordinates`]: filters over coordinates that repeat along some axes, evaluated once per cell of the other axes.
//!
//! ```text
//!   lat (y, x) > 60      . . . . . .      y   rows 2 and 3       mask over chunks of y and x
//!                        . . . . . .      x   columns 1 to 5     kept   no   yes
//!                        . . . x x x                                    no   yes
//!                        . x x x x .
//! ```
//!
//! DataFusion evaluates the filter again on the rows that are left, unless it is over one axis and cannot fail.

use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use super::SHORT_GAP;
use super::bound_filter::BoundFilter;
use crate::array::GridArray;
use crate::exec::coordinates::{Plane, PlaneColumns, cells_to_read, plane_axes};
use crate::grid::{AxisSelection, Selection};
use crate::plan::{ChunkMask, touched_chunks};

/// The filters over coordinates so far.
pub(super) struct Coordinates<'a> {
    array: &'a Arc<GridArray>,
    session: &'a dyn Session,
    /// The cells of several axes for which a filter is true.
    kept: Vec<(Plane, BooleanBuffer)>,
}

impl<'a> Coordinates<'a> {
    pub(super) fn new(array: &'a Arc<GridArray>, session: &'a dyn Session) -> Self {
        Self { array, session, kept: vec![] }
    }

    /// Evaluates a filter on the selected cells, and selects only indices of its axes that have one for which it is true.
    ///
    /// # Errors
    /// For an exact filter, if its coordinates cannot be read. Others are evaluated again for each row.
    pub(super) async fn add(
        &mut self,
        filter: &Expr,
        is_exact: bool,
        selection: &mut Selection,
    ) -> Result<()> {
        match self.evaluate(filter, is_exact, selection).await {
            Ok(Some((plane, keep))) => {
                select(&plane, &keep, selection);
                if plane.axes.len() > 1 {
                    self.kept.push((plane, keep));
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) if is_exact => Err(error),
            Err(error) => {
                log::debug!("cannot skip cells by {filter}: {error}");
                Ok(())
            }
        }
    }

    /// Returns the cells on which `filter` was evaluated, and for which it is true. `None` if reading its coordinates takes
    /// longer than the query.
    async fn evaluate(
        &self,
        filter: &Expr,
        is_exact: bool,
        selection: &Selection,
    ) -> Result<Option<(Plane, BooleanBuffer)>> {
        let bound = BoundFilter::try_new(filter, self.array, self.session)?;
        let Some(axes) = plane_axes(self.array, bound.columns.iter().copied()) else {
            return Ok(None);
        };
        if !is_exact && cells_to_read(self.array, &bound.columns, selection) > selection.cells() {
            return Ok(None);
        }
        let plane = Plane::new(axes, selection);
        let context = self.session.task_ctx();
        let BoundFilter { columns, schema, predicate } = bound;
        let columns = PlaneColumns::read(self.array, columns, schema, selection, &context).await?;
        let keep = columns.satisfied(&plane, &predicate)?;
        Ok(Some((plane, keep)))
    }

    /// Returns masks of the chunks that hold a cell for which the filters are true. `selection` is at most that of the filters.
    pub(super) fn masks(&self, selection: &Selection) -> Vec<ChunkMask> {
        let masks = self.kept.iter().map(|(plane, keep)| mask(self.array, plane, keep, selection));
        masks.collect()
    }
}

/// Calls `visit` with the rank on the first axes, and the ranks on the last axis, of each run of kept cells.
fn each_run(plane: &Plane, keep: &BooleanBuffer, mut visit: impl FnMut(&[u64], u64, u64)) {
    let lens = plane.lens();
    let Some((inner, outer)) = lens.split_last() else { return };
    let mut ranks = vec![0; outer.len()];
    for (start, end) in keep.set_slices() {
        let (mut start, end) = (start as u64, end as u64);
        while start < end {
            let (row, first) = (start / inner, start % inner);
            let last = (row * inner + inner).min(end);
            let mut rest = row;
            for (rank, len) in ranks.iter_mut().zip(outer).rev() {
                (*rank, rest) = (rest % len, rest / len);
            }
            visit(&ranks, first, first + last - start);
            start = last;
        }
    }
}

/// Selects the indices of the axes of a plane that have a kept cell.
fn select(plane: &Plane, keep: &BooleanBuffer, selection: &mut Selection) {
    if plane.axes.is_empty() {
        // One value for all rows. An array with coordinates has axes.
        if keep.count_set_bits() == 0 {
            let len = selection.axes()[0].len();
            selection.restrict(0, &AxisSelection::from_range(len, 0..0));
        }
        return;
    }
    let mut found: Vec<Vec<bool>> =
        plane.lens().iter().map(|len| vec![false; *len as usize]).collect();
    each_run(plane, keep, |outer, start, end| {
        for (found, rank) in found.iter_mut().zip(outer) {
            found[*rank as usize] = true;
        }
        if let Some(inner) = found.last_mut() {
            inner[start as usize..end as usize].fill(true);
        }
    });
    let last = selection.axes().len() - 1;
    for ((axis, before), found) in plane.axes.iter().zip(&plane.selection).zip(found) {
        let ranks = AxisSelection::from_mask(&found);
        let ranges =
            ranks.ranges().iter().flat_map(|run| before.slice(run.clone()).ranges().to_vec());
        let mut wanted = AxisSelection::from_ranges(before.len(), ranges);
        // Only filters over several axes are evaluated again.
        if *axis == last && plane.axes.len() > 1 {
            wanted = wanted.with_gaps_filled(SHORT_GAP);
        }
        selection.restrict(*axis, &wanted);
    }
}

/// Returns the mask of the chunks, touched by `selection`, that hold a kept cell.
fn mask(
    array: &GridArray,
    plane: &Plane,
    keep: &BooleanBuffer,
    selection: &Selection,
) -> ChunkMask {
    let grid = array.grid();
    let touched: Vec<Vec<u64>> =
        plane.axes.iter().map(|axis| touched_chunks(grid, selection, *axis)).collect();
    // For each rank on an axis, the position of its chunk among those that are touched.
    let positions: Vec<Vec<Option<usize>>> = plane
        .axes
        .iter()
        .zip(&plane.selection)
        .zip(&touched)
        .map(|((axis, before), touched)| {
            let indices = before.ranges().iter().cloned().flatten();
            indices.map(|index| touched.binary_search(&grid.chunk_of(*axis, index)).ok()).collect()
        })
        .collect();
    let mut mask = vec![false; touched.iter().map(Vec::len).product()];
    each_run(plane, keep, |outer, start, end| {
        let mut place = Some(0);
        for ((positions, rank), touched) in positions.iter().zip(outer).zip(&touched) {
            let at = positions[*rank as usize];
            place = place.zip(at).map(|(place, at)| place * touched.len() + at);
        }
        let (Some(place), Some(positions), Some(touched)) =
            (place, positions.last(), touched.last())
        else {
            return;
        };
        for at in positions[start as usize..end as usize].iter().flatten() {
            mask[place * touched.len() + at] = true;
        }
    });
    ChunkMask { axes: plane.axes.clone(), keep: mask, by_zones: false }
}
