//! Sums of products of cells and rows, as a sparse matrix that is applied to each chunk of a partition.
//!
//! ```text
//!   chunks over time, lat, lon          column of chunks: lat, lon       matrix  groups × cells with a match
//!   ┌───┬───┐ ┌───┬───┐                 ┌───┬───┐
//!   │   │ x │ │   │ x │ …               │   │ x │ ◀── once               per chunk: cells at 8 times ─▶ sums
//!   └───┴───┘ └───┴───┘                 └───┴───┘
//! ```
//!
//! The axes of the join decide the matches of a cell, so chunks with the same place along these axes share a matrix.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::compute::cast;
use datafusion::common::{internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::cell_terms::{Positions, TermReaders, TermValues, of_chunk};
use super::cell_tiles::{
    CellTile, ChunkColumn, Offsets, TileMatrix, bytes_of_matrix, over_axes, stride,
};
use super::join_part::{Aggregated, JoinPart};
use super::products::ProductPlan;
use crate::exec::blocks::columns;
use crate::exec::config::GridfusionConfig;
use crate::exec::metrics::ScanMetrics;
use crate::exec::reduce::Call;
use crate::exec::yield_budget::YieldBudget;
use crate::grid::{AxisSelection, ChunkTask};
use crate::plan::{Assembler, RowBlocks};
use crate::reduce::{
    CellLanes, GroupStats, LANES, RequestedStats, SparseBlocks, SparseRowsBuilder, SparseSums,
    WeightedStates,
};

/// Whether a matrix is worth the time to make it: it is small, or it is applied at many positions and fits into the memory for
/// groups.
pub(super) fn is_worthwhile(
    part: &JoinPart<'_>,
    plan: &ProductPlan,
    context: &TaskContext,
) -> bool {
    /// The positions from which on a matrix is faster than single pairs.
    const POSITIONS: u64 = 2 * LANES as u64;
    /// So many pairs take no time either way.
    const FEW_PAIRS: u64 = 1 << 16;
    let joined = joined(part);
    let positions = |selection: &[AxisSelection]| {
        let others = (0..selection.len()).filter(|axis| !joined.contains(axis));
        others.map(|axis| selection[axis].count()).fold(1, u64::saturating_mul)
    };
    let all = positions(part.reduction.lookup.scan.plan().selection().axes());
    let entries = (part.built.pairs / all.max(1)) as usize;
    let bytes = bytes_of_matrix(entries).saturating_mul(plan.rows.len());
    let config = GridfusionConfig::from_options(context.session_config().options());
    part.built.pairs <= FEW_PAIRS
        || positions(part.selection()) >= POSITIONS && bytes <= config.optimizer.reduce_memory
}

/// The axes of the join.
fn joined(part: &JoinPart<'_>) -> Vec<usize> {
    part.reduction.lookup.keys.iter().map(|keys| keys.axis).collect()
}

/// Aggregates a partition. `weights` has per row term the weight of each row, and NaN for rows that do not count.
pub(super) async fn aggregate(
    part: &JoinPart<'_>,
    plan: &ProductPlan,
    weights: &[Vec<f64>],
    metrics: &ScanMetrics,
    context: &Arc<TaskContext>,
) -> Result<Aggregated> {
    let array = part.reduction.lookup.scan.array();
    let has_keys = !part.reduction.keys.is_empty();
    let places = if has_keys { part.places() } else { 1 };
    part.reservation.try_grow(places * size_of::<usize>())?;
    let states = |product: usize| {
        let requested = plan.requested[product];
        let sums = match requested.sum || is_weighted(plan, product) {
            true => SparseSums::new(places),
            false => SparseSums::counts(places),
        };
        sums.with(requested)
    };
    let mut sums: Vec<SparseSums> = (0..plan.products.len()).map(states).collect();
    let mut readers = TermReaders::new(part, plan);
    let mut matrices = Matrices::new(part, places, readers.in_place(plan));
    let needs_columns = readers.need_columns(plan);
    let mut assembler = Assembler::new(array);
    let (mut reader, mut yields) = (part.reader(context), YieldBudget::default());
    while let Some(open) = reader.next(metrics).await? {
        let timer = metrics.baseline.elapsed_compute().timer();
        let task = &open.task;
        let Some(block) = RowBlocks::new(task, u64::MAX).next() else {
            reader.release(open)?;
            continue;
        };
        let column = matrices.of_chunk(weights, task).await?;
        let rows = block.rows() as usize;
        let columns_of_chunk =
            if needs_columns { part.sources.len() + plan.cells.len() } else { 0 };
        part.reservation.try_grow(bytes_of_chunk(part, plan, column, task, columns_of_chunk))?;
        let values = match needs_columns {
            true => columns(array, &mut assembler, &part.sources, &open, &block)?,
            false => vec![],
        };
        let positions = Offsets::of(&others(&joined(part), task), task);
        let is_dense = 4 * column.cells * positions.selected.len() >= rows;
        let terms = of_chunk(part, plan, &mut readers, &open, &values, is_dense)?;
        timer.done();
        let chunk = Chunk { part, plan, column, task, positions, terms };
        chunk.add(&mut sums, metrics, &mut yields).await?;
        drop(chunk);
        yields.spend(open.task.cells()).await;
        reader.release(open)?;
        part.reservation.resize(matrices.held);
    }
    finish(part, plan, sums)
}

/// Returns the bytes that the cells of a chunk take while they are added, with so many columns of all selected cells.
fn bytes_of_chunk(
    part: &JoinPart<'_>,
    plan: &ProductPlan,
    column: &ChunkColumn,
    task: &ChunkTask,
    columns: usize,
) -> usize {
    // A column of values may be a copy, and so is an evaluated term.
    let of_rows = (task.rows as usize).saturating_mul((size_of::<f64>() + 1) * columns);
    let cells = column.tiles.iter().map(|tile| tile.selected.len()).max().unwrap_or_default();
    let per_cell = plan.cells.len() * CellLanes::BYTES + TermValues::bytes_per_cell(part);
    // Two offsets and a place per position.
    let others = others(&joined(part), task);
    let positions = others.iter().map(|axis| task.selection[*axis].count() as usize);
    let of_positions = 3 * size_of::<usize>() * positions.product::<usize>();
    of_rows.saturating_add(cells * per_cell + of_positions + SparseBlocks::SUMS_BYTES)
}

/// The matrices of a partition's columns of chunks.
struct Matrices<'a> {
    part: &'a JoinPart<'a>,
    builder: SparseRowsBuilder,
    /// Per row term whether its matrix may be applied to the elements of chunks.
    in_place: Vec<bool>,
    /// By the places of the chunks along the axes of the join, and the strides of these.
    known: HashMap<Vec<u64>, ChunkColumn>,
    /// Whether chunks share a matrix, because they differ only along other axes than those of the join.
    are_shared: bool,
    /// The memory that is reserved for the partition without matrices, and with those that are known.
    base: usize,
    held: usize,
}

