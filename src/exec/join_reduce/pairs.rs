//! Pairs of cells and rows of one partition, in batches with the places of their groups, for accumulators.
//!
//! ```text
//!   block   cell 0 1 2      matches  first, next       pairs  cell 0 0 2    row 4 7 4
//!                                                             place = that of the row + that of the cell
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use datafusion::error::Result;
use datafusion::execution::TaskContext;

use super::join_part::{Aggregated, JoinPart};
use crate::exec::blocks::columns;
use crate::exec::lookup::NONE;
use crate::exec::metrics::ScanMetrics;
use crate::exec::reduce::{Account, Accumulators};
use crate::exec::yield_budget::YieldBudget;
use crate::plan::{Assembler, RowBlocks};
use crate::reduce::RowPlaces;

/// The pairs of a block, batch by batch.
struct BlockPairs<'a> {
    part: &'a JoinPart<'a>,
    /// The first match of each cell.
    firsts: Vec<u32>,
    /// The part of the place that the keys of each cell determine.
    keyed: &'a [usize],
    /// The cells for which the predicate is true.
    passes: Option<BooleanBuffer>,
    /// The cell whose matches come next, and the next of them unless it is the first.
    cell: usize,
    next: Option<u32>,
}

/// Some pairs, and the places of their groups.
#[derive(Default)]
struct PairBatch {
    cells: Vec<u32>,
    rows: Vec<u32>,
    places: Vec<usize>,
}

impl BlockPairs<'_> {
    /// Returns the next pairs, at most `most`. There are none at the end.
    fn next(&mut self, most: usize) -> PairBatch {
        let mut pairs = PairBatch::default();
        while self.cell < self.firsts.len() {
            let passes = self.passes.as_ref().is_none_or(|it| it.value(self.cell));
            let first = if passes { self.firsts[self.cell] } else { NONE };
            let mut row = self.next.take().unwrap_or(first);
            while row != NONE {
                if pairs.cells.len() == most {
                    self.next = Some(row);
                    return pairs;
                }
                pairs.cells.push(self.cell as u32);
                pairs.rows.push(row);
                pairs.places.push(self.part.place_of(row) + self.keyed[self.cell]);
                row = self.part.matches.next(row);
            }
            self.cell += 1;
        }
        pairs
    }
}

/// Aggregates the pairs of a partition with accumulators.
pub(super) async fn aggregate(
    part: &JoinPart<'_>,
    metrics: &ScanMetrics,
    context: &Arc<TaskContext>,
) -> Result<Aggregated> {
    let (aggregates, whole) = (&part.reduction.aggregates, part.reduction.whole);
    let has_keys = !part.reduction.keys.is_empty();
    let mut accumulators = Accumulators::new(aggregates, part.places(), has_keys, whole)?;
    let mut reader = part.reader(context);
    let array = part.reduction.lookup.scan.array();
    let predicate = &part.reduction.lookup.predicate;
    let mut assembler = Assembler::new(array);
    let (mut of_matches, mut of_keys) = (RowPlaces::default(), RowPlaces::default());
    let (mut account, fixed) = (Account::default(), part.reservation.size());
    let batch_size = context.session_config().batch_size();
    let bytes_per_row = aggregates.bytes_per_row()?;
    let mut yields = YieldBudget::default();
    while let Some(open) = reader.next(metrics).await? {
        for block in RowBlocks::new(&open.task, batch_size as u64) {
            let timer = metrics.baseline.elapsed_compute().timer();
            let (matched, _) = of_matches.of(&part.matches.table, array.grid(), &open.task, &block);
            let firsts = part.matches.firsts(matched);
            let (keyed, _) = of_keys.of(&part.table, array.grid(), &open.task, &block);
            let own = columns(array, &mut assembler, &part.sources, &open, &block)?;
            let passes = match predicate {
                Some(it) => {
                    Some(part.passing(it, &part.batch(own.clone(), block.rows() as usize)?)?)
                }
                None => None,
            };
            timer.done();
            yields.spend(block.rows()).await;
            let mut pairs = BlockPairs { part, firsts, keyed, passes, cell: 0, next: None };
            loop {
                let timer = metrics.baseline.elapsed_compute().timer();
                let PairBatch { cells, rows, places } = pairs.next(batch_size);
                if cells.is_empty() {
                    break;
                }
                let batch = batch(part, &own, cells, rows)?;
                // Reserves memory before the accumulators take it.
                let bytes = bytes_per_row * batch.num_rows();
                let (met, held) = (accumulators.groups(), || accumulators.size());
                account.admit(&part.reservation, fixed, bytes, met, held)?;
                accumulators.update(&batch, &places, false)?;
                timer.done();
                yields.spend(batch.num_rows() as u64).await;
            }
        }
        reader.release(open)?;
    }
    let held = accumulators.size();
    // States are copies of the accumulators' memory.
    let copies = if whole { 0 } else { held };
    part.reservation.try_resize(fixed + held + copies)?;
    let aggregated = accumulators.finish(whole)?;
    let bytes: usize = aggregated.0.iter().map(|column| column.get_array_memory_size()).sum();
    part.reservation.resize(fixed + bytes);
    Ok(aggregated)
}

/// Makes a batch of the columns of pairs that the aggregates use.
fn batch(
    part: &JoinPart<'_>,
    own: &[ArrayRef],
    cells: Vec<u32>,
    rows: Vec<u32>,
) -> Result<RecordBatch> {
    let count = cells.len();
    let (cells, rows) = (UInt32Array::from(cells), UInt32Array::from(rows));
    let used = &part.reduction.columns;
    let mut arrays = Vec::with_capacity(used.scanned.len() + used.built.len());
    for column in &used.scanned {
        let at = part.columns.partition_point(|it| it < column);
        arrays.push(take(&own[at], &cells, None)?);
    }
    for column in &used.built {
        arrays.push(take(part.built.side.rows.column(*column), &rows, None)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let schema = Arc::clone(&part.reduction.aggregates.schema);
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
}
