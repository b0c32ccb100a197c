//! The checks of the decoded coordinates and times of a sparse fragment, tile by tile.

use std::sync::Arc;

use super::ends::{CellEnds, Ends, domain};
use super::names::{CELL_TIMES, COORDINATES, RTREE};
use super::neighbours::Neighbours;
use super::times::check_times;
use crate::bytes::{DimensionDomain, Fragment, RTree, TileDbArray};
use crate::sparse::GlobalOrder;
use gridfusion_core::Result;
use gridfusion_core::tile::Tile;
use gridfusion_core::verify::{Finding, Findings};

/// A sparse fragment, and what its cells are compared with.
#[derive(Debug)]
pub(in crate::verify) struct FragmentCells {
    array: Arc<TileDbArray>,
    /// The number of the fragment in the array.
    number: usize,
    /// The rectangle of each tile; `None` if the R-tree cannot be read.
    rectangles: Option<RTree>,
    /// The domain of the array, as one rectangle.
    domain: RTree,
    neighbours: Neighbours,
}

impl FragmentCells {
    /// Prepares the checks of fragment number `number`.
    pub(in crate::verify) fn new(
        array: &Arc<TileDbArray>,
        number: usize,
        rectangles: Option<RTree>,
    ) -> Self {
        let fragment = &array.fragments()[number];
        let schema = fragment.schema();
        // Consolidation with times keeps older cells of the same coordinates.
        let may_repeat = schema.allows_duplicates || fragment.time_field().is_some();
        Self {
            array: Arc::clone(array),
            number,
            rectangles,
            domain: domain(schema),
            neighbours: Neighbours::new(GlobalOrder::new(schema), may_repeat),
        }
    }

    /// The fragment.
    pub(super) fn fragment(&self) -> &Fragment {
        &self.array.fragments()[self.number]
    }

    /// Checks the cells of tile number `place`. `tiles` has the decoded coordinates and times, by their place
    /// in [`Fragment::coordinate_fields`]; `None` for a tile that could not be decoded.
    pub(super) fn check(&self, place: u64, mut tiles: Vec<Option<Tile>>) -> Result<Findings> {
        let fragment = self.fragment();
        let first = fragment.dimension_field(0);
        let tile = |field: Option<usize>| tiles.get(field?.checked_sub(first)?)?.as_ref();
        let (written, deleted) = (tile(fragment.time_field()), tile(fragment.delete_time_field()));
        let times = check_times(fragment, written, deleted).into_iter();
        let mut findings = Findings::with(CELL_TIMES, times.map(|it| it.of_chunk(&[place])));
        tiles.truncate(fragment.schema().dimensions.len());
        let mut is_ordered = true;
        for (axis, tile) in tiles.iter().enumerate() {
            if let Some(tile) = tile {
                is_ordered &= self.check_axis(place, axis, tile, &mut findings)?;
            }
        }
        if let Some(coordinates) = tiles.into_iter().collect::<Option<Vec<Tile>>>() {
            findings.cells.extend(self.neighbours.check(place, coordinates, is_ordered)?);
        }
        for (_, finding) in &mut findings.cells {
            finding.file = Some(fragment.name.clone());
        }
        Ok(findings)
    }

    /// Checks the coordinates of a tile on one axis. Returns whether their order can be checked.
    fn check_axis(
        &self,
        place: u64,
        axis: usize,
        tile: &Tile,
        findings: &mut Findings,
    ) -> Result<bool> {
        let dimension = &self.fragment().schema().dimensions[axis];
        let CellEnds { ends, has_nan, is_ascii } = CellEnds::try_new(dimension, tile)?;
        let Some(ends) = ends else { return Ok(false) };
        let mut report = |check: &'static str, message: String| {
            let finding = Finding::failure(message).in_dataset(&dimension.name);
            findings.extend(check, [finding.of_chunk(&[place])]);
        };
        let stored = |rectangles: &RTree, place: u64| {
            Ends::stored(dimension, rectangles, axis, usize::try_from(place).ok()?)
        };
        let rectangle = self.rectangles.as_ref().and_then(|all| stored(all, place));
        if let Some(rectangle) = rectangle.filter(|rectangle| !has_nan && !rectangle.is_same(&ends))
        {
            report(RTREE, format!("the R-tree has {rectangle}, the tile has {ends}"));
        }
        let domain = stored(&self.domain, 0).filter(|_| dimension.domain != DimensionDomain::Text);
        if let Some(domain) = domain.filter(|domain| !ends.is_within(domain)) {
            report(COORDINATES, format!("the tile has {ends}, the domain has {domain}"));
            // Cells outside the domain have no place in the global order.
            return Ok(false);
        }
        Ok(!has_nan && is_ascii)
    }
}