impl<'a> Matrices<'a> {
    fn new(part: &'a JoinPart<'a>, places: usize, in_place: Vec<bool>) -> Self {
        let chunks = part.reduction.lookup.scan.array().grid().chunks_per_axis();
        let joined = joined(part);
        let base = part.reservation.size();
        Self {
            part,
            builder: SparseRowsBuilder::new(places),
            in_place,
            known: HashMap::new(),
            are_shared: (0..chunks.len()).any(|axis| chunks[axis] > 1 && !joined.contains(&axis)),
            base,
            held: base,
        }
    }

    /// Returns the matrices of a chunk, which are made at the first chunk of its column.
    async fn of_chunk(&mut self, weights: &[Vec<f64>], task: &ChunkTask) -> Result<&ChunkColumn> {
        let joined = joined(self.part);
        let key = key(&joined, task);
        if !self.known.contains_key(&key) {
            if !self.are_shared {
                self.known.clear();
                self.held = self.base;
                self.part.reservation.resize(self.held);
            }
            let terms = (weights, self.in_place.as_slice());
            let made = ChunkColumn::try_new(self.part, &joined, terms, task, &mut self.builder);
            let made = made.await?;
            self.held += made.bytes;
            self.part.matrices.add(1);
            self.known.insert(key.clone(), made);
        }
        self.known.get(&key).ok_or_else(|| internal_datafusion_err!("no column of chunks"))
    }
}

/// Returns a key of the chunks that have the same cells along the axes of the join. Chunks at the end of other axes are shorter, so
/// offsets differ.
fn key(joined: &[usize], task: &ChunkTask) -> Vec<u64> {
    let coordinates = joined.iter().map(|axis| task.coordinates[*axis]);
    let strides = joined.iter().flat_map(|axis| {
        [stride(task, *axis, AxisSelection::count), stride(task, *axis, AxisSelection::len)]
    });
    coordinates.chain(strides.map(|it| it as u64)).collect()
}

fn others(joined: &[usize], task: &ChunkTask) -> Vec<usize> {
    (0..task.selection.len()).filter(|axis| !joined.contains(axis)).collect()
}

/// A chunk, with the matrix of its cells.
struct Chunk<'a> {
    part: &'a JoinPart<'a>,
    plan: &'a ProductPlan,
    column: &'a ChunkColumn,
    task: &'a ChunkTask,
    /// The positions along the axes that are not joined.
    positions: Offsets,
    terms: Vec<TermValues<'a>>,
}

