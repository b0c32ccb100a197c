//! Chooses the tiles that a query over a sparse array reads.
//!
//! ```text
//!   all fragments ─ domains ─▶ fragments ─ rectangles ─▶ tiles ─ overlap ─▶ tiles to merge, other tiles
//!                                                                              statistics ─▶ fewer of these
//! ```
//!
//! Rectangles are read only if a filter, or the removal of duplicates, needs them.
//!
//! 1. The filters are divided into those over dimensions alone and all others. The scan evaluates both, so no filter
//!    operator remains.
//! 2. Fragments whose domains lie outside are dropped. The domains are in the footers, which are open already.
//! 3. The R-trees of the others are read, and tiles whose rectangles lie outside are dropped. Tiles that lie inside
//!    completely need no test of coordinates. Without filters on dimensions, only R-trees of fragments that overlap
//!    others are read.
//! 4. Tiles that may share coordinates are grouped (`overlap`).
//! 5. Tiles that are in no group are dropped by statistics.
//! 6. Groups and other tiles are divided into partitions (`split`).
//!
//! Only the last level of an R-tree is used. Comparing all rectangles with a predicate is one vectorised pass, which
//! takes any predicate that DataFusion's `PruningPredicate` takes. Walking the levels would only work for boxes.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExprRef;

use super::bounds::{KnownTiles, ValueZones, fragments_may_hold};
use super::filters::{RowFilter, SparseFilters};
use super::plan::{SparsePlan, TileCounts, TileTask};
use super::split::split;
use crate::array::{SparseArray, TileNumber};
use crate::exec::pruning::statistics::on_bounds;
use crate::merge::{Overlaps, overlapping_fragments, overlaps};

/// Plans which tiles of `array` a scan with these filters reads.
///
/// # Errors
/// If rectangles cannot be read, or a filter cannot be evaluated on rows of the array.
pub(crate) async fn plan(
    array: &Arc<SparseArray>,
    filters: &[Expr],
    limit: Option<usize>,
    session: &dyn Session,
) -> Result<SparsePlan> {
    let filters = SparseFilters::new(filters, array, session)?;
    let mut planning = Planning::new(array, filters);
    let fragments = planning.fragments()?;
    let mut tasks = planning.tiles(&fragments).await?;
    let numbers: Vec<TileNumber> = tasks.iter().map(|task| task.tile).collect();
    let overlaps = overlaps(array, &planning.known.rectangles, &numbers)?;
    planning.counts.merged = overlaps.merged.iter().filter(|merged| **merged).count() as u64;
    planning.drop_by_statistics(&mut tasks, &overlaps).await?;

    let fragments = array.source().fragments();
    let all: Vec<TileTask> = tasks.iter().filter(|task| task.is_read).map(|it| it.task()).collect();
    let cells = all.iter().map(|task| fragments[task.tile.fragment].cells_of(task.tile.tile));
    let cells = cells.fold(0, u64::saturating_add);
    let hides = |task: &TileTask| {
        let fragment = &fragments[task.tile.fragment];
        fragment.may_be_deleted || fragment.may_be_outside || !task.is_inside
    };
    let is_exact =
        planning.counts.merged == 0 && planning.filters.values.is_none() && !all.iter().any(hides);
    planning.counts.fragments_read =
        all.chunk_by(|a, b| a.tile.fragment == b.tile.fragment).count() as u64;

    let groups = overlaps
        .groups
        .iter()
        .map(|group| group.iter().map(|&at| tasks[at].task()).collect::<Vec<TileTask>>());
    let groups: Vec<Vec<TileTask>> = groups.collect();
    let alone =
        tasks.iter().zip(&overlaps.merged).filter(|(task, merged)| task.is_read && !**merged);
    let alone: Vec<TileTask> = alone.map(|(task, _)| task.task()).collect();
    let partitions = session.config().target_partitions();
    let partitions = split(array, &planning.known, groups, &alone, partitions)?;
    let Planning { filters, known, counts, .. } = planning;
    Ok(SparsePlan { partitions, filters, known: Arc::new(known), counts, cells, is_exact, limit })
}

/// The state of planning.
struct Planning<'a> {
    array: &'a Arc<SparseArray>,
    filters: SparseFilters,
    known: KnownTiles,
    counts: TileCounts,
}

/// A tile that planning has not excluded by its coordinates.
struct Candidate {
    tile: TileNumber,
    is_inside: bool,
    /// Whether statistics leave it in.
    is_read: bool,
}

impl Candidate {
    fn task(&self) -> TileTask {
        TileTask { tile: self.tile, is_inside: self.is_inside, is_cut: false }
    }
}

impl<'a> Planning<'a> {
    fn new(array: &'a Arc<SparseArray>, filters: SparseFilters) -> Self {
        let fragments = array.source().fragments();
        let tiles = fragments.iter().map(|it| it.tiles).fold(0, u64::saturating_add);
        let counts =
            TileCounts { fragments: fragments.len() as u64, tiles, ..TileCounts::default() };
        let known = KnownTiles { rectangles: vec![None; fragments.len()], values: vec![] };
        Self { array, filters, known, counts }
    }

    /// Returns the filter over dimensions.
    fn predicate(&self) -> Option<PhysicalExprRef> {
        self.filters.dimensions.as_ref().map(|filter| Arc::clone(&filter.predicate))
    }

