//! The cells that a stored chunk of a part and a chunk of the table share.

use std::ops::Range;

use crate::format::{Layer, Placement, StorageOrder, StoredChunk};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, ravel};

/// A stored chunk as a part of a chunk of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap {
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
pub(super) struct AxisOverlap {
    coordinate: u64,
    extent: u64,
    region: Range<u64>,
    origin: u64,
    is_same: bool,
}

/// The chunks of an axis of a part that lie in `range` of it and hold a selected index, which is relative
/// to the range.
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
            if overlaps.last().is_some_and(|overlap| overlap.coordinate >= coordinate) {
                continue;
            }
            let chunk = grid.axis_range(axis, coordinate);
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

    /// The stored chunk's number in the grid of its part.
    pub(super) fn chunk_number(&self, grid: &ChunkGrid) -> u64 {
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
            chunk_number: self.chunk_number(grid),
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
