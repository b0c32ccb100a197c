//! The selected cells of a chunk, as batches of rows for the kernels.
//!
//! Axes that need not be told apart are folded into one first: an axis that is selected whole and in
//! no key continues the runs of the axis before it. What remains are a few outer axes, which only
//! move the base of a row, and the innermost, which decides the loop.

use std::ops::Range;

use super::kernel::{Places, Segment};
use super::places::GroupTable;
use crate::grid::{AxisSelection, ChunkGrid};
use crate::scan::ChunkTask;

/// Cells that stay in the nearest cache while several statistics pass over them.
const BATCH_CELLS: usize = 8192;

/// How the cells of a chunk are visited.
#[derive(Debug)]
pub(super) struct Walk {
    /// Outer axes: cells between neighbours, and the elements wanted.
    outer: Vec<(usize, Vec<Segment>)>,
    /// The innermost axis in pieces of a batch at most.
    strips: Vec<Vec<Segment>>,
}

impl Walk {
    pub(super) fn new(table: &GroupTable, grid: &ChunkGrid, task: &ChunkTask) -> Self {
        let mut folded: Vec<(usize, Vec<Segment>)> = Vec::new();
        for (axis, selection) in task.selection.iter().enumerate() {
            let chunk = grid.axis_range(axis, task.coordinates[axis]);
            let segments = table.segments(axis, task, &chunk);
            let extent = selection.len() as usize;
            match folded.last_mut() {
                Some((len, before)) if continues(selection, &segments) && all_fixed(before) => {
                    *len *= extent;
                    for segment in before {
                        segment.start *= extent;
                        segment.len *= extent;
                    }
                }
                _ => folded.push((extent, segments)),
            }
        }
        let mut stride = 1;
        for (extent, _) in folded.iter_mut().rev() {
            stride *= std::mem::replace(extent, stride);
        }
        let inner = folded.pop().map(|(_, segments)| segments).unwrap_or_default();
        Self { outer: folded, strips: strips(inner) }
    }

    /// Calls `visit` with batches of rows (first cell, place) and the cells wanted of each.
    pub(super) fn each(&self, mut visit: impl FnMut(&[(usize, usize)], &[Segment])) {
        if let [strip] = self.strips.as_slice() {
            let cells: usize = strip.iter().map(|segment| segment.len).sum();
            let per_batch = (BATCH_CELLS / cells.max(1)).max(1);
            let mut rows = Vec::with_capacity(per_batch);
            rows_below(&self.outer, 0, 0, &mut |start, place| {
                rows.push((start, place));
                if rows.len() == per_batch {
                    visit(&rows, strip);
                    rows.clear();
                }
            });
            if !rows.is_empty() {
                visit(&rows, strip);
            }
        } else {
            rows_below(&self.outer, 0, 0, &mut |start, place| {
                self.strips.iter().for_each(|strip| visit(&[(start, place)], strip));
            });
        }
    }
}

/// Whether an axis only makes the runs of the axis before it longer.
fn continues(selection: &AxisSelection, segments: &[Segment]) -> bool {
    selection.is_all()
        && matches!(segments, [Segment { places: Places::Fixed(0), .. }])
}

fn all_fixed(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| matches!(segment.places, Places::Fixed(_)))
}

fn rows_below(
    outer: &[(usize, Vec<Segment>)],
    start: usize,
    place: usize,
    visit: &mut impl FnMut(usize, usize),
) {
    let Some(((stride, segments), inner)) = outer.split_first() else {
        return visit(start, place);
    };
    for segment in segments {
        let first = start + segment.start * stride;
        let mut row = |at: usize, place: usize| match inner {
            [] => visit(first + at * stride, place),
            _ => rows_below(inner, first + at * stride, place, visit),
        };
        match &segment.places {
            Places::Fixed(fixed) => (0..segment.len).for_each(|at| row(at, place + fixed)),
            places => (0..segment.len).for_each(|at| row(at, place + places.at(at))),
        }
    }
}

/// Cuts segments into pieces of at most a batch, and joins small ones.
fn strips(segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    let mut strips: Vec<Vec<Segment>> = Vec::new();
    let mut room = 0;
    for segment in segments {
        let mut from = 0;
        while from < segment.len {
            if room == 0 {
                strips.push(Vec::new());
                room = BATCH_CELLS;
            }
            let to = (from + room).min(segment.len);
            if let Some(strip) = strips.last_mut() {
                strip.push(segment.piece(from..to));
            }
            room -= to - from;
            from = to;
        }
    }
    strips
}

impl Segment {
    fn piece(&self, cells: Range<usize>) -> Self {
        let places = match &self.places {
            Places::Fixed(place) => Places::Fixed(*place),
            Places::Steps { first, step } => {
                Places::Steps { first: first + cells.start * step, step: *step }
            }
            Places::Listed(places) => Places::Listed(places[cells.clone()].to_vec()),
        };
        Self { start: self.start + cells.start, len: cells.end - cells.start, places }
    }
}
