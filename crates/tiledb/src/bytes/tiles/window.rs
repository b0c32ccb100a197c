//! The window: the part of a dense array that a table shows. Its chunks are the array's tiles.
//!
//! ```text
//!   domain   ├────────┼────────┼────────┼────────┼────────┤   tiles are anchored at its low end
//!   window                  ├─────────────────┤               chunks are tiles, clipped to the window
//!                           └ low, index 0
//! ```
//!
//! Three counts of positions meet on each axis. With a domain from 1, tiles of 3 and a window from 5 to 9:
//!
//! ```text
//!   coordinates     4   5   6 │ 7   8   9      as in the schema and in fragments; tile 1, then tile 2
//!   indices             0   1 │ 2   3   4      as in the table and in its grid; chunk 0, then chunk 1
//!   cells           0   1   2 │ 3   4   5      as in a `Region`, from the start of the first tile
//! ```
//!
//! Here `low` is 5, and the grid begins 1 position before the window (its origin). Chunk 0 has the region
//! 1..3, and its tile the region 0..3.

use std::ops::Range;

use crate::bytes::array::TileDbArray;
use crate::bytes::schema::{ArraySchema, TileAxis, integers};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::{Error, Result};

/// The part of a dense array that a table shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The coordinate of index 0 on each axis.
    pub low: Vec<i128>,
    /// Its shape, divided into chunks along the borders of tiles.
    pub grid: ChunkGrid,
}

/// A range of cells per axis, counted from the start of the window's first tiles.
pub(in crate::bytes) type Region = Vec<Range<u64>>;

impl Window {
    /// Makes the window over `ranges` of coordinates, both ends included; `None` makes a window without
    /// cells, which begins at the low end of the domain.
    ///
    /// # Errors
    /// `Unsupported` if dimensions have no tiles of whole numbers, or if one has 2⁶⁴ coordinates or more.
    pub(in crate::bytes) fn new(
        schema: &ArraySchema,
        ranges: Option<&[(i128, i128)]>,
    ) -> Result<Self> {
        let axes = schema.tile_axes()?;
        let (mut low, mut shape, mut origin) = (vec![], vec![], vec![]);
        for (number, axis) in axes.iter().enumerate() {
            let range = ranges.and_then(|ranges| ranges.get(number).copied());
            let (from, len) = match range {
                Some((from, to)) => (from, axis_len(from, to)?),
                None => (axis.low, 0),
            };
            low.push(from);
            shape.push(len);
            origin.push(before(axis, from)?);
        }
        let extents: Vec<u64> = axes.iter().map(|axis| axis.extent).collect();
        Ok(Self { low, grid: ChunkGrid::with_any_size(&shape, &extents, &origin)? })
    }

    /// Returns the cells of the window's tiles that have coordinates in `ranges`, both ends included.
    /// Cells count from the start of the first tiles.
    pub(in crate::bytes) fn clip(&self, ranges: &[(i128, i128)]) -> Region {
        let cells = |(axis, (range, low)): (usize, (&(i128, i128), &i128))| {
            let first = low - i128::from(self.grid.origin(axis));
            let end = i128::from(self.tiles_end(axis));
            // Coordinates before the first tile become its start, and those after the last tile its end.
            let cell = |at: i128| u64::try_from((at - first).clamp(0, end)).unwrap_or(0);
            cell(range.0)..cell(range.1 + 1)
        };
        ranges.iter().zip(&self.low).enumerate().map(cells).collect()
    }

    /// Returns the end of the last tile of an axis, counted from the start of the first tile.
    fn tiles_end(&self, axis: usize) -> u64 {
        let extent = self.grid.chunk_shape().nth(axis).unwrap_or_default();
        let tiles = self.grid.chunks_per_axis().get(axis).copied().unwrap_or_default();
        tiles.saturating_mul(extent)
    }

    /// Returns the cells of the whole tile of a chunk, counted from the start of the first tiles.
    pub(in crate::bytes) fn tile_region(&self, chunk: &[u64]) -> Region {
        let cells = |(at, extent): (&u64, u64)| {
            let start = at.saturating_mul(extent);
            start..start.saturating_add(extent)
        };
        chunk.iter().zip(self.grid.chunk_shape()).map(cells).collect()
    }

    /// Whether `ranges` of coordinates, both ends included, lie in the window on all axes.
    pub(in crate::bytes) fn holds(&self, ranges: &[(i128, i128)]) -> bool {
        let inside = |((range, first), len): ((&(i128, i128), &i128), &u64)| {
            *first <= range.0 && range.1 < first + i128::from(*len)
        };
        ranges.iter().zip(&self.low).zip(self.grid.shape()).all(inside)
    }

    /// Returns the cells of a chunk, counted from the start of the first tiles.
    pub(in crate::bytes) fn chunk_region(&self, chunk: &[u64]) -> Region {
        let cells = |(axis, at): (usize, &u64)| {
            let (origin, range) = (self.grid.origin(axis), self.grid.axis_range(axis, *at));
            origin.saturating_add(range.start)..origin.saturating_add(range.end)
        };
        chunk.iter().enumerate().map(cells).collect()
    }

    /// Returns the number of a chunk's tile on each axis of the array, counted from the low end of the
    /// domain.
    pub(in crate::bytes) fn tile_of(&self, axes: &[TileAxis], chunk: &[u64]) -> Vec<u64> {
        let tile =
            |((axis, low), at): ((&TileAxis, &i128), &u64)| axis.tile_of(*low).saturating_add(*at);
        axes.iter().zip(&self.low).zip(chunk).map(tile).collect()
    }
}

