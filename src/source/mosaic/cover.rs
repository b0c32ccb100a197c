//! Where the stored chunks of the parts lie in the chunks of the table.

use std::ops::Range;

use crate::format::{Layer, Placement, StorageOrder, StoredChunk};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, Selection, ravel, unravel};

/// How a mosaic is laid out: files follow one another along one axis.
#[derive(Debug)]
pub(super) struct Layout {
    /// How the table is cut into chunks; a file ends at a border.
    pub(super) grid: ChunkGrid,
    /// The axis along which files follow one another.
    pub(super) axis: usize,
    /// Where each file begins on that axis, and where the last one ends.
    pub(super) starts: Vec<u64>,
    /// The chunk of the table on that axis with which each file begins.
    firsts: Vec<u64>,
    /// Per variable, per file: how it is cut.
    grids: Vec<Vec<ChunkGrid>>,
    /// Per variable, per file: whether it is cut just like the table is there, as most are.
    are_same: Vec<Vec<bool>>,
}

/// A stored chunk as a part of a chunk of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cover {
    /// Its coordinates in its part's grid.
    coordinates: Vec<u64>,
    /// Its extents.
    extents: Vec<u64>,
    /// The cells that both have: per axis the range in the chunk of the table.
    region: Vec<Range<u64>>,
    /// The cell of the stored chunk that is the region's first.
    origin: Vec<u64>,
    /// Whether the two have the same cells.
    is_same: bool,
}

/// One chunk of an axis, as far as it is in a chunk of the table.
struct AxisCover {
    coordinate: u64,
    extent: u64,
    region: Range<u64>,
    origin: u64,
    is_same: bool,
}

impl Layout {
    /// Files that begin at `starts` on `axis` (and end where the last one does), and variables that are cut
    /// like `grids`, in a table that is cut like `grid`.
    pub(super) fn new(
        grid: ChunkGrid,
        axis: usize,
        starts: Vec<u64>,
        grids: Vec<Vec<ChunkGrid>>,
    ) -> Self {
        let len = grid.shape()[axis];
        let first = |start: &u64| if *start < len { grid.chunk_of(axis, *start) } else { 0 };
        let firsts: Vec<u64> = starts.iter().map(first).collect();
        let mut this = Self { grid, axis, starts, firsts, grids, are_same: vec![] };
        let of_variable = |files: &Vec<ChunkGrid>| {
            files.iter().enumerate().map(|(file, grid)| this.is_same(file, grid)).collect()
        };
        this.are_same = this.grids.iter().map(of_variable).collect();
        this
    }

    /// Whether the chunks of a file are chunks of the table.
    fn is_same(&self, file: usize, grid: &ChunkGrid) -> bool {
        (0..grid.rank()).all(|axis| {
            let (first, start) = match axis == self.axis {
                true => (self.firsts[file], self.starts[file]),
                false => (0, 0),
            };
            (0..grid.chunks_per_axis()[axis]).all(|chunk| {
                let (here, there) =
                    (self.grid.axis_range(axis, first + chunk), grid.axis_range(axis, chunk));
                here == (start + there.start..start + there.end)
            })
        })
    }

    /// The number in its part's grid of the stored chunk that is this chunk of the table, if one is.
    pub(super) fn same_chunk(
        &self,
        variable: usize,
        file: usize,
        coordinates: &[u64],
    ) -> Option<u64> {
        if !self.are_same[variable][file] {
            return None;
        }
        let mut coordinates = coordinates.to_vec();
        coordinates[self.axis] -= self.firsts[file];
        Some(ravel(&coordinates, self.grids[variable][file].chunks_per_axis()))
    }

    /// The file that a chunk of the table is in.
    pub(super) fn file_of(&self, coordinates: &[u64]) -> usize {
        let start = self.grid.axis_range(self.axis, coordinates[self.axis]).start;
        // Files without a cell begin where the next one does.
        self.starts.partition_point(|first| *first <= start).saturating_sub(1)
    }

    /// The grid of a part.
    pub(super) fn grid_of(&self, variable: usize, file: usize) -> &ChunkGrid {
        &self.grids[variable][file]
    }

    /// The files that hold a selected index.
    pub(super) fn files_of(&self, selection: &Selection) -> Vec<usize> {
        let wanted = &selection.axes()[self.axis];
        let of_file = |file: &usize| self.starts[*file]..self.starts[*file + 1];
        let files = 0..self.starts.len() - 1;
        files.filter(|file| wanted.within(of_file(file)).count() > 0).collect()
    }

    /// What is selected of one file.
    pub(super) fn within_file(&self, selection: &Selection, file: usize) -> Selection {
        let of_file = self.starts[file]..self.starts[file + 1];
        let mut shape = self.grid.shape().to_vec();
        shape[self.axis] = of_file.end - of_file.start;
        let mut within = Selection::all(&shape);
        for (axis, wanted) in selection.axes().iter().enumerate() {
            match axis == self.axis {
                true => within.restrict(axis, &wanted.within(of_file.clone())),
                false => within.restrict(axis, wanted),
            }
        }
        within
    }

