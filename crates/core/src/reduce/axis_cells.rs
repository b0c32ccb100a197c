//! [`AxisCells`]: the selected cells of an axis of a chunk, which are cut into strips for the loops.
//!
//! ```text
//!   segments   0 0 0 0 0 0 0 0 0 0 1 1 1 1      one group each, one place further each, or listed places
//!   strips     └─── 8192 cells ──┘ └ …          rows that lie in groups of their own, one after the other
//!   columns    └ 1024 ┘ └ 1024 ┘ …              rows that share their groups, side by side
//! ```
//!
//! Chunks that have the same cells and groups along an axis share both.

use std::ops::Range;
use std::sync::OnceLock;

use super::batch::{GroupPlaces, Segment};
use super::columns::{are_scattered, are_short_runs};
use super::lanes::ROWS;

/// The cells of a batch: few enough to stay in cache while several statistics pass over them.
pub(super) const BATCH_CELLS: usize = 8192;

/// The length of a strip whose rows share their groups: a state per cell stays in cache, too.
const COLUMNS: usize = 1024;

/// The selected cells of an axis of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct AxisCells {
    segments: Vec<Segment>,
    strips: OnceLock<Vec<Vec<Segment>>>,
    columns: OnceLock<Vec<Vec<Segment>>>,
    runs: OnceLock<Vec<Vec<Segment>>>,
}

impl AxisCells {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        Self { segments, ..Self::default() }
    }

    /// Returns the segments.
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Returns the cells in pieces of a batch at most. Usually there is one strip, the whole row.
    pub(super) fn strips(&self) -> &[Vec<Segment>] {
        self.strips.get_or_init(|| strips(&self.segments, BATCH_CELLS))
    }

    /// Returns the cells in pieces of which a batch has [`ROWS`] rows; none unless they are short runs of one group each.
    pub(super) fn short_runs(&self) -> &[Vec<Segment>] {
        self.runs.get_or_init(|| match are_short_runs(&self.segments) {
            true => strips(&self.segments, BATCH_CELLS / ROWS),
            false => vec![],
        })
    }

    /// Returns the cells in pieces of [`COLUMNS`], for rows that share their groups; none if many neighbours are in one group.
    pub(super) fn columns(&self) -> &[Vec<Segment>] {
        let side_by_side =
            |segment: &Segment| matches!(segment.places, GroupPlaces::Steps { step: 1, .. });
        self.columns.get_or_init(|| {
            match self.segments.iter().all(side_by_side) || are_scattered(&self.segments) {
                true => strips(&self.segments, COLUMNS),
                false => vec![],
            }
        })
    }
}

/// Cuts segments into strips of at most `cells`; a strip may hold several short segments.
fn strips(segments: &[Segment], cells: usize) -> Vec<Vec<Segment>> {
    let mut strips: Vec<Vec<Segment>> = Vec::new();
    let mut room = 0;
    for segment in segments {
        let mut from = 0;
        while from < segment.len {
            if room == 0 {
                strips.push(Vec::new());
                room = cells;
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
