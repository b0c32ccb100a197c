//! The selected cells of a chunk, as batches of rows for the kernels.
//!
//! First, axes that no group depends on are folded: an axis that is selected whole and is in no key
//! extends the runs of the axis before it. A few outer axes remain, which only move the start of a row.
//! The innermost axis decides the loop.
//!
//! ```text
//!   chunk of 48 hours × 3 stations
//!   GROUP BY day       time 24 × 0, 24 × 1; station in no key   one axis of 144: 72 of place 0, 72 of 1
//!   GROUP BY station   time in no key; station 0 1 2            outer axis of 48, stride 3; rows of 3
//! ```

use std::ops::Range;

use super::kernel::{GroupPlaces, Rows, Segment};
use crate::grid::{AxisSelection, ChunkTask};

/// The cells of a batch: few enough to stay in cache while several statistics pass over them.
const BATCH_CELLS: usize = 8192;

/// The order in which the cells of a chunk are visited.
#[derive(Debug)]
pub(super) struct Walk {
    /// Per outer axis, the cells from one index to the next (its stride), and the selected segments.
    outer: Vec<(usize, Vec<Segment>)>,
    /// The innermost axis, in pieces of a batch at most. Usually there is one strip, the whole row.
    strips: Vec<Vec<Segment>>,
}

impl Walk {
    /// Prepares to visit the `segments` of each axis of the chunk of `task`.
    pub(super) fn new(task: &ChunkTask, segments: Vec<Vec<Segment>>) -> Self {
        // First with the extent of each axis. An axis that is folded into the one before multiplies its
        // extent.
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
        // Replaces extents by strides, the last axis first: 2, 3, 4 becomes 12, 4, 1.
        let mut stride = 1;
        for (extent, _) in folded.iter_mut().rev() {
            stride *= std::mem::replace(extent, stride);
        }
        let inner = folded.pop().map(|(_, segments)| segments).unwrap_or_default();
        Self { outer: folded, strips: strips(inner) }
    }

    /// Calls `visit` with batches of rows and the selected cells of each. A batch has at most 8192 cells:
    /// many short rows, or part of a long one.
    pub(super) fn each(&self, mut visit: impl FnMut(Rows, &[Segment])) {
        let cells = |strip: &Vec<Segment>| strip.iter().map(|segment| segment.len).sum::<usize>();
        // Rows longer than a batch come one at a time, so that the pieces of a row follow one another.
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

/// Whether an axis only lengthens the runs of the axis before it.
fn continues(selection: &AxisSelection, segments: &[Segment]) -> bool {
    selection.is_all() && matches!(segments, [Segment { places: GroupPlaces::Fixed(0), .. }])
}

/// Whether each segment is in one group, so that the cells of the next axis may lengthen its runs.
fn all_fixed(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| matches!(segment.places, GroupPlaces::Fixed(_)))
}

/// Calls `visit` with evenly spaced rows over the axes `outer`, beginning at `start` and `place`. The
/// last of these axes becomes one `Rows` per segment, or one per index if its places are listed. The
/// others recurse.
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

/// Cuts segments into strips of at most a batch; a strip may hold several short segments.
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
    /// Returns the part of the segment at `cells`, which are relative to its start.
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
