//! The selected cells of a chunk, as batches of rows for the loops.
//!
//! First, axes are folded where the cells of two axes follow one another in the tile and in the table of
//! groups. A few outer axes remain, which only move the start of a row. The innermost axis decides the loop.
//!
//! ```text
//!   chunk of 48 hours × 3 stations
//!   GROUP BY day            time 24 × 0, 24 × 1; station in no key   one axis of 144: 72 of place 0, 72 of 1
//!   GROUP BY time, station  each cell has the next place             one axis of 144: places 0, 1, … 143
//!   GROUP BY station        time in no key; station 0 1 2            outer axis of 48, stride 3; rows of 3
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::axis_cells::{AxisCells, BATCH_CELLS};
use super::batch::{GroupPlaces, Rows, Segment};
use super::grouped_chunk::ChunkAxis;
use super::lanes::ROWS;

/// The order in which the cells of a chunk are visited.
#[derive(Debug)]
pub(super) struct Walk {
    /// Per outer axis, the cells from one index to the next (its stride), and its selected indices.
    outer: Vec<(usize, Vec<EvenIndices>)>,
    /// The innermost axis.
    inner: Arc<AxisCells>,
}

/// Neighbouring indices of an outer axis, whose places in the group table are evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EvenIndices {
    /// The first index along the axis of the tile.
    start: usize,
    /// The number of indices.
    len: usize,
    /// The place of the first index.
    place: usize,
    /// The distance to the place of the next index.
    step: usize,
}

impl Walk {
    /// Prepares to visit the cells of a chunk. Axes for which `apart` is true
    /// are not folded.
    pub(super) fn new(axes: Vec<ChunkAxis>, apart: impl Fn(usize) -> bool) -> Self {
        // First with the extent of each axis. An axis that is folded into the one before multiplies its
        // extent.
        let mut folded: Vec<(usize, Arc<AxisCells>)> = Vec::new();
        for (axis, ChunkAxis { extent, is_whole, cells, .. }) in axes.into_iter().enumerate() {
            let may_fold = axis > 0 && is_whole && !apart(axis - 1) && !apart(axis);
            if let Some((len, before)) = folded.last_mut().filter(|_| may_fold)
                && let Some(all) = folded_axes(before.segments(), extent, cells.segments())
            {
                *len *= extent;
                *before = Arc::new(AxisCells::new(all));
                continue;
            }
            folded.push((extent, cells));
        }
        // Replaces extents by strides, the last axis first: 2, 3, 4 becomes 12, 4, 1.
        let mut stride = 1;
        for (extent, _) in folded.iter_mut().rev() {
            stride *= std::mem::replace(extent, stride);
        }
        let inner = folded.pop().map(|(_, cells)| cells).unwrap_or_default();
        let even = |(stride, cells): (usize, Arc<AxisCells>)| {
            (stride, cells.segments().iter().flat_map(Segment::even_indices).collect())
        };
        Self { outer: folded.into_iter().map(even).collect(), inner }
    }

    /// Calls `visit` with batches of rows and the selected cells of each. A batch has at most 8192 cells:
    /// many short rows, or part of long ones.
    pub(super) fn each(&self, mut visit: impl FnMut(Rows, &[Segment])) {
        rows_below(&self.outer, 0, 0, &mut |rows: Rows| {
            if rows.count > 1 && rows.step == 0 && !self.inner.columns().is_empty() {
                // Column by column, so that the states of one strip serve all rows.
                for strip in self.inner.columns() {
                    rows.batches(strip, &mut visit);
                }
                return;
            }
            match self.inner.strips() {
                [strip] => rows.batches(strip, &mut visit),
                // Four rows at a time, piece by piece, so that memory is read in four streams.
                _ if rows.step == 0
                    && rows.count >= ROWS
                    && !self.inner.short_runs().is_empty() =>
                {
                    for first in (0..rows.count).step_by(ROWS) {
                        let rows = rows.part(first..rows.count.min(first + ROWS));
                        self.inner.short_runs().iter().for_each(|strip| visit(rows, strip));
                    }
                }
                // Rows longer than a batch come one at a time, so that the pieces of a row follow one
                // another.
                strips => {
                    for row in 0..rows.count {
                        strips.iter().for_each(|strip| visit(rows.part(row..row + 1), strip));
                    }
                }
            }
        });
    }
}

impl Rows {
    /// Returns some of the rows.
    fn part(self, rows: Range<usize>) -> Self {
        Self {
            start: self.start + rows.start * self.stride,
            place: self.place + rows.start * self.step,
            count: rows.end - rows.start,
            ..self
        }
    }

