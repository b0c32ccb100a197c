//! [`PlaneGroups`]: groups of cells of several axes, such as those of `floor(lat)` where `lat` is over `y` and `x`.
//!
//! Each cell of the *plane* has a number. A chunk is visited as if the axes of the plane were one:
//!
//! ```text
//!   numbers   x 0 1 2 3          chunk (time, y, x)  ──▶  (time, y × x)
//!   y 0         0 0 1 1
//!     1         0 1 - -          segments of y × x        0 0 1 1 0 1        - does not count
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::axis_cells::AxisCells;
use super::batch::{GroupPlaces, Segment};
use super::group_table::{Ranks, WORTHWHILE_RUN};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask};

/// The groups of the cells of several neighbouring axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaneGroups {
    /// The axes.
    pub axes: Range<usize>,
    /// The group of each selected cell of the axes, row-major, less than `groups`; [`PlaneGroups::NONE`] for a cell that does
    /// not count.
    pub numbers: Arc<[u32]>,
    /// The number of groups; 1 if no key is over the axes together.
    pub groups: u32,
}

impl PlaneGroups {
    /// The number of a cell that does not count.
    pub const NONE: u32 = u32::MAX;
}

/// The groups of a plane as a part of the table.
#[derive(Debug)]
pub(super) struct TablePlane {
    groups: PlaneGroups,
    /// The ranks of the selected indices of each axis, and their number.
    ranks: Vec<(Ranks, usize)>,
    /// The cells of some chunks, by their coordinates on the axes of the plane.
    known: Mutex<HashMap<Vec<u64>, KnownChunk>>,
}

impl TablePlane {
    pub(super) fn new(groups: &PlaneGroups, selection: &[AxisSelection]) -> Self {
        let ranks = |axis: &AxisSelection| (Ranks::new(axis), axis.count() as usize);
        let ranks = selection[groups.axes.clone()].iter().map(ranks).collect();
        Self { groups: groups.clone(), ranks, known: Mutex::default() }
    }

    /// Returns the axes.
    pub(super) fn axes(&self) -> Range<usize> {
        self.groups.axes.clone()
    }

    /// Returns the greatest part that the plane has in places of groups.
    pub(super) fn end(&self) -> usize {
        self.groups.groups.saturating_sub(1) as usize
    }

    /// Returns the cells that count in the chunk of `task`, as those of one axis, with the places of their groups. `axes` are
    /// the selected cells of each axis of the plane, with the parts of the places that the axis determines alone.
    pub(super) fn cells(
        &self,
        grid: &ChunkGrid,
        task: &ChunkTask,
        axes: &[Vec<Segment>],
    ) -> Arc<AxisCells> {
        /// The most cells of chunks that are kept.
        const MOST_CELLS: usize = 1 << 20;
        let coordinates = &task.coordinates[self.axes()];
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = known.get(coordinates).filter(|chunk| chunk.axes == axes) {
            return Arc::clone(&chunk.cells);
        }
        let cells = Arc::new(AxisCells::new(self.segments(grid, task, axes)));
        if known.values().map(|chunk| chunk.cells.len()).sum::<usize>() + cells.len() > MOST_CELLS {
            known.clear();
        }
        let chunk = KnownChunk { axes: axes.to_vec(), cells: Arc::clone(&cells) };
        known.insert(coordinates.to_vec(), chunk);
        cells
    }

    fn segments(&self, grid: &ChunkGrid, task: &ChunkTask, axes: &[Vec<Segment>]) -> Vec<Segment> {
        let axes = self.axes().zip(axes).zip(&self.ranks);
        let axes = axes.map(|((axis, segments), (ranks, count))| PlaneAxis {
            start: grid.axis_range(axis, task.coordinates[axis]).start,
            extent: task.selection[axis].len() as usize,
            segments: segments.as_slice(),
            ranks,
            count: *count,
        });
        let axes: Vec<PlaneAxis<'_>> = axes.collect();
        let mut found = Found { numbers: &self.groups.numbers, segments: vec![] };
        found.add(&axes, Row::default());
        found.segments
    }
}

/// The cells of a chunk on the plane. Chunks of other times have the same ones.
#[derive(Debug)]
struct KnownChunk {
    /// The selected cells of each axis.
    axes: Vec<Vec<Segment>>,
    cells: Arc<AxisCells>,
}

