//! [`Pruner`]: applies dynamic filters to the tiles and rows of one partition.
//!
//! A filter of a join or a TopK changes while the query runs. The pruner compares its current expression with
//! rectangles and statistics of tiles. Rows of tiles that are read must satisfy it, too.
//!
//! Tiles are compared 256 at a time. Merged tiles are skipped by the parts over coordinates only.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::conjunction;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicate;

use super::bounds::KnownTiles;
use super::filters::RowFilter;
use super::planning::value_zones;
use crate::array::{SparseArray, TileNumber};
use crate::exec::columns::{columns_of, move_columns};
use crate::exec::pruning::dynamic::snapshot_filter;
use crate::exec::pruning::statistics::on_bounds;

/// The dynamic filters of a scan.
pub(super) struct Pruner {
    array: Arc<SparseArray>,
    /// The rectangles and statistics that planning has read.
    planned: Arc<KnownTiles>,
    /// These, and those that the filters need in addition.
    known: OnceLock<Arc<KnownTiles>>,
    /// Over the columns of the table.
    filters: Vec<PhysicalExprRef>,
    state: Mutex<PrunerState>,
}

#[derive(Default)]
struct PrunerState {
    /// Per filter, a watcher that shows whether it has changed; empty before the first snapshot.
    tracking: Vec<DynamicFilterTracking>,
    current: Option<Snapshot>,
}

/// The expressions of the filters at one moment.
#[derive(Clone, Default)]
struct Snapshot {
    rows: Option<RowFilter>,
    /// Over coordinates alone: may exclude any tile.
    on_coordinates: Option<Arc<PruningPredicate>>,
    /// Over coordinates and variables: may exclude tiles that are not merged.
    on_tiles: Option<Arc<PruningPredicate>>,
}

impl Pruner {
    /// Makes a pruner of `filters` over output columns, which are the columns `projection` of the table.
    pub(super) fn new(
        array: &Arc<SparseArray>,
        known: &Arc<KnownTiles>,
        filters: &[PhysicalExprRef],
        projection: &[usize],
    ) -> Result<Self> {
        let filters = filters.iter().map(|filter| over_table(filter, projection));
        Ok(Self {
            array: Arc::clone(array),
            known: OnceLock::new(),
            planned: Arc::clone(known),
            filters: filters.collect::<Result<_>>()?,
            state: Mutex::default(),
        })
    }

    /// Reads the rectangles and statistics that the filters need, of `tiles` in `fragments`.
    pub(super) async fn prepare(&self, fragments: &[usize], tiles: &[TileNumber]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut known = KnownTiles::clone(&self.planned);
        let columns = self.columns();
        if columns.iter().any(|&column| column < self.array.rank()) {
            let bounds = self.array.source().tile_bounds(fragments).await?;
            for (&fragment, bounds) in fragments.iter().zip(bounds) {
                known.rectangles[fragment] = Some(bounds);
            }
        }
        let is_new = |column: &usize| known.values.iter().all(|it| it.column != *column);
        let columns: Vec<usize> = columns.into_iter().filter(is_new).collect();
        known.values.extend(value_zones(&self.array, &columns, tiles).await);
        let _ = self.known.set(Arc::new(known));
        Ok(())
    }

    fn known(&self) -> &KnownTiles {
        self.known.get().unwrap_or(&self.planned)
    }

    /// Whether there are no filters.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Returns the columns that the filters use.
    fn columns(&self) -> Vec<usize> {
        columns_of(&self.filters)
    }

    /// Returns the filter of rows at this moment; `None` if it keeps all.
    pub(super) fn row_filter(&self) -> Result<Option<RowFilter>> {
        Ok(if self.is_empty() { None } else { self.snapshot()?.rows })
    }

    /// Returns for each tile whether it may hold rows that are needed.
    pub(super) fn may_hold(&self, tiles: &[TileNumber], merged: bool) -> Result<Vec<bool>> {
        if self.is_empty() {
            return Ok(vec![true; tiles.len()]);
        }
        let snapshot = self.snapshot()?;
        let predicate = if merged { snapshot.on_coordinates } else { snapshot.on_tiles };
        Ok(match predicate {
            Some(predicate) => self.known().may_hold(&predicate, &self.array, tiles),
            None => vec![true; tiles.len()],
        })
    }

    /// Returns whether a filter has changed since the last snapshot. If so, the next use takes a new one.
    pub(super) fn has_changed(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changed =
            |it: &mut DynamicFilterTracking| it.watcher().is_some_and(|watcher| watcher.changed());
        // A watcher reports each change once.
        if state.tracking.iter_mut().any(changed) {
            state.current = None;
        }
        !self.is_empty() && state.current.is_none()
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let is_old = self.has_changed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if is_old {
            // First the watchers: a change after them is seen the next time.
            state.tracking = self.filters.iter().map(DynamicFilterTracking::classify).collect();
            state.current = Some(self.take()?);
        }
        Ok(state.current.clone().unwrap_or_default())
    }

    /// Takes the current expressions of the filters.
    fn take(&self) -> Result<Snapshot> {
        let mut all = vec![];
        for filter in &self.filters {
            all.extend(snapshot_filter(filter)?);
        }
        if all.is_empty() {
            return Ok(Snapshot::default());
        }
        let (schema, rank) = (self.array.schema(), self.array.rank());
        let over_coordinates = |filter: &&PhysicalExprRef| {
            columns_of([*filter]).last().is_none_or(|&column| column < rank)
        };
        let conjuncts = all.iter().flat_map(split_conjunction);
        let coordinates: Vec<PhysicalExprRef> =
            conjuncts.filter(over_coordinates).cloned().collect();
        let on_coordinates = (!coordinates.is_empty()).then(|| conjunction(coordinates));
        let all = conjunction(all);
        Ok(Snapshot {
            on_coordinates: on_coordinates.and_then(|it| on_bounds(it, schema)),
            on_tiles: on_bounds(Arc::clone(&all), schema),
            rows: Some(RowFilter::new(all, schema)?),
        })
    }
}

/// Rewrites an expression over output columns as one over the columns of the table.
fn over_table(filter: &PhysicalExprRef, projection: &[usize]) -> Result<PhysicalExprRef> {
    move_columns(filter, &|at| Some(projection.get(at).copied().unwrap_or(usize::MAX)))
}
