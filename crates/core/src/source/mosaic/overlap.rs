//! [`Overlap`]: the cells that a stored chunk shares with a chunk of the table.
//!
//! ```text
//!   stored array      0         6         12        18       chunks of 6
//!                     ├─────────┼─────────┼─────────┤
//!   chunk of table        4 ├───────────┤ 10                 `range` 4..10
//!
//!                     coordinate  extent  region  origin
//!   first overlap     0           6       0..2    4          2 cells, from cell 4 of the stored chunk
//!   second overlap    1           6       2..6    0          4 cells, from cell 0 of the stored chunk
//! ```
//!
//! `region` counts from the start of the table's chunk, and `origin` from the start of the stored one. Both
//! become a [`Placement`], which decoding follows when it copies the cells into the tile.
//!
//! A stored chunk that is a whole chunk of the table keeps its layers. So raw chunks of concatenated files are still
//! views of the files.

use std::ops::Range;

use crate::format::{Layer, Placement, StorageOrder, StoredChunk};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, ravel};

/// The position of a stored chunk in a chunk of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    /// The coordinates of the stored chunk in its own grid.
    coordinates: Vec<u64>,
    /// The number of cells of the stored chunk along each axis.
    extents: Vec<u64>,
    /// The shared cells: per axis, the range in the chunk of the table.
    region: Vec<Range<u64>>,
    /// The first cell of `region`, as coordinates in the stored chunk.
    origin: Vec<u64>,
    /// Whether the two chunks have the same cells.
    is_same: bool,
}

/// An [`Overlap`] along one axis.
pub(super) struct AxisOverlap {
    /// The coordinate of the stored chunk on this axis of its grid.
    coordinate: u64,
    /// The length of the stored chunk.
    extent: u64,
    /// The shared indices, from the start of `range`.
    region: Range<u64>,
    /// The first shared index, from the start of the stored chunk.
    origin: u64,
    /// Whether the stored chunk is `range`.
    is_same: bool,
}

/// Returns the stored chunks of one axis that overlap `range` of the stored array. With `wanted`, which is
/// relative to `range`, returns only those that hold a selected index.
pub(super) fn axis_overlaps(
    grid: &ChunkGrid,
    axis: usize,
    range: &Range<u64>,
    wanted: Option<&AxisSelection>,
) -> Vec<AxisOverlap> {
    let everything = 0..range.end - range.start;
    let wanted = wanted.map_or(std::slice::from_ref(&everything), AxisSelection::ranges);
    let mut overlaps: Vec<AxisOverlap> = Vec::new();
    for indices in wanted {
        let first = grid.chunk_of(axis, range.start + indices.start);
        let last = grid.chunk_of(axis, range.start + indices.end - 1);
        for coordinate in first..=last {
            // The selected ranges ascend, so only the last chunk of the range before can come again.
            if overlaps.last().is_some_and(|overlap| overlap.coordinate >= coordinate) {
                continue;
            }
            let chunk = grid.axis_range(axis, coordinate);
            // The whole overlap counts, selected or not: a stored chunk is decoded as a whole.
            let (start, end) = (chunk.start.max(range.start), chunk.end.min(range.end));
            overlaps.push(AxisOverlap {
                coordinate,
                extent: chunk.end - chunk.start,
                region: start - range.start..end - range.start,
                origin: start - chunk.start,
                is_same: chunk == *range,
            });
        }
    }
    overlaps
}

impl Overlap {
    pub(super) fn new<'a>(axes: impl Iterator<Item = &'a AxisOverlap>) -> Self {
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

    /// The number of the stored chunk in its own grid.
    pub(super) fn chunk_number(&self, grid: &ChunkGrid) -> u64 {
        ravel(&self.coordinates, grid.chunks_per_axis())
    }

    /// The number of cells of the stored chunk.
    pub(super) fn cells(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Whether the chunk of the table holds all cells of the stored chunk.
    pub(super) fn is_all(&self) -> bool {
        let whole = |(region, extent): (&Range<u64>, &u64)| region.end - region.start == *extent;
        self.region.iter().zip(&self.extents).all(whole)
    }

    /// Returns the task that reads the whole stored chunk.
    pub(super) fn task(&self, grid: &ChunkGrid) -> ChunkTask {
        ChunkTask {
            chunk_number: self.chunk_number(grid),
            coordinates: self.coordinates.clone(),
            selection: self.extents.iter().map(|&len| AxisSelection::all(len)).collect(),
            rows: self.cells(),
        }
    }

    /// Returns the layers of the stored chunk, placed in the chunk of the table.
    ///
    /// A chunk with the same cells is returned as it is. So a raw chunk remains a view of its file, and a
    /// decoded one needs no copy.
    pub(super) fn place(&self, stored: StoredChunk) -> StoredChunk {
        if self.is_same {
            return stored;
        }
        let StoredChunk { layers, form } = stored;
        let layers = layers.into_iter().filter_map(|layer| {
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
        StoredChunk { layers: layers.collect(), form }
    }

    /// Converts a placement in the stored chunk to one in the chunk of the table; `None` if they share no cell.
    ///
    /// Stored chunks of TileDB have placements of their own, one per fragment. An example on one axis, for
    /// the second overlap of the module's picture:
    ///
    /// ```text
    ///   stored chunk, 6 cells            0  1  2  3  4  5
    ///   `cells` of the fragment                3  4  5       first cell at 7 in the fragment's tile
    ///   `shown` in the table's chunk     0  1  2  3          `within` 2..6
    ///   both                                   3             region 5..6, origin 7
    /// ```
    fn shifted(&self, placement: &Placement) -> Option<Placement> {
        let (mut region, mut origin) = (vec![], vec![]);
        let axes = placement.region.iter().zip(&placement.origin).zip(&placement.tile_shape);
        for (((cells, first), stored), (within, start)) in
            axes.zip(self.region.iter().zip(&self.origin))
        {
            // `cells` and `shown` are ranges in the stored chunk.
            let shown = *start..start + (within.end - within.start);
            let (from, to) = (cells.start.max(shown.start), cells.end.min(shown.end));
            if from >= to {
                return None;
            }
            region.push(within.start + from - shown.start..within.start + to - shown.start);
            // A single element is repeated for all cells.
            origin.push(if *stored == 1 { *first } else { first + from - cells.start });
        }
        Some(Placement { region, origin, ..placement.clone() })
    }
}
