//! The rows of one partition of a lookup.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};

use super::built::{Built, SharedRows};
use super::grid_lookup::{GridLookup, Kept};
use super::matches::{Matches, NONE, optional};
use crate::array::ColumnSource;
use crate::exec::block_stream::{BlockRows, BlockStream};
use crate::exec::blocks::{columns, own_columns, values_of};
use crate::exec::chunks::{ChunkReader, OpenChunk};
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::metrics::ScanMetrics;
use crate::exec::pruning::DynamicFilters;
use crate::exec::pruning::labels::satisfied;
use crate::plan::{Assembler, Block};
use crate::reduce::RowPlaces;

/// A join, and what an operator returns of it.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub(super) lookup: Arc<GridLookup>,
    /// Columns of the join's schema, in output order.
    pub(super) projection: Vec<usize>,
    /// The columns of the output.
    pub(super) schema: SchemaRef,
    /// Dynamic filters over the columns of the scan; rows for which one is not true may be left out.
    pub(super) filters: Vec<PhysicalExprRef>,
}

/// Returns the joined rows of a partition of the scan. `rows` are those of the other side.
pub(super) fn joined(
    joined: &Joined,
    rows: SharedRows,
    partition: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let plan = joined.lookup.scan.plan();
    let metrics = ScanMetrics::new(metrics, partition, plan.grid(), plan.pruned());
    let schema = Arc::clone(&joined.schema);
    let (joined, context) = (joined.clone(), Arc::clone(context));
    let opened = async move {
        let built = rows.await.map_err(DataFusionError::Shared)?;
        let stream = stream(joined, built, partition, metrics, &context)?;
        Ok::<_, DataFusionError>(futures::stream::try_unfold(stream, |mut stream| async move {
            let batch = stream.next().await?;
            Ok(batch.map(|batch| (batch, stream)))
        }))
    };
    let batches = futures::stream::once(opened).try_flatten().boxed();
    Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, batches)))
}

/// Puts the rows of the other side into their places, and reads the chunks that may have matches.
fn stream(
    joined: Joined,
    built: Arc<Built>,
    partition: usize,
    metrics: ScanMetrics,
    context: &TaskContext,
) -> Result<BlockStream<JoinedRows>> {
    let scan = &joined.lookup.scan;
    let consumer = format!("GridLookupExec[{partition}]");
    let reservation = MemoryConsumer::new(consumer.clone()).register(context.memory_pool());
    let (plan, matches) = Matches::of(&joined.lookup, &built, partition, &reservation)?;
    let tasks = plan.tasks(0);
    let (all, left) = (scan.plan().tasks(partition).count_tasks(), tasks.count_tasks());
    metrics.chunks_examined.add_pruned((all - left) as usize);
    metrics.chunks_examined.add_matched(left as usize);
    let own = OwnColumns::of(&joined)?;
    let reader = ChunkReader::new(
        Arc::clone(scan.array()),
        Arc::new(plan),
        tasks,
        scan.plan().partition_count(),
        values_of(&own.sources),
        consumer,
        context,
    );
    let filters = DynamicFilters {
        filters: joined.filters.clone(),
        columns: scan.columns(),
        schema: Arc::clone(scan.schema_ref()),
        non_null_columns: vec![],
    };
    let (schema, batch_size) = (Arc::clone(&joined.schema), context.session_config().batch_size());
    let rows = JoinedRows {
        assembler: Assembler::new(scan.array()),
        places: RowPlaces::default(),
        chunk: None,
        pattern: None,
        block: None,
        batch_size,
        own,
        built,
        matches,
        _reservation: reservation,
        joined,
    };
    Ok(BlockStream::new(rows, reader.filtered(filters), &schema, batch_size, metrics))
}

/// The columns of the scan that are returned, or that the predicate uses.
struct OwnColumns {
    /// Columns of the scan, ascending.
    columns: Vec<usize>,
    sources: Vec<ColumnSource>,
    schema: SchemaRef,
    /// The predicate over these columns.
    predicate: Option<PhysicalExprRef>,
}

impl OwnColumns {
    fn of(joined: &Joined) -> Result<Self> {
        let Joined { lookup, projection, .. } = joined;
        let (of_scan, predicate) = (lookup.scan.columns(), lookup.predicate.as_ref());
        let mut columns = columns_of(predicate);
        columns.extend(projection.iter().filter(|column| **column < of_scan.len()));
        columns.sort_unstable();
        columns.dedup();
        Ok(Self {
            sources: columns.iter().map(|&column| of_scan[column]).collect(),
            schema: Arc::new(lookup.scan.schema_ref().project(&columns)?),
            predicate: predicate.map(|it| over_columns(it, &columns)).transpose()?,
            columns,
        })
    }
}

/// A maker of joined rows.
struct JoinedRows {
    joined: Joined,
    built: Arc<Built>,
    matches: Matches,
    _reservation: MemoryReservation,
    own: OwnColumns,
    assembler: Assembler,
    places: RowPlaces,
    /// The chunk of the last block.
    chunk: Option<u64>,
    /// The matches of the last block, which the next one often has, too.
    pattern: Option<Pattern>,
    block: Option<OpenBlock>,
    batch_size: usize,
}

/// The first match of each row of a block.
struct Pattern {
    firsts: Vec<u32>,
    /// The columns of the other side in all rows, if each row of the block is one row of the join.
    built: Option<Vec<ArrayRef>>,
}

