//! Rectangles and statistics of tiles, against which predicates are compared.
//!
//! ```text
//!   tile    x         y        value        x < 5 AND value > 7
//!   0       1..4      2..9     3..8         may hold
//!   1       5..9      1..8     1..9         cannot
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use datafusion::error::Result;
use datafusion::physical_optimizer::pruning::PruningPredicate;

use crate::array::{SparseArray, TileBounds, TileNumber};
use crate::exec::pruning::containers::ContainerStatistics;
use crate::format::{ZoneBound, Zones};
use crate::merge;

/// The stored statistics of one variable.
#[derive(Debug, Clone)]
pub(crate) struct ValueZones {
    /// The number of its column in the table.
    pub(crate) column: usize,
    /// Per fragment, the statistics by number of the tile.
    pub(crate) zones: Vec<Option<Arc<dyn Zones>>>,
}

/// The rectangles and statistics of the tiles of an array, as far as they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownTiles {
    /// Per fragment, the rectangles of its tiles; `None` if they were not needed.
    pub(crate) rectangles: Vec<Option<Arc<TileBounds>>>,
    pub(crate) values: Vec<ValueZones>,
}

impl KnownTiles {
    /// Returns the least or greatest coordinates of some tiles on one axis; `None` if they were not read.
    pub(super) fn coordinates(
        &self,
        tiles: &[TileNumber],
        axis: usize,
        least: bool,
    ) -> Result<Option<ArrayRef>> {
        Ok(merge::coordinates(&self.rectangles, tiles, axis, least)?)
    }

    /// Returns for each tile whether `predicate` may hold there. It holds what is not known.
    pub(super) fn may_hold(
        &self,
        predicate: &PruningPredicate,
        array: &SparseArray,
        tiles: &[TileNumber],
    ) -> Vec<bool> {
        let kept = self.containers(array, tiles).and_then(|known| predicate.prune(&known));
        kept.unwrap_or_else(|error| {
            // Pruning is optional: a predicate that fails on bounds may succeed on rows.
            log::debug!("cannot skip tiles by {}: {error}", predicate.orig_expr());
            vec![true; tiles.len()]
        })
    }

    /// Returns what is known of some tiles, for DataFusion's pruning.
    fn containers(&self, array: &SparseArray, tiles: &[TileNumber]) -> Result<ContainerStatistics> {
        let mut known = ContainerStatistics { chunks: tiles.len(), ..Default::default() };
        for axis in 0..array.rank() {
            let ends =
                (self.coordinates(tiles, axis, true)?, self.coordinates(tiles, axis, false)?);
            if let (Some(least), Some(greatest)) = ends {
                add_bounds(&mut known, array, axis, least, greatest);
            }
        }
        if !self.values.is_empty() {
            let fragments = array.source().fragments();
            let cells = tiles.iter().map(|at| fragments[at.fragment].cells_of(at.tile));
            known.cells = Some(Arc::new(cells.map(Some).collect::<UInt64Array>()));
        }
        for of_value in &self.values {
            let zones = tiles.iter().map(|at| of_value.zones[at.fragment].as_ref()?.zone(at.tile));
            let zones: Vec<_> = zones.collect();
            let Some(column) = array.column(of_value.column) else { continue };
            let ends = |end: fn(&(ZoneBound, ZoneBound)) -> ZoneBound| {
                column.bounds(zones.iter().map(|zone| zone.as_ref()?.bounds.as_ref().map(end)))
            };
            let name = array.schema().field(of_value.column).name();
            if let (Ok(least), Ok(greatest)) = (ends(|it| it.0), ends(|it| it.1)) {
                known.bounds.insert(name.clone(), (least, greatest));
                let nulls = zones.iter().map(|zone| zone.as_ref().map(|zone| zone.null_count));
                known.null_counts.insert(name.clone(), nulls.collect());
            }
        }
        Ok(known)
    }
}

/// Returns for each fragment whether `predicate` may hold in its rectangle.
pub(super) fn fragments_may_hold(
    predicate: &PruningPredicate,
    array: &SparseArray,
    bounds: &TileBounds,
) -> Vec<bool> {
    let count = bounds.least.first().map_or(0, |least| least.len());
    let mut known = ContainerStatistics { chunks: count, ..Default::default() };
    for (axis, (least, greatest)) in bounds.least.iter().zip(&bounds.greatest).enumerate() {
        add_bounds(&mut known, array, axis, Arc::clone(least), Arc::clone(greatest));
    }
    predicate.prune(&known).unwrap_or_else(|error| {
        log::debug!("cannot skip fragments by {}: {error}", predicate.orig_expr());
        vec![true; count]
    })
}

/// Adds the coordinates of a dimension, of which none is NULL.
fn add_bounds(
    known: &mut ContainerStatistics,
    array: &SparseArray,
    axis: usize,
    least: ArrayRef,
    greatest: ArrayRef,
) {
    let name = array.schema().field(axis).name();
    let no_nulls = UInt64Array::from(vec![0; least.len()]);
    known.null_counts.insert(name.clone(), no_nulls);
    known.bounds.insert(name.clone(), (least, greatest));
}
