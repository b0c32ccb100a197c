//! [`JoinPart`]: one partition of a reduction: its matches, its groups and its chunks.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::metrics::Count;

use super::built_groups::BuiltGroups;
use super::reduction::JoinReduction;
use crate::array::ColumnSource;
use crate::exec::blocks::values_of;
use crate::exec::chunks::ChunkReader;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::lookup::{Matches, matched_tasks};
use crate::exec::metrics::ScanMetrics;
use crate::exec::pruning::labels::satisfied;
use crate::exec::reads::Reads;
use crate::grid::AxisSelection;
use crate::plan::{ScanPlan, TaskNumber};
use crate::reduce::GroupTable;

/// The columns of the aggregates, and the places of their groups.
pub(super) type Aggregated = (Vec<ArrayRef>, Vec<usize>);

/// One partition of a reduction.
pub(super) struct JoinPart<'a> {
    pub(super) reduction: &'a Arc<JoinReduction>,
    pub(super) built: Arc<BuiltGroups>,
    partition: usize,
    plan: Arc<ScanPlan>,
    /// The chunks that have a cell with a match.
    tasks: Vec<TaskNumber>,
    pub(super) matches: Matches,
    /// The groups of the keys over axes.
    pub(super) table: GroupTable,
    /// The columns of the scan that are read: those of the aggregates, and of the predicate on cells.
    pub(super) columns: Vec<usize>,
    pub(super) sources: Vec<ColumnSource>,
    pub(super) reservation: MemoryReservation,
    /// Counts the columns of chunks for which a matrix was made.
    pub(super) matrices: Count,
}

impl<'a> JoinPart<'a> {
    /// Finds the matches of a partition, and reserves memory for its groups.
    pub(super) fn try_new(
        reduction: &'a Arc<JoinReduction>,
        built: Arc<BuiltGroups>,
        partition: usize,
        reservation: MemoryReservation,
        metrics: &ScanMetrics,
        matrices: Count,
    ) -> Result<Self> {
        let lookup = &reduction.lookup;
        let part = reduction.part(partition);
        let all = part.chunks() as usize;
        let (plan, matches) = Matches::try_new(lookup, &built.side, part, &reservation)?;
        let tasks = matched_tasks(lookup, &built.side, &plan);
        metrics.chunks_examined.add_pruned(all - tasks.len());
        metrics.chunks_examined.add_matched(tasks.len());
        let selection = lookup.scan.plan().selection().axes();
        let table = GroupTable::new(&plan, 0, selection, &reduction.axes)?;
        let places = table.len().saturating_mul(built.count);
        reservation.try_grow(places.saturating_mul(reduction.bytes_per_group()))?;
        let mut columns = columns_of(&lookup.predicate);
        columns.extend(&reduction.columns.scanned);
        columns.sort_unstable();
        columns.dedup();
        let of_scan = lookup.scan.columns();
        let sources = columns.iter().map(|&column| of_scan[column]).collect();
        let plan = Arc::new(plan);
        Ok(Self {
            reduction,
            built,
            partition,
            plan,
            tasks,
            matches,
            table,
            columns,
            sources,
            reservation,
            matrices,
        })
    }

    /// Returns the number of places of groups.
    pub(super) fn places(&self) -> usize {
        self.table.len() * self.built.count
    }

    /// Returns the part of a place that the keys of a row determine.
    pub(super) fn place_of(&self, row: u32) -> usize {
        self.built.numbers[row as usize] as usize * self.table.len()
    }

    /// The selected labels of each axis.
    pub(super) fn selection(&self) -> &[AxisSelection] {
        self.plan.selection().axes()
    }

    /// Makes a reader of the chunks.
    pub(super) fn reader(&self, context: &Arc<TaskContext>) -> ChunkReader {
        let scan = &self.reduction.lookup.scan;
        ChunkReader::new(
            Reads::begin(scan.array(), scan.plan(), context),
            Arc::clone(&self.plan),
            self.tasks.clone().into_iter(),
            self.reduction.partitions.len(),
            values_of(&self.sources),
            format!("GridJoinReduceExec[{}]", self.partition),
            context,
        )
    }

    /// Makes a batch of the columns that are read.
    pub(super) fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let schema = Arc::new(self.reduction.lookup.scan.schema_ref().project(&self.columns)?);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Returns the rows of such a batch for which a condition over the scan's columns is true.
    pub(super) fn passing(
        &self,
        condition: &PhysicalExprRef,
        batch: &RecordBatch,
    ) -> Result<BooleanBuffer> {
        satisfied(&over_columns(condition, &self.columns)?, batch)
    }
}
