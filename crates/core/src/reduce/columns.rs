//! [`Columns`]: the states of neighbouring columns, before they are added to the states of their groups.
//!
//! Where groups have few neighbouring cells, or cells are in groups in any order, rows that share their groups are folded first.
//! Then a group is looked up once per column:
//!
//! ```text
//!   row 0    c c c c c c
//!   row 1    c c c c c c
//!            ▼ ▼ ▼ ▼ ▼ ▼
//!   columns  s s s s s s      a state per column, in the nearest cache
//!   groups   3 3 0 0 0 1
//! ```

use std::ops::Range;

use super::batch::{GroupPlaces, Rows, Segment};
use super::cell::Cell;
use super::lanes::ROWS;
use super::statistic::Statistic;

/// The number of columns that are folded at a time.
pub(super) const WIDTH: usize = 512;

/// The length of a run from which its end does not matter.
const SHORT_RUN: usize = 512;

/// Whether runs of one group are short, on average.
pub(super) fn are_short_runs(segments: &[Segment]) -> bool {
    let cells: usize = segments.iter().map(|segment| segment.len).sum();
    segments.len() * SHORT_RUN > cells
        && segments.iter().all(|segment| matches!(segment.places, GroupPlaces::Fixed(_)))
}

/// The states and counts of some columns.
pub(super) struct Columns<T: Cell, S: Statistic<T>> {
    states: [S::State; WIDTH],
    counts: [u64; WIDTH],
}

impl<T: Cell, S: Statistic<T>> Columns<T, S> {
    pub(super) const EMPTY: Self = Self { states: [S::EMPTY; WIDTH], counts: [0; WIDTH] };

    /// Returns the states and counts.
    #[inline(always)]
    pub(super) fn all(&mut self) -> (&mut [S::State], &mut [u64]) {
        (&mut self.states, &mut self.counts)
    }

    /// Adds the columns, which are those of `cells`, to the states of their groups, and empties them. Adds the counts only to as many
    /// groups as `counts` has.
    #[inline(never)] // once per test and processor, it would take as much memory as the loops
    pub(super) fn hand_out(
        &mut self,
        states: &mut [S::State],
        counts: &mut [u64],
        segments: &[Segment],
        cells: Range<usize>,
        base: usize,
    ) {
        let first = segments.partition_point(|segment| segment.end() <= cells.start);
        for segment in segments[first..].iter().take_while(|segment| segment.start < cells.end) {
            let of_segment = segment.start.max(cells.start)..segment.end().min(cells.end);
            let columns = of_segment.start - cells.start..of_segment.end - cells.start;
            if let GroupPlaces::Fixed(place) = &segment.places {
                self.hand_out_run(states, counts, columns, base + place);
                continue;
            }
            for (at, column) in of_segment.zip(columns) {
                let place = base + segment.places.at(at - segment.start);
                S::join(&mut states[place], self.states[column]);
                self.states[column] = S::EMPTY;
                if let Some(count) = counts.get_mut(place) {
                    *count += self.counts[column];
                    self.counts[column] = 0;
                }
            }
        }
    }

    /// Adds columns of one group to its state, and empties them.
    fn hand_out_run(
        &mut self,
        states: &mut [S::State],
        counts: &mut [u64],
        columns: Range<usize>,
        place: usize,
    ) {
        // Several at a time, so that additions need not wait for each other.
        let mut lanes = [S::EMPTY; 8];
        for block in self.states[columns.clone()].chunks(lanes.len()) {
            lanes.iter_mut().zip(block).for_each(|(lane, state)| S::join(lane, *state));
        }
        lanes.iter().for_each(|lane| S::join(&mut states[place], *lane));
        self.states[columns.clone()].fill(S::EMPTY);
        if let Some(count) = counts.get_mut(place) {
            *count += self.counts[columns.clone()].iter().sum::<u64>();
            self.counts[columns].fill(0);
        }
    }
}

impl Rows {
    /// Whether runs of `len` cells of the rows are to be folded four rows at a time: because the rows share their groups, and because
    /// the end of a run takes as long as some of its cells.
    #[inline(always)]
    pub(super) fn have_runs_side_by_side(self, len: usize) -> bool {
        self.step == 0 && self.count >= ROWS && len < SHORT_RUN
    }

    /// Whether the rows are to be folded column by column, because they share their groups, which `segments` scatter.
    #[inline(always)]
    pub(super) fn are_folded_first(self, segments: &[Segment]) -> bool {
        /// The rows for which it takes less time to hand out columns than to end their runs.
        const MANY: usize = 16;
        let longest = if self.count >= MANY { LONG_RUN } else { SHORTER_RUN };
        self.step == 0 && self.count >= ROWS && have_few_neighbours(segments, longest)
    }
}

/// The length of a run that fills the lanes so often that its end does not matter, beside a few rows and beside many.
const SHORTER_RUN: usize = 48;
const LONG_RUN: usize = 128;

/// Whether groups have few neighbouring cells, or cells are in groups in any order.
pub(super) fn are_scattered(segments: &[Segment]) -> bool {
    have_few_neighbours(segments, LONG_RUN)
}

fn have_few_neighbours(segments: &[Segment], longest: usize) -> bool {
    let cells: usize = segments.iter().map(|segment| segment.len).sum();
    let is_run = |segment: &Segment| matches!(segment.places, GroupPlaces::Fixed(_));
    let is_column =
        |segment: &Segment| matches!(segment.places, GroupPlaces::Steps { step: 1, .. });
    let is_listed = |segment: &Segment| !is_run(segment) && !is_column(segment);
    segments.iter().any(is_listed)
        || segments.iter().any(is_run) && segments.len() * longest > cells
}
