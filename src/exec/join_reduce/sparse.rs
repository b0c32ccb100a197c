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

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn};

use super::join_part::{Aggregated, JoinPart};
use super::products::{CellTerm, ProductPlan};
use crate::exec::blocks::columns;
use crate::exec::chunks::OpenChunk;
use crate::exec::columns::over_columns;
use crate::exec::lookup::NONE;
use crate::exec::metrics::ScanMetrics;
use crate::exec::yield_budget::YieldBudget;
use crate::grid::ChunkTask;
use crate::plan::{Assembler, RowBlocks};
use crate::reduce::{
    CellLanes, GroupStats, LANES, SparseEntry, SparseRows, SparseSums, WeightedStates,
};

/// The matches of the cells of a column of chunks.
struct ChunkColumn {
    /// The offset of each cell with a match, among the selected cells of a chunk.
    cells: Vec<usize>,
    /// The matrix of each row term.
    rows: Vec<SparseRows>,
}

impl ChunkColumn {
    fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(SparseRows::bytes).sum::<usize>();
        self.cells.len() * size_of::<usize>() + rows
    }
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
    let joined: Vec<usize> = part.reduction.lookup.keys.iter().map(|keys| keys.axis).collect();
    let has_keys = !part.reduction.keys.is_empty();
    let places = if has_keys { part.places() } else { 1 };
    let states = |(min, max): &(bool, bool)| SparseSums::new(places).with_extremes(*min, *max);
    let mut sums: Vec<SparseSums> = plan.extremes.iter().map(states).collect();
    let mut assembler = Assembler::new(array);
    let mut reader = part.reader(context);
    // By the places of the chunks along the axes of the join, and the strides of these.
    let mut known: HashMap<Vec<u64>, ChunkColumn> = HashMap::new();
    // Chunks share a matrix if they differ only along other axes than those of the join.
    let chunks = array.grid().chunks_per_axis();
    let is_shared = (0..chunks.len()).any(|axis| chunks[axis] > 1 && !joined.contains(&axis));
    let (base, mut yields) = (part.reservation.size(), YieldBudget::default());
    let mut held = base;
    while let Some(open) = reader.next(metrics).await? {
        let timer = metrics.baseline.elapsed_compute().timer();
        let Some(block) = RowBlocks::new(&open.task, u64::MAX).next() else {
            reader.release(open)?;
            continue;
        };
        // A column of values may be a copy.
        let bytes = (block.rows() as usize).saturating_mul(9 * part.sources.len());
        part.reservation.try_resize(held.saturating_add(bytes))?;
        let values = columns(array, &mut assembler, &part.sources, &open, &block)?;
        // Chunks at the end of other axes are shorter, so offsets differ.
        let strides = joined.iter().map(|axis| stride(&open.task, *axis) as u64);
        let column = joined.iter().map(|axis| open.task.coordinates[*axis]).chain(strides);
        let column: Vec<u64> = column.collect();
        if !known.contains_key(&column) {
            if !is_shared {
                known.clear();
                held = base;
            }
            let made = chunk_column(part, &joined, weights, &open.task);
            held += made.bytes();
            part.reservation.try_resize(held.saturating_add(bytes))?;
            known.insert(column.clone(), made);
        }
        let Some(column) = known.get(&column) else { return internal_err!("no column of chunks") };
        timer.done();
        add_chunk(part, plan, column, &joined, &open, &values, &mut sums, (metrics, &mut yields))
            .await?;
        drop(values);
        yields.spend(open.task.cells()).await;
        reader.release(open)?;
    }
    part.reservation.resize(held);
    finish(part, plan, &sums)
}

/// Returns the sums of the numbers that each of some axes gives to its selected positions, in row-major order.
fn over_axes(axes: &[usize], numbers: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut all = vec![0];
    for axis in axes {
        let inner = numbers(*axis);
        all = all.iter().flat_map(|outer| inner.iter().map(move |it| outer + it)).collect();
    }
    all
}

/// Returns the distance of neighbours along an axis, among the selected cells of a chunk.
fn stride(task: &ChunkTask, axis: usize) -> usize {
    task.selection[axis + 1..].iter().map(|axis| axis.count() as usize).product()
}