    /// Calls `visit` with as many rows at a time as fit in a batch.
    fn batches(self, strip: &[Segment], visit: &mut impl FnMut(Self, &[Segment])) {
        let cells: usize = strip.iter().map(|segment| segment.len).sum();
        let per_batch = (BATCH_CELLS / cells.max(1)).max(1);
        for first in (0..self.count).step_by(per_batch) {
            visit(self.part(first..self.count.min(first + per_batch)), strip);
        }
    }
}

/// Folds an axis into the axis before it, and returns the segments of both. `None` unless their cells follow one another in the
/// table of groups. All `extent` cells of the axis must be selected.
///
/// An axis in no key lengthens runs of one group. An axis whose cells each have the next place lengthens an
/// axis whose places are as far apart as it is long.
fn folded_axes(before: &[Segment], extent: usize, segments: &[Segment]) -> Option<Vec<Segment>> {
    let [Segment { places, .. }] = segments else { return None };
    let fold = |before: &Segment| {
        let places = match (&before.places, places) {
            (GroupPlaces::Fixed(place), GroupPlaces::Fixed(0)) => GroupPlaces::Fixed(*place),
            (
                GroupPlaces::Steps { first, step: outer },
                GroupPlaces::Steps { first: inner_first, step },
            ) if *outer == extent * step => {
                GroupPlaces::Steps { first: first + inner_first, step: *step }
            }
            _ => return None,
        };
        Some(Segment { start: before.start * extent, len: before.len * extent, places })
    };
    before.iter().map(fold).collect()
}

/// Calls `visit` with evenly spaced rows over the axes `outer`, beginning at `start` and `place`. The
/// last of these axes becomes one `Rows` per run of even indices. The others recurse.
fn rows_below(
    outer: &[(usize, Vec<EvenIndices>)],
    start: usize,
    place: usize,
    visit: &mut impl FnMut(Rows),
) {
    let Some(((stride, runs), inner)) = outer.split_first() else {
        return visit(Rows { start, stride: 0, place, step: 0, count: 1 });
    };
    let stride = *stride;
    for run in runs {
        let (start, place) = (start + run.start * stride, place + run.place);
        if inner.is_empty() {
            visit(Rows { start, stride, place, step: run.step, count: run.len });
            continue;
        }
        for at in 0..run.len {
            rows_below(inner, start + at * stride, place + at * run.step, visit);
        }
    }
}

impl Segment {
    /// Cuts the segment where its places are not evenly spaced, or descend. Hours of the day become one run
    /// per day.
    fn even_indices(&self) -> Vec<EvenIndices> {
        let Self { start, len, places } = self;
        let places = match places {
            GroupPlaces::Fixed(place) => {
                return vec![EvenIndices { start: *start, len: *len, place: *place, step: 0 }];
            }
            GroupPlaces::Steps { first, step } => {
                return vec![EvenIndices { start: *start, len: *len, place: *first, step: *step }];
            }
            GroupPlaces::Listed(places) => places,
        };
        let mut runs: Vec<EvenIndices> = Vec::new();
        let mut before = 0;
        for (at, place) in places.iter().enumerate() {
            let distance = place.checked_sub(before);
            before = *place;
            match (runs.last_mut(), distance) {
                (Some(run), Some(step)) if run.len == 1 || step == run.step => {
                    (run.len, run.step) = (run.len + 1, step);
                }
                _ => runs.push(EvenIndices { start: start + at, len: 1, place: *place, step: 0 }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Even runs list the same places as the segment.
    #[test]
    fn listed_places_are_cut_where_they_are_not_even() {
        for (listed, expected) in [
            (vec![0, 1, 2, 0, 1, 2], 2),
            (vec![4, 4, 4, 5, 5], 2),
            (vec![9, 7, 5], 3),
            (vec![0, 2, 4, 5, 7, 9, 1], 3),
            (vec![3], 1),
        ] {
            let places = GroupPlaces::Listed(listed.clone());
            let segment = Segment { start: 10, len: listed.len(), places };
            let runs = segment.even_indices();
            assert_eq!(runs.len(), expected, "{listed:?}");
            let cells = runs.iter().flat_map(|run| {
                (0..run.len).map(move |at| (run.start + at, run.place + at * run.step))
            });
            let all: Vec<_> = (10..).zip(listed).collect();
            assert_eq!(cells.collect::<Vec<_>>(), all);
        }
    }
}