    /// The stored chunks of a variable in a chunk of the table: all of them, or those that hold a cell
    /// of `selection`, which is relative to the table's chunk.
    pub(super) fn covers(
        &self,
        variable: usize,
        coordinates: &[u64],
        selection: Option<&[AxisSelection]>,
    ) -> Vec<Cover> {
        let file = self.file_of(coordinates);
        let grid = &self.grids[variable][file];
        let axes: Vec<Vec<AxisCover>> = (0..grid.rank())
            .map(|axis| {
                let range = self.grid.axis_range(axis, coordinates[axis]);
                let before = if axis == self.axis { self.starts[file] } else { 0 };
                let of_part = range.start - before..range.end - before;
                let wanted = selection.map(|selection| &selection[axis]);
                axis_covers(grid, axis, &of_part, wanted)
            })
            .collect();
        let counts: Vec<u64> = axes.iter().map(|axis| axis.len() as u64).collect();
        let combinations = 0..counts.iter().product();
        let cover = |number| {
            let at = unravel(number, &counts);
            Cover::new(axes.iter().zip(at).map(|(axis, at)| &axis[at as usize]))
        };
        combinations.map(cover).collect()
    }
}

/// The chunks of an axis of a part that lie in `range` of it and hold a wanted index, which is relative to
/// the range.
fn axis_covers(
    grid: &ChunkGrid,
    axis: usize,
    range: &Range<u64>,
    wanted: Option<&AxisSelection>,
) -> Vec<AxisCover> {
    let everything = 0..range.end - range.start;
    let wanted = wanted.map_or(std::slice::from_ref(&everything), AxisSelection::ranges);
    let mut covers: Vec<AxisCover> = Vec::new();
    for indices in wanted {
        let first = grid.chunk_of(axis, range.start + indices.start);
        let last = grid.chunk_of(axis, range.start + indices.end - 1);
        for coordinate in first..=last {
            if covers.last().is_some_and(|cover| cover.coordinate >= coordinate) {
                continue;
            }
            let chunk = grid.axis_range(axis, coordinate);
            let (start, end) = (chunk.start.max(range.start), chunk.end.min(range.end));
            covers.push(AxisCover {
                coordinate,
                extent: chunk.end - chunk.start,
                region: start - range.start..end - range.start,
                origin: start - chunk.start,
                is_same: chunk == *range,
            });
        }
    }
    covers
}

impl Cover {
    fn new<'a>(axes: impl Iterator<Item = &'a AxisCover>) -> Self {
        let (mut coordinates, mut extents) = (vec![], vec![]);
        let (mut region, mut origin, mut is_same) = (vec![], vec![], true);
        for axis in axes {
            coordinates.push(axis.coordinate);
            extents.push(axis.extent);
            region.push(axis.region.clone());
            origin.push(axis.origin);
            is_same &= axis.is_same;
        }
        Self { coordinates, extents, region, origin, is_same }
    }

    /// The stored chunk's number in the grid of its part.
    pub(super) fn number(&self, grid: &ChunkGrid) -> u64 {
        ravel(&self.coordinates, grid.chunks_per_axis())
    }

    /// The cells of the stored chunk.
    pub(super) fn cells(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Whether all cells of the stored chunk are in the chunk of the table.
    pub(super) fn is_all(&self) -> bool {
        let whole = |(region, extent): (&Range<u64>, &u64)| region.end - region.start == *extent;
        self.region.iter().zip(&self.extents).all(whole)
    }

    /// Reading the stored chunk, all of it.
    pub(super) fn task(&self, grid: &ChunkGrid) -> ChunkTask {
        ChunkTask {
            number: self.number(grid),
            coordinates: self.coordinates.clone(),
            selection: self.extents.iter().map(|&len| AxisSelection::all(len)).collect(),
            rows: self.cells(),
        }
    }

    /// The layers of the stored chunk as layers of the table's.
    pub(super) fn place(&self, stored: StoredChunk) -> StoredChunk {
        if self.is_same {
            return stored;
        }
        let layers = stored.layers.into_iter().filter_map(|layer| {
            let placement = match &layer.placement {
                Some(placement) => self.shifted(placement)?,
                None => Placement {
                    region: self.region.clone(),
                    tile_shape: self.extents.clone(),
                    origin: self.origin.clone(),
                    order: StorageOrder::RowMajor,
                },
            };
            Some(Layer { placement: Some(placement), ..layer })
        });
        StoredChunk { layers: layers.collect() }
    }

    /// What the table's chunk has of a placement in the stored chunk; `None` if nothing.
    fn shifted(&self, placement: &Placement) -> Option<Placement> {
        let (mut region, mut origin) = (vec![], vec![]);
        let axes = placement.region.iter().zip(&placement.origin);
        for ((cells, first), (within, start)) in axes.zip(self.region.iter().zip(&self.origin)) {
            // Both in elements of the stored chunk.
            let shown = *start..start + (within.end - within.start);
            let (from, to) = (cells.start.max(shown.start), cells.end.min(shown.end));
            if from >= to {
                return None;
            }
            region.push(within.start + from - shown.start..within.start + to - shown.start);
            origin.push(first + from - cells.start);
        }
        Some(Placement { region, origin, ..placement.clone() })
    }
}