/// An axis of the plane, in a chunk.
#[derive(Debug)]
struct PlaneAxis<'a> {
    /// The index at which the chunk begins.
    start: u64,
    /// The number of cells of the chunk along the axis.
    extent: usize,
    /// The selected cells.
    segments: &'a [Segment],
    ranks: &'a Ranks,
    /// The number of selected indices of the whole axis.
    count: usize,
}

/// A cell of the outer axes.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// The number of the cell in the chunk.
    cell: usize,
    /// The number of the cell among the selected ones of the whole plane.
    rank: usize,
    /// The part of the place that these axes determine alone.
    place: usize,
}

/// The segments found so far.
#[derive(Debug)]
struct Found<'a> {
    numbers: &'a [u32],
    segments: Vec<Segment>,
}

impl Found<'_> {
    /// Adds the cells of `axes` below `row`.
    fn add(&mut self, axes: &[PlaneAxis<'_>], row: Row) {
        let Some((axis, inner)) = axes.split_first() else { return };
        for segment in axis.segments.iter().filter(|segment| segment.len > 0) {
            let rank = axis.ranks.of(axis.start + segment.start as u64) as usize;
            let cell = row.cell * axis.extent + segment.start;
            let rank = row.rank * axis.count + rank;
            if inner.is_empty() {
                self.add_last(segment, Row { cell, rank, ..row });
                continue;
            }
            for at in 0..segment.len {
                let place = row.place + segment.places.at(at);
                self.add(inner, Row { cell: cell + at, rank: rank + at, place });
            }
        }
    }

    /// Adds the cells of a segment of the last axis that count; `first` is its first cell.
    fn add_last(&mut self, segment: &Segment, first: Row) {
        let numbers = &self.numbers[first.rank..first.rank + segment.len];
        let is_none = |number: &u32| *number == PlaneGroups::NONE;
        let mut at = 0;
        for cells in numbers.chunk_by(|a, b| is_none(a) == is_none(b)) {
            if !is_none(&cells[0]) {
                self.add_cells(&segment.places, at, cells, first);
            }
            at += cells.len();
        }
    }

    /// Adds neighbouring cells with these numbers, which begin `at` cells behind the first of a segment.
    fn add_cells(&mut self, places: &GroupPlaces, at: usize, numbers: &[u32], first: Row) {
        let mut start = first.cell + at;
        if let GroupPlaces::Fixed(place) = places {
            let runs = numbers.chunk_by(|a, b| a == b);
            let count = runs.clone().count();
            if count == 1 || count * WORTHWHILE_RUN <= numbers.len() {
                for run in runs {
                    let place = first.place + place + run[0] as usize;
                    self.push_run(start, run.len(), place);
                    start += run.len();
                }
                return;
            }
            if numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) {
                let first = first.place + place + numbers[0] as usize;
                self.push_steps(start, numbers.len(), first);
                return;
            }
        }
        let place =
            |(cell, number): (usize, &u32)| first.place + places.at(at + cell) + *number as usize;
        let listed = numbers.iter().enumerate().map(place);
        match self.segments.last_mut() {
            // The rows of a chunk follow one another.
            Some(Segment { start: before, len, places: GroupPlaces::Listed(all) })
                if *before + *len == start =>
            {
                all.extend(listed);
                *len += numbers.len();
            }
            _ => {
                let places = GroupPlaces::Listed(listed.collect());
                self.segments.push(Segment { start, len: numbers.len(), places });
            }
        }
    }

    /// Adds cells each of which is in the next group of the plane.
    fn push_steps(&mut self, start: usize, len: usize, first: usize) {
        match self.segments.last_mut() {
            // Only this function adds steps.
            Some(Segment {
                start: before,
                len: cells,
                places: GroupPlaces::Steps { first: place, .. },
            }) if *before + *cells == start && *place + *cells == first => {
                *cells += len;
            }
            _ => {
                let places = GroupPlaces::Steps { first, step: 1 };
                self.segments.push(Segment { start, len, places });
            }
        }
    }

    /// Adds cells of one group.
    fn push_run(&mut self, start: usize, len: usize, place: usize) {
        let places = GroupPlaces::Fixed(place);
        match self.segments.last_mut() {
            Some(last) if last.start + last.len == start && last.places == places => {
                last.len += len
            }
            _ => self.segments.push(Segment { start, len, places }),
        }
    }
}