impl Chunk<'_> {
    /// Adds the cells to the sums.
    async fn add(
        &self,
        sums: &mut [SparseSums],
        metrics: &ScanMetrics,
        yields: &mut YieldBudget,
    ) -> Result<()> {
        let grid = self.part.reduction.lookup.scan.array().grid();
        let others = others(&joined(self.part), self.task);
        let places = over_axes(&others, |axis| self.part.table.parts_of(axis, grid, self.task));
        let mut lanes = vec![CellLanes::default(); self.terms.len()];
        for tile in &self.column.tiles {
            let entries = tile.matrices.iter().map(TileMatrix::len).sum::<usize>() as u64;
            for (at, places) in places.chunks(LANES).enumerate() {
                let timer = metrics.baseline.elapsed_compute().timer();
                let at = at * LANES..at * LANES + places.len();
                let positions = Positions {
                    selected: &self.positions.selected[at.clone()],
                    stored: &self.positions.stored[at],
                };
                self.add_tile(tile, &positions, places, &mut lanes, sums)?;
                timer.done();
                yields.spend(entries * places.len() as u64).await;
            }
        }
        Ok(())
    }

    /// Adds the cells of a tile at some positions, whose parts of places are `places`.
    fn add_tile(
        &self,
        tile: &CellTile,
        positions: &Positions<'_>,
        places: &[usize],
        lanes: &mut [CellLanes],
        sums: &mut [SparseSums],
    ) -> Result<()> {
        for (cell, (term, lanes)) in self.terms.iter().zip(&mut *lanes).enumerate() {
            let mut products = self.plan.products.iter().filter(|product| product.0 == cell);
            if products.any(|(_, row)| matches!(tile.matrices[*row], TileMatrix::Gathered(_))) {
                term.fill(self.part, tile, positions, lanes)?;
            }
        }
        for ((cell, row), sums) in self.plan.products.iter().zip(sums) {
            match (&self.terms[*cell], &tile.matrices[*row]) {
                (TermValues::Ones, TileMatrix::Gathered(rows)) => rows.add_ones(places, sums),
                (TermValues::Ones, TileMatrix::InPlace(blocks)) => blocks.add_ones(places, sums),
                (_, TileMatrix::Gathered(rows)) => rows.add(&lanes[*cell], places, sums),
                (TermValues::Tile(cells), TileMatrix::InPlace(blocks)) => {
                    cells.add_blocks(blocks, positions.stored, places, sums)?;
                }
                (_, TileMatrix::InPlace(_)) => return internal_err!("blocks of computed values"),
            }
        }
        Ok(())
    }
}

/// Returns the columns of the aggregates of the groups that have pairs.
fn finish(
    part: &JoinPart<'_>,
    plan: &ProductPlan,
    mut sums: Vec<SparseSums>,
) -> Result<Aggregated> {
    let has_keys = !part.reduction.keys.is_empty();
    let is_used = plan.calls.iter().any(|(_, product)| *product == 0);
    let pairs = if is_used { sums[0].counts.clone() } else { std::mem::take(&mut sums[0].counts) };
    let places: Vec<usize> =
        (0..pairs.len()).filter(|place| !has_keys || pairs[*place] > 0).collect();
    let pairs = kept(pairs, &places);
    let stats = |(product, sums): (usize, SparseSums)| match product > 0 || is_used {
        true => stats(sums, &places, plan.requested[product], is_weighted(plan, product)),
        false => GroupStats::default(),
    };
    let mut stats: Vec<GroupStats> = sums.into_iter().enumerate().map(stats).collect();
    let mut columns = vec![];
    for (call, product) in &plan.calls {
        let stats = &mut stats[*product];
        let of_call = match part.reduction.whole {
            true => vec![call.value(stats, &pairs, false)?],
            false => call.state(stats, &pairs)?,
        };
        for column in of_call {
            // Extremes have the type of their values.
            let field = part.reduction.schema.field(part.reduction.keys.len() + columns.len());
            columns.push(cast(&column, field.data_type())?);
        }
    }
    Ok((columns, places))
}

/// Whether the weights of a product are added, too.
fn is_weighted(plan: &ProductPlan, product: usize) -> bool {
    plan.calls.contains(&(Call::WeightedAverage, product))
}

/// Returns the statistics of a product of the groups at these places.
fn stats(
    of_product: SparseSums,
    places: &[usize],
    requested: RequestedStats,
    is_weighted: bool,
) -> GroupStats {
    let extremes = |is_requested: bool, numbers: Vec<f64>| -> Option<ArrayRef> {
        is_requested.then(|| Arc::new(Float64Array::from(kept(numbers, places))) as _)
    };
    let mut sums = kept(of_product.sums, places);
    let weighted = is_weighted.then(|| WeightedStates {
        sums: if requested.sum { sums.clone() } else { std::mem::take(&mut sums) },
        weights: kept(of_product.weights, places),
    });
    GroupStats {
        counts: kept(of_product.counts, places),
        sums: requested.sum.then_some(sums),
        mins: extremes(requested.min, of_product.mins),
        maxs: extremes(requested.max, of_product.maxs),
        spreads: requested.spread.then(|| kept(of_product.spreads, places)),
        weighted,
        ..GroupStats::default()
    }
}

/// Returns the elements at ascending places; none if there are no elements.
fn kept<T: Copy>(elements: Vec<T>, places: &[usize]) -> Vec<T> {
    match elements.is_empty() || places.len() == elements.len() {
        true => elements,
        false => places.iter().map(|place| elements[*place]).collect(),
    }
}