    /// Returns the fragments that may hold selected coordinates.
    fn fragments(&mut self) -> Result<Vec<usize>> {
        let source = self.array.source();
        let mut all: Vec<usize> = (0..source.fragments().len()).collect();
        all.retain(|&at| source.fragments()[at].tiles > 0);
        let predicate = self.predicate().and_then(|it| on_bounds(it, self.array.schema()));
        let Some(predicate) = predicate else { return Ok(all) };
        let kept = fragments_may_hold(&predicate, self.array, &source.fragment_bounds(&all)?);
        let (mut left, mut outside) = (vec![], 0);
        for (at, kept) in all.into_iter().zip(kept) {
            match kept {
                true => left.push(at),
                false => outside += source.fragments()[at].tiles,
            }
        }
        self.counts.outside_domain = outside;
        Ok(left)
    }

    /// Returns the tiles that may hold selected coordinates.
    async fn tiles(&mut self, fragments: &[usize]) -> Result<Vec<Candidate>> {
        let source = self.array.source();
        let facts = source.fragments();
        let all = fragments.iter().flat_map(|&fragment| {
            (0..facts[fragment].tiles).map(move |tile| TileNumber { fragment, tile })
        });
        let mut tiles: Vec<TileNumber> = all.collect();
        let uses_dimensions = |filter: &RowFilter| {
            filter.columns.first().is_some_and(|&column| column < self.array.rank())
        };
        let filters = [&self.filters.dimensions, &self.filters.values];
        let needed = match filters.into_iter().flatten().any(uses_dimensions) {
            true => fragments.to_vec(),
            false => overlapping_fragments(self.array, fragments)?,
        };
        let bounds = source.tile_bounds(&needed).await?;
        for (&fragment, bounds) in needed.iter().zip(bounds) {
            self.known.rectangles[fragment] = Some(bounds);
        }
        let Some(predicate) = self.predicate() else {
            let inside = |tile| Candidate { tile, is_inside: true, is_read: true };
            return Ok(tiles.into_iter().map(inside).collect());
        };
        if let Some(predicate) = on_bounds(predicate, self.array.schema()) {
            let kept = self.known.may_hold(&predicate, self.array, &tiles);
            self.counts.outside_rectangle = kept.iter().filter(|kept| !**kept).count() as u64;
            let mut kept = kept.into_iter();
            tiles.retain(|_| kept.next().unwrap_or(true));
        }
        let inside = self.inside(&tiles);
        let candidate = |(tile, is_inside)| Candidate { tile, is_inside, is_read: true };
        Ok(tiles.into_iter().zip(inside).map(candidate).collect())
    }

    /// Returns for each tile whether the filters over dimensions are true for all of its cells.
    fn inside(&self, tiles: &[TileNumber]) -> Vec<bool> {
        let mut inside = vec![true; tiles.len()];
        for negated in &self.filters.negated {
            let may_fail = match on_bounds(Arc::clone(negated), self.array.schema()) {
                Some(negated) => self.known.may_hold(&negated, self.array, tiles),
                None => vec![true; tiles.len()],
            };
            for (inside, may_fail) in inside.iter_mut().zip(may_fail) {
                *inside &= !may_fail;
            }
        }
        inside
    }

    /// Drops tiles whose statistics exclude the filters over variables. Tiles that are merged stay: without
    /// one, an older cell could come back.
    async fn drop_by_statistics(
        &mut self,
        tiles: &mut [Candidate],
        overlaps: &Overlaps,
    ) -> Result<()> {
        let Some(filter) = &self.filters.values else { return Ok(()) };
        let predicate = on_bounds(Arc::clone(&filter.predicate), self.array.schema());
        let Some(predicate) = predicate else { return Ok(()) };
        let alone: Vec<usize> = (0..tiles.len()).filter(|&at| !overlaps.merged[at]).collect();
        let numbers: Vec<TileNumber> = alone.iter().map(|&at| tiles[at].tile).collect();
        let columns = filter.columns.clone();
        self.known.values = value_zones(self.array, &columns, &numbers).await;
        let kept = self.known.may_hold(&predicate, self.array, &numbers);
        for (at, kept) in alone.into_iter().zip(kept) {
            tiles[at].is_read = kept;
            self.counts.outside_statistics += u64::from(!kept);
        }
        Ok(())
    }
}

/// Reads the statistics of those of `columns` that are variables, in the fragments of `tiles`.
pub(super) async fn value_zones(
    array: &SparseArray,
    columns: &[usize],
    tiles: &[TileNumber],
) -> Vec<ValueZones> {
    let source = array.source();
    let facts = source.fragments();
    let runs = tiles.chunk_by(|a, b| a.fragment == b.fragment);
    let fragments: Vec<usize> = runs.map(|run| run[0].fragment).collect();
    let cells = tiles.iter().map(|at| facts[at.fragment].cells_of(at.tile));
    let bytes = cells.fold(0, u64::saturating_add).saturating_mul(array.cell_bytes(columns));
    let mut known = vec![];
    for &column in columns {
        let Some(value) = column.checked_sub(array.rank()) else { continue };
        let is_as_stored = array.column(column).is_some_and(|column| column.is_as_stored());
        if !is_as_stored {
            continue;
        }
        let Some(read) = source.zones(value, &fragments, bytes).await else { continue };
        let mut zones = vec![None; facts.len()];
        for (&fragment, read) in fragments.iter().zip(read) {
            zones[fragment] = read;
        }
        known.push(ValueZones { column, zones });
    }
    known
}
