//! A chunk with the groups of its cells.

use std::ops::Range;
use std::sync::Arc;

use super::axis_cells::AxisCells;
use super::batch::{GroupPlaces, Segment};
use super::group_table::GroupTable;
use super::plane_groups::TablePlane;
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask};

/// A chunk, with the table that holds the groups of its cells.
#[derive(Debug, Clone, Copy)]
pub struct GroupedChunk<'a> {
    table: &'a GroupTable,
    pub(super) grid: &'a ChunkGrid,
    pub(super) task: &'a ChunkTask,
    /// The first place that a reducer has, and the axis whose places count from there.
    first: (usize, usize),
}

/// An axis of a chunk, or several that are visited as one.
#[derive(Debug)]
pub(super) struct ChunkAxis {
    /// The number of cells.
    pub(super) extent: usize,
    /// Whether all of them are selected.
    pub(super) is_whole: bool,
    /// Whether the axis is in a key.
    pub(super) is_keyed: bool,
    pub(super) cells: Arc<AxisCells>,
}

impl<'a> GroupedChunk<'a> {
    /// Returns the chunk of `task` in `grid`, with the groups in `table`.
    pub fn new(table: &'a GroupTable, grid: &'a ChunkGrid, task: &'a ChunkTask) -> Self {
        Self { table, grid, task, first: (0, 0) }
    }

    /// Returns the selected cells of each axis, with the places of their groups. The axes of a plane are one.
    pub(super) fn axes(&self) -> Vec<ChunkAxis> {
        let mut segments = self.segments();
        let plane = self.table.plane.as_ref();
        let together = plane.map_or(0..0, TablePlane::axes);
        let mut axes = Vec::with_capacity(segments.len());
        for axis in 0..segments.len() {
            match plane {
                Some(plane) if axis == together.start => {
                    axes.push(self.plane_axis(plane, &segments[together.clone()]));
                }
                Some(_) if together.contains(&axis) => {}
                _ => axes.push(ChunkAxis {
                    extent: self.task.selection[axis].len() as usize,
                    is_whole: self.task.selection[axis].is_all(),
                    is_keyed: self.table.is_keyed(axis),
                    cells: Arc::new(AxisCells::new(std::mem::take(&mut segments[axis]))),
                }),
            }
        }
        axes
    }

    /// Returns the axes of a plane as one; `segments` are those of each.
    fn plane_axis(&self, plane: &TablePlane, segments: &[Vec<Segment>]) -> ChunkAxis {
        let extents = self.task.selection[plane.axes()].iter().map(AxisSelection::len);
        let extent = extents.product::<u64>() as usize;
        let cells = plane.cells(self.grid, self.task, segments);
        let is_whole = matches!(cells.segments(), [only] if only.len == extent);
        ChunkAxis { extent, is_whole, is_keyed: true, cells }
    }

    /// Returns the selected cells of each axis, with the parts of the places that the axis determines alone.
    fn segments(&self) -> Vec<Vec<Segment>> {
        let segments = |axis| self.table.segments(axis, self.grid, self.task);
        let mut all: Vec<Vec<Segment>> = (0..self.task.selection.len()).map(segments).collect();
        let (axis, first) = self.first;
        if first > 0 {
            all[axis].iter_mut().for_each(|segment| segment.places.lower(first));
        }
        all
    }

    /// Returns the place of the only group in which the selected cells are; `None` if they are in
    /// several.
    pub(super) fn only_place(&self) -> Option<usize> {
        self.table.only_place(self.grid, self.task)
    }

    /// Returns a range of places that has those of all groups of the chunk, and the axis from which its start is. Where the
    /// groups of chunks follow one another, as with `GROUP BY time`, ranges are short.
    pub(super) fn span(&self) -> (usize, Range<usize>) {
        let axes = 0..self.task.selection.len();
        let ends: Vec<(usize, usize)> =
            axes.map(|axis| self.table.ends(axis, self.grid, self.task)).collect();
        let most = ends.iter().enumerate().max_by_key(|(_, (least, _))| *least);
        let (axis, start) = most.map_or((0, 0), |(axis, (least, _))| (axis, *least));
        let last: usize = ends.iter().map(|(_, greatest)| greatest).sum();
        let last = last + self.table.plane.as_ref().map_or(0, TablePlane::end);
        (axis, start..last + 1)
    }

    /// Returns the chunk for a reducer whose first place is `first`, which is the start of a span along `axis`.
    pub(super) fn at_place(self, (axis, first): (usize, usize)) -> Self {
        Self { first: (axis, first), ..self }
    }
}

impl GroupPlaces {
    /// Counts the places from `first`, which is at most the least of them.
    fn lower(&mut self, first: usize) {
        match self {
            Self::Fixed(place) | Self::Steps { first: place, .. } => *place -= first,
            Self::Listed(places) => places.iter_mut().for_each(|place| *place -= first),
        }
    }
}
