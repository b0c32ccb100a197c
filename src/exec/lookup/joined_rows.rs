//! [`JoinedRows`]: joins the rows of blocks with those that their places hold.
//!
//! ```text
//!   block   places 4 7 4      pattern  first row at each place     pairs  own row, other row
//!                                                                          (several for a place with a list)
//! ```
//!
//! Blocks with the same places have the same pattern. If each row of a block is one row of the join, the pattern also has the
//! columns of the other side. Then nothing is looked up again.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExprRef;

use super::build_side::BuildSide;
use super::grid_lookup::{GridLookup, ReturnedRows};
use super::matches::{Matches, NONE, optional};
use crate::array::ColumnSource;
use crate::exec::block_stream::BlockRows;
use crate::exec::blocks::{columns, own_columns};
use crate::exec::chunks::OpenChunk;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::pruning::labels::satisfied;
use crate::plan::{Assembler, Block, ScanPlan};
use crate::reduce::RowPlaces;

/// A join, and what an operator returns of it.
#[derive(Debug, Clone)]
pub(in crate::exec) struct LookupJoin {
    pub(in crate::exec) lookup: Arc<GridLookup>,
    /// Columns of the join's schema, in output order.
    pub(in crate::exec) projection: Vec<usize>,
    /// The columns of the output.
    pub(in crate::exec) schema: SchemaRef,
    /// Dynamic filters over the columns of the scan; rows for which one is not true may be left out.
    pub(in crate::exec) filters: Vec<PhysicalExprRef>,
    /// The part of the array whose cells are joined, in one partition; `None` for all of it.
    pub(in crate::exec) part: Option<Arc<ScanPlan>>,
}

/// The columns of the scan that are returned, or that the predicate uses.
pub(in crate::exec) struct OwnColumns {
    /// Columns of the scan, ascending.
    pub(in crate::exec) columns: Vec<usize>,
    pub(in crate::exec) sources: Vec<ColumnSource>,
    pub(in crate::exec) schema: SchemaRef,
    /// The predicate over these columns.
    pub(in crate::exec) predicate: Option<PhysicalExprRef>,
}

impl OwnColumns {
    /// Finds the columns of a join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(in crate::exec) fn try_new(joined: &LookupJoin) -> Result<Self> {
        let LookupJoin { lookup, projection, .. } = joined;
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
pub(super) struct JoinedRows {
    joined: LookupJoin,
    built: Arc<BuildSide>,
    matches: Matches,
    _reservation: MemoryReservation,
    own: OwnColumns,
    assembler: Assembler,
    places: RowPlaces,
    /// The coordinates of the chunk of the last block.
    chunk: Option<Vec<u64>>,
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
        if !self.joined.filters.is_empty() && self.chunk.as_ref() != Some(&open.task.coordinates) {
            // Filters leave out other labels of each chunk, which patterns of places do not compare.
            self.places = RowPlaces::default();
            self.pattern = None;
            self.chunk = Some(open.task.coordinates.clone());
        }
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
    /// Looks up the rows of `built` by the places of `matches`, whose memory `reservation` holds.
    pub(super) fn new(
        joined: LookupJoin,
        own: OwnColumns,
        built: Arc<BuildSide>,
        matches: Matches,
        reservation: MemoryReservation,
        batch_size: usize,
    ) -> Self {
        Self {
            assembler: Assembler::new(joined.lookup.scan.array()),
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
        }
    }

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

impl LookupJoin {
    /// Returns the plan of a partition of the join.
    pub(super) fn partition(&self, partition: usize) -> ScanPlan {
        let whole = self.part.as_ref().unwrap_or(self.lookup.scan.plan());
        whole.partition(partition)
    }

    /// Returns the matches of a block whose rows have these first ones.
    fn pattern(&self, firsts: Vec<u32>, matches: &Matches, built: &BuildSide) -> Result<Pattern> {
        let missing = firsts.iter().map(|row| usize::from(*row == NONE)).sum::<usize>();
        let is_one_each = match self.lookup.kept {
            ReturnedRows::Matches => matches.are_single() && missing == 0,
            ReturnedRows::All => matches.are_single(),
            ReturnedRows::WithMatch => missing == 0,
            ReturnedRows::WithoutMatch => missing == firsts.len(),
        };
        let built = match is_one_each {
            true => Some(self.looked_up(built, &optional(firsts.clone()))?),
            false => None,
        };
        Ok(Pattern { firsts, built })
    }

    /// Returns the columns of the other side that the join returns, in these rows.
    fn looked_up(&self, built: &BuildSide, rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
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
        kept: ReturnedRows,
        most: usize,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut own, mut built) = (vec![], vec![]);
        while self.row < self.rows && own.len() < most {
            let found = self.next.take().unwrap_or(firsts[self.row]);
            let passes = self.passes.as_ref().is_none_or(|it| it.value(self.row));
            let is_kept = match kept {
                ReturnedRows::Matches | ReturnedRows::WithMatch => found != NONE,
                ReturnedRows::WithoutMatch => found == NONE,
                ReturnedRows::All => true,
            };
            if passes && is_kept {
                own.push(self.row as u32);
                built.push(found);
                let returns_all =
                    found != NONE && matches!(kept, ReturnedRows::Matches | ReturnedRows::All);
                self.next = returns_all.then(|| matches.next(found)).filter(|next| *next != NONE);
            }
            if self.next.is_none() {
                self.row += 1;
            }
        }
        (own, built)
    }
}