/// Returns the offsets of the selected positions of an axis, among the selected cells of a chunk.
fn offsets(task: &ChunkTask, axis: usize) -> Vec<usize> {
    let stride = stride(task, axis);
    (0..task.selection[axis].count() as usize).map(|at| at * stride).collect()
}

/// Finds the matches of the cells of a column of chunks.
fn chunk_column(
    part: &JoinPart<'_>,
    joined: &[usize],
    weights: &[Vec<f64>],
    task: &ChunkTask,
) -> ChunkColumn {
    let grid = part.reduction.lookup.scan.array().grid();
    let offsets = over_axes(joined, |axis| offsets(task, axis));
    let matched = over_axes(joined, |axis| part.matches.table.parts_of(axis, grid, task));
    let keyed = over_axes(joined, |axis| part.table.parts_of(axis, grid, task));
    let firsts = part.matches.firsts(&matched);
    let (mut cells, mut entries) = (vec![], vec![vec![]; weights.len()]);
    for ((offset, keyed), first) in offsets.into_iter().zip(keyed).zip(firsts) {
        if first == NONE {
            continue;
        }
        let cell = cells.len() as u32;
        cells.push(offset);
        let mut row = first;
        while row != NONE {
            let place = part.place_of(row) + keyed;
            for (weights, entries) in weights.iter().zip(&mut entries) {
                let weight = weights[row as usize];
                if !weight.is_nan() {
                    entries.push(SparseEntry { place, cell, weight });
                }
            }
            row = part.matches.next(row);
        }
    }
    ChunkColumn { cells, rows: entries.into_iter().map(SparseRows::new).collect() }
}

/// Adds the cells of a chunk.
#[expect(clippy::too_many_arguments, reason = "the chunk, its matrix, and the states")]
async fn add_chunk(
    part: &JoinPart<'_>,
    plan: &ProductPlan,
    column: &ChunkColumn,
    joined: &[usize],
    open: &OpenChunk,
    values: &[ArrayRef],
    sums: &mut [SparseSums],
    (metrics, yields): (&ScanMetrics, &mut YieldBudget),
) -> Result<()> {
    if column.cells.is_empty() {
        return Ok(());
    }
    let task = &open.task;
    let grid = part.reduction.lookup.scan.array().grid();
    let others: Vec<usize> =
        (0..task.selection.len()).filter(|axis| !joined.contains(axis)).collect();
    let positions = over_axes(&others, |axis| offsets(task, axis));
    let places = over_axes(&others, |axis| part.table.parts_of(axis, grid, task));
    let entries = column.rows.iter().map(SparseRows::len).sum::<usize>() as u64;
    let mut lanes = vec![CellLanes::default(); plan.cells.len()];
    for (positions, places) in positions.chunks(LANES).zip(places.chunks(LANES)) {
        let timer = metrics.baseline.elapsed_compute().timer();
        for (term, lanes) in plan.cells.iter().zip(&mut lanes) {
            gather(part, term, values, &column.cells, positions, lanes)?;
        }
        for ((cell, row), sums) in plan.products.iter().zip(&mut *sums) {
            let (term, rows) = (&plan.cells[*cell], &column.rows[*row]);
            match term {
                CellTerm { value: None, filter: None } => rows.add_ones(places, sums),
                _ => rows.add(&lanes[*cell], places, sums),
            }
        }
        timer.done();
        yields.spend(entries * positions.len() as u64).await;
    }
    Ok(())
}