impl TileDbArray {
    /// Returns the part of a dense array that a table shows. It is the current domain if there is one,
    /// else the whole domain if `full`, else the least box around all fragments.
    ///
    /// # Errors
    /// `Unsupported` for sparse arrays, for orders other than row-major and column-major, and for dimensions of 2⁶⁴
    /// coordinates or more.
    pub fn window(&self, full: bool) -> Result<Window> {
        self.check_dense()?;
        let axes = self.schema.tile_axes()?;
        let ranges = match &self.schema.current_domain {
            Some(ranges) => integers(ranges),
            None if full => Some(axes.iter().map(|axis| (axis.low, axis.high)).collect()),
            None => bounding_box(self.boxes().map(|(_, ranges)| ranges), &axes),
        };
        Window::new(&self.schema, ranges.as_deref())
    }
}

fn axis_len(low: i128, high: i128) -> Result<u64> {
    u64::try_from(high - low + 1)
        .map_err(|_| Error::unsupported(format!("axis {low} to {high}: 2^64 positions or more")))
}

/// Returns how many coordinates of its tile lie before `coordinate`: 1 for 5 if the tile begins at 4.
fn before(axis: &TileAxis, coordinate: i128) -> Result<u64> {
    let tile = axis.tile_of(coordinate);
    u64::try_from(coordinate - axis.first_of(tile))
        .map_err(|_| Error::internal("a coordinate outside its tile"))
}

/// Returns the least box around all regions; without regions, a box without axes.
pub(in crate::bytes) fn hull<'a>(mut regions: impl Iterator<Item = &'a Region>) -> Region {
    let Some(first) = regions.next() else { return vec![] };
    regions.fold(first.clone(), |hull, region| {
        let wider = |(a, b): (&Range<u64>, &Range<u64>)| a.start.min(b.start)..a.end.max(b.end);
        hull.iter().zip(region).map(wider).collect()
    })
}

/// Returns the least box around all `boxes`, clipped to `bounds`; `None` without boxes.
pub(in crate::bytes) fn bounding_box<'a>(
    boxes: impl Iterator<Item = &'a [(i128, i128)]>,
    bounds: &[TileAxis],
) -> Option<Vec<(i128, i128)>> {
    let union = boxes.fold(None, |union: Option<Vec<(i128, i128)>>, ranges| {
        let Some(union) = union else { return Some(ranges.to_vec()) };
        let wider = |(a, b): (&(i128, i128), &(i128, i128))| (a.0.min(b.0), a.1.max(b.1));
        Some(union.iter().zip(ranges).map(wider).collect())
    })?;
    let clip =
        |(range, axis): (&(i128, i128), &TileAxis)| (range.0.max(axis.low), range.1.min(axis.high));
    Some(union.iter().zip(bounds).map(clip).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{SchemaBytes, generic_tile};

    fn schema() -> ArraySchema {
        // Coordinates 1 to 5 and 1 to 7 in tiles of 2 x 3.
        ArraySchema::parse(&generic_tile(&SchemaBytes::dense_2d().content()), None).unwrap()
    }

    #[test]
    fn chunks_are_tiles() {
        let window = Window::new(&schema(), Some(&[(2, 5), (6, 6)])).unwrap();
        assert_eq!(
            (window.grid.shape(), [0, 1].map(|axis| window.grid.origin(axis))),
            (&[4, 1][..], [1, 2])
        );
        assert_eq!(window.grid.chunks_per_axis(), [3, 1]);
        let axes = schema().tile_axes().unwrap();
        assert_eq!(window.tile_of(&axes, &[0, 0]), [0, 1]);
        assert_eq!(window.tile_of(&axes, &[2, 0]), [2, 1]);
        assert_eq!(window.tile_region(&[1, 0]), [2..4, 0..3]);
        assert_eq!(window.chunk_region(&[1, 0]), [2..4, 2..3]);
        assert_eq!(window.chunk_region(&[0, 0]), [1..2, 2..3]);
    }

    #[test]
    fn coordinates_become_cells() {
        let window = Window::new(&schema(), Some(&[(2, 5), (3, 6)])).unwrap();
        // The first tiles begin at row 1 and column 1; the last tiles end with column 6.
        assert_eq!(window.clip(&[(3, 4), (1, 7)]), [2..4, 0..6]);
        assert_eq!(window.clip(&[(1, 1), (6, 6)]), [0..1, 5..6]);
        assert_eq!(window.clip(&[(1, 1), (7, 7)]), [0..1, 6..6]);
        assert!(window.holds(&[(2, 5), (3, 6)]));
        assert!(!window.holds(&[(2, 5), (3, 7)]) && !window.holds(&[(1, 5), (3, 6)]));
    }

    #[test]
    fn nothing_and_everything() {
        let nothing = Window::new(&schema(), None).unwrap();
        assert_eq!((nothing.grid.shape(), nothing.low), (&[0, 0][..], vec![1, 1]));
        assert!(Window::new(&schema(), Some(&[(1, i128::MAX / 2), (1, 1)])).is_err());
    }

    #[test]
    fn the_box_of_several_boxes() {
        let axes = schema().tile_axes().unwrap();
        let boxes = [[(2, 3), (5, 9)], [(1, 1), (6, 6)]];
        let union = bounding_box(boxes.iter().map(|ranges| &ranges[..]), &axes);
        assert_eq!(union, Some(vec![(1, 3), (5, 7)]));
        assert_eq!(bounding_box(std::iter::empty(), &axes), None);
    }
}