/// A block whose rows are being joined.
struct OpenBlock {
    /// The columns of the scan.
    own: Vec<ArrayRef>,
    /// The rows for which the predicate is true.
    passes: Option<BooleanBuffer>,
    rows: usize,
    /// The row whose matches come next, and the next of them unless it is the first.
    row: usize,
    next: Option<u32>,
}

impl BlockRows for JoinedRows {
    fn begin(&mut self, open: &OpenChunk, block: &Block, is_limited: bool) -> Result<()> {
        let array = self.joined.lookup.scan.array();
        if !self.joined.filters.is_empty() && self.chunk != Some(open.task.chunk_number) {
            // Filters leave out other labels of each chunk, which patterns of places do not compare.
            self.places = RowPlaces::default();
            self.pattern = None;
        }
        self.chunk = Some(open.task.chunk_number);
        let (places, repeated) =
            self.places.of(&self.matches.table, array.grid(), &open.task, block);
        if !repeated || self.pattern.is_none() {
            let firsts = self.matches.firsts(places);
            self.pattern = Some(self.joined.pattern(firsts, &self.matches, &self.built)?);
        }
        let rows = block.rows() as usize;
        let mut own = columns(array, &mut self.assembler, &self.own.sources, open, block)?;
        if is_limited {
            own = own_columns(&self.own.sources, own)?;
        }
        let passes = match &self.own.predicate {
            None => None,
            Some(predicate) => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let schema = Arc::clone(&self.own.schema);
                let batch = RecordBatch::try_new_with_options(schema, own.clone(), &options)?;
                Some(satisfied(predicate, &batch)?).filter(|it| it.count_set_bits() < rows)
            }
        };
        self.block = Some(OpenBlock { own, passes, rows, row: 0, next: None });
        Ok(())
    }

    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        let (Some(mut block), Some(pattern)) = (self.block.take(), &self.pattern) else {
            return Ok(None);
        };
        if let (Some(built), None) = (&pattern.built, &block.passes) {
            return self.batch(&block.own, built, block.rows).map(Some);
        }
        let kept = self.joined.lookup.kept;
        let (own, built) = block.pairs(&pattern.firsts, &self.matches, kept, self.batch_size);
        if own.is_empty() {
            return Ok(None);
        }
        let own = UInt32Array::from(own);
        let of_block: Vec<ArrayRef> = block
            .own
            .iter()
            .map(|column| take(column, &own, None))
            .collect::<std::result::Result<_, _>>()?;
        let built = self.joined.looked_up(&self.built, &optional(built))?;
        let batch = self.batch(&of_block, &built, own.len())?;
        self.block = (block.row < block.rows).then_some(block);
        Ok(Some(batch))
    }
}

impl JoinedRows {
    /// Makes a batch of columns of the scan and of looked-up columns, which are those of the output in its order.
    fn batch(&self, own: &[ArrayRef], built: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let scanned = self.joined.lookup.scan.columns().len();
        let mut built = built.iter();
        let mut arrays = Vec::with_capacity(self.joined.projection.len());
        for column in &self.joined.projection {
            let array = match *column < scanned {
                true => self.own.columns.binary_search(column).ok().and_then(|at| own.get(at)),
                false => built.next(),
            };
            let Some(array) = array else { return internal_err!("a column of a join is missing") };
            arrays.push(Arc::clone(array));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.joined.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

impl Joined {
    /// Returns the matches of a block whose rows have these first ones.
    fn pattern(&self, firsts: Vec<u32>, matches: &Matches, built: &Built) -> Result<Pattern> {
        let missing = firsts.iter().map(|row| usize::from(*row == NONE)).sum::<usize>();
        let is_one_each = match self.lookup.kept {
            Kept::Matches => matches.are_single() && missing == 0,
            Kept::All => matches.are_single(),
            Kept::WithMatch => missing == 0,
            Kept::WithoutMatch => missing == firsts.len(),
        };
        let built = match is_one_each {
            true => Some(self.looked_up(built, &optional(firsts.clone()))?),
            false => None,
        };
        Ok(Pattern { firsts, built })
    }

    /// Returns the columns of the other side that the join returns, in these rows.
    fn looked_up(&self, built: &Built, rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
        let scanned = self.lookup.scan.columns().len();
        let columns = self.projection.iter().filter_map(|column| column.checked_sub(scanned));
        let columns = columns.map(|column| take(built.rows.column(column), rows, None));
        Ok(columns.collect::<std::result::Result<_, _>>()?)
    }
}

impl OpenBlock {
    /// Returns the next pairs of a row of the block and a row of the other side: about `most` of them.
    fn pairs(
        &mut self,
        firsts: &[u32],
        matches: &Matches,
        kept: Kept,
        most: usize,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut own, mut built) = (vec![], vec![]);
        while self.row < self.rows && own.len() < most {
            let found = self.next.take().unwrap_or(firsts[self.row]);
            let passes = self.passes.as_ref().is_none_or(|it| it.value(self.row));
            let is_kept = match kept {
                Kept::Matches | Kept::WithMatch => found != NONE,
                Kept::WithoutMatch => found == NONE,
                Kept::All => true,
            };
            if passes && is_kept {
                own.push(self.row as u32);
                built.push(found);
                let returns_all = found != NONE && matches!(kept, Kept::Matches | Kept::All);
                self.next = returns_all.then(|| matches.next(found)).filter(|next| *next != NONE);
            }
            if self.next.is_none() {
                self.row += 1;
            }
        }
        (own, built)
    }
}
