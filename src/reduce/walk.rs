//! The selected cells of a chunk, as batches of rows for the kernels.
//!
//! Axes that need not be told apart are folded into one first: an axis that is selected whole and in
//! no key continues the runs of the axis before it. What remains are a few outer axes, which only
//! move the base of a row, and the innermost, which decides the loop.

use std::ops::Range;

use super::kernel::{GroupPlaces, Rows, Segment};
use crate::grid::{AxisSelection, ChunkTask};

/// Cells that stay in the nearest cache while several statistics pass over them.
const BATCH_CELLS: usize = 8192;

/// How the cells of a chunk are visited.
#[derive(Debug)]
pub(super) struct Walk {
    /// Outer axes: cells between neighbours, and the selected elements.
    outer: Vec<(usize, Vec<Segment>)>,
    /// The innermost axis in pieces of a batch at most.
    strips: Vec<Vec<Segment>>,
}

impl Walk {
    /// Visits the `segments` of each axis of the chunk of `task`.
    pub(super) fn new(task: &ChunkTask, segments: Vec<Vec<Segment>>) -> Self {
        let mut folded: Vec<(usize, Vec<Segment>)> = Vec::new();
        for (selection, segments) in task.selection.iter().zip(segments) {
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

    /// Calls `visit` with batches of rows and the selected cells of each.
    pub(super) fn each(&self, mut visit: impl FnMut(Rows, &[Segment])) {
        let cells = |strip: &Vec<Segment>| strip.iter().map(|segment| segment.len).sum::<usize>();
        // Where a row is a batch or more, one row at a time: its pieces are neighbours.
        let per_batch = match self.strips.as_slice() {
            [strip] => (BATCH_CELLS / cells(strip).max(1)).max(1),
            _ => 1,
        };
        rows_below(&self.outer, 0, 0, &mut |rows: Rows| {
            let mut first = 0;
            while first < rows.count {
                let count = per_batch.min(rows.count - first);
                let (start, place) =
                    (rows.start + first * rows.stride, rows.place + first * rows.step);
                for strip in &self.strips {
                    visit(Rows { start, place, count, ..rows }, strip);
                }
                first += count;
            }
        });
    }
}

/// Whether an axis only makes the runs of the axis before it longer.
fn continues(selection: &AxisSelection, segments: &[Segment]) -> bool {
    selection.is_all() && matches!(segments, [Segment { places: GroupPlaces::Fixed(0), .. }])
}

fn all_fixed(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| matches!(segment.places, GroupPlaces::Fixed(_)))
}

/// Evenly spaced rows of the axes `outer`, beginning at `start` and `place`.
fn rows_below(
    outer: &[(usize, Vec<Segment>)],
    start: usize,
    place: usize,
    visit: &mut impl FnMut(Rows),
) {
    let Some(((stride, segments), inner)) = outer.split_first() else {
        return visit(Rows { start, stride: 0, place, step: 0, count: 1 });
    };
    let stride = *stride;
    for segment in segments {
        let start = start + segment.start * stride;
        if !inner.is_empty() {
            for at in 0..segment.len {
                rows_below(inner, start + at * stride, place + segment.places.at(at), visit);
            }
            continue;
        }
        match &segment.places {
            GroupPlaces::Fixed(at) => {
                visit(Rows { start, stride, place: place + at, step: 0, count: segment.len });
            }
            GroupPlaces::Steps { first, step } => {
                let place = place + first;
                visit(Rows { start, stride, place, step: *step, count: segment.len });
            }
            GroupPlaces::Listed(places) => {
                for (at, listed) in places.iter().enumerate() {
                    let start = start + at * stride;
                    visit(Rows { start, stride, place: place + listed, step: 0, count: 1 });
                }
            }
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
            GroupPlaces::Fixed(place) => GroupPlaces::Fixed(*place),
            GroupPlaces::Steps { first, step } => {
                GroupPlaces::Steps { first: first + cells.start * step, step: *step }
            }
            GroupPlaces::Listed(places) => GroupPlaces::Listed(places[cells.clone()].to_vec()),
        };
        Self { start: self.start + cells.start, len: cells.end - cells.start, places }
    }
}