/// Fills in the values of a term at some positions.
fn gather(
    part: &JoinPart<'_>,
    term: &CellTerm,
    values: &[ArrayRef],
    cells: &[usize],
    positions: &[usize],
    lanes: &mut CellLanes,
) -> Result<()> {
    match term {
        CellTerm { value: None, filter: None } => return Ok(()),
        CellTerm { value: Some(value), filter: None } => {
            if let Some(column) = plain(part, value) {
                return gather_column(&values[column], cells, positions, lanes);
            }
        }
        CellTerm { .. } => {}
    }
    let at = cells.iter().flat_map(|cell| positions.iter().map(move |at| (cell + at) as u64));
    let at = UInt64Array::from_iter_values(at);
    let rows = at.len();
    let taken = values.iter().map(|column| Ok(take(column, &at, None)?));
    let batch = part.batch(taken.collect::<Result<_>>()?, rows)?;
    let passes = term.filter.as_ref().map(|filter| part.passing(filter, &batch)).transpose()?;
    let value = match &term.value {
        Some(value) => {
            let value = over_columns(value, &part.columns)?.evaluate(&batch)?.into_array(rows)?;
            if *value.data_type() != DataType::Float64 {
                return internal_err!("a product of a {}", value.data_type());
            }
            Some(value)
        }
        None => None,
    };
    let doubles = value.as_ref().map(|it| it.as_primitive::<arrow::datatypes::Float64Type>());
    let count = positions.len();
    lanes.fill(cells.len(), count, |cell, lane| {
        let at = cell * count + lane;
        if passes.as_ref().is_some_and(|passes| !passes.value(at)) {
            return None;
        }
        match doubles {
            Some(doubles) => doubles.is_valid(at).then(|| doubles.value(at)),
            None => Some(1.0),
        }
    });
    Ok(())
}

/// Returns the position of the column that an expression is, possibly as doubles.
fn plain(part: &JoinPart<'_>, expr: &PhysicalExprRef) -> Option<usize> {
    let column = match expr.downcast_ref::<CastExpr>() {
        Some(cast) => cast.expr(),
        None => expr,
    };
    let column = column.downcast_ref::<PhysicalColumn>()?;
    let field = part.reduction.lookup.scan.schema_ref().field(column.index()).data_type().clone();
    let is_number = field.is_integer() || matches!(field, DataType::Float32 | DataType::Float64);
    is_number.then(|| part.columns.binary_search(&column.index()).ok()).flatten()
}

/// Fills in the values of a column of numbers.
fn gather_column(
    column: &ArrayRef,
    cells: &[usize],
    positions: &[usize],
    lanes: &mut CellLanes,
) -> Result<()> {
    use arrow::datatypes as types;
    macro_rules! each {
        ($($data_type:ident => $arrow:ident),*) => {
            match column.data_type() {
                $(DataType::$data_type => {
                    let column = column.as_primitive::<types::$arrow>();
                    lanes.gather(column, cells, positions, |it| it as f64);
                })*
                other => return internal_err!("a product of a {other}"),
            }
        };
    }
    each!(
        Float64 => Float64Type, Float32 => Float32Type, Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type,
        Int64 => Int64Type, UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    );
    Ok(())
}

/// Returns the columns of the aggregates of the groups that have pairs.
fn finish(part: &JoinPart<'_>, plan: &ProductPlan, sums: &[SparseSums]) -> Result<Aggregated> {
    let pairs = &sums[0].counts;
    let has_keys = !part.reduction.keys.is_empty();
    let places: Vec<usize> =
        (0..pairs.len()).filter(|place| !has_keys || pairs[*place] > 0).collect();
    let pairs: Vec<u64> = places.iter().map(|place| pairs[*place]).collect();
    let of_places =
        |numbers: &[f64]| -> Vec<f64> { places.iter().map(|place| numbers[*place]).collect() };
    let extremes = |is_wanted: bool, numbers: &[f64]| -> Option<ArrayRef> {
        is_wanted.then(|| Arc::new(Float64Array::from(of_places(numbers))) as _)
    };
    let mut stats: Vec<GroupStats> = sums
        .iter()
        .zip(&plan.extremes)
        .map(|(of_product, (min, max))| {
            let sums = of_places(&of_product.sums);
            let weights = of_places(&of_product.weights);
            GroupStats {
                counts: places.iter().map(|place| of_product.counts[*place]).collect(),
                sums: Some(sums.clone()),
                mins: extremes(*min, &of_product.mins),
                maxs: extremes(*max, &of_product.maxs),
                weighted: Some(WeightedStates { sums, weights }),
                ..GroupStats::default()
            }
        })
        .collect();
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
