//! [`PlanParts`]: a plan as plain numbers, for another process to make the same.
//!
//! Nothing is decided again there: the parts list partitions and the chunks that masks keep. Lists of chunks that a
//! selection touches are left out, because the grid and the selection give them.

use std::ops::Range;

use super::order::ReadOrder;
use super::partitions::{Partitions, TaskPartition};
use super::pruned_chunks::Account;
use super::scan_plan::ScanPlan;
use super::task::TaskRange;
use super::touched::TouchedChunks;
use crate::error::{Error, Result};
use crate::grid::{ChunkGrid, Selection};

/// The parts of a [`ScanPlan`] besides the chunk grid of its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanParts {
    /// The selected cells.
    pub selection: Selection,
    /// Per axis, whether its chunks are read from the last to the first.
    pub reversed: Vec<bool>,
    /// Runs of the places that masks keep, ascending; `None` if there are no masks.
    pub kept: Option<Vec<Range<u64>>>,
    /// Per leading axis of a pushed-down order, whether its indices descend.
    pub order: Option<Vec<bool>>,
    /// Chunks that only zone maps exclude.
    pub pruned_by_zones: u64,
    /// The tasks of each partition, and its rows before a limit.
    pub partitions: Vec<(Range<u64>, u64)>,
    /// The axis along which partitions are ranges.
    pub cut_along: Option<usize>,
    /// The greatest number of partitions.
    pub max_partitions: usize,
    /// The rows that suffice of each partition.
    pub limit: Option<u64>,
    /// The chunks that the plan reports as left out.
    pub account: Account,
}

impl ScanPlan {
    /// Returns the plan as plain numbers.
    pub fn parts(&self) -> PlanParts {
        let is_reversed = |chunks: &Vec<u64>| !chunks.is_sorted();
        let parts = self.partitions.parts().iter();
        PlanParts {
            selection: self.selection().clone(),
            reversed: self.chunks.axes().iter().map(is_reversed).collect(),
            kept: self.chunks.kept_runs(),
            order: self.reordered().map(<[bool]>::to_vec),
            pruned_by_zones: self.pruned_by_zones,
            partitions: parts.map(|part| (part.tasks.numbers(), part.rows)).collect(),
            cut_along: self.cut_along(),
            max_partitions: self.max_partitions,
            limit: self.limit,
            account: self.account,
        }
    }

    /// Makes the plan of these parts over an array with the chunks of `grid`.
    ///
    /// # Errors
    /// `Corrupt` if the parts do not fit the grid or each other.
    pub fn from_parts(grid: ChunkGrid, parts: PlanParts) -> Result<Self> {
        let rank = grid.rank();
        let wrong =
            |what: &str| Error::corrupt_region("plan", format!("{what} do not fit the array"));
        let lens = parts.selection.axes().iter().map(|axis| axis.len());
        if !lens.eq(grid.shape().iter().copied()) || parts.reversed.len() != rank {
            return Err(wrong("its selected cells"));
        }
        let order = parts.order.as_ref();
        if parts.cut_along.is_some_and(|axis| axis >= rank)
            || order.is_some_and(|order| order.len() > rank)
        {
            return Err(wrong("its axes"));
        }
        let chunks = TouchedChunks::from_runs(grid, parts.selection, &parts.reversed, parts.kept)?;
        let tasks = chunks.tasks();
        let of_tasks = |range: &Range<u64>| range.start <= range.end && range.end <= tasks;
        if parts.partitions.is_empty() || !parts.partitions.iter().all(|(range, _)| of_tasks(range))
        {
            return Err(wrong("its partitions"));
        }
        let part =
            |(tasks, rows): (Range<u64>, u64)| TaskPartition { tasks: TaskRange::new(tasks), rows };
        let all = parts.partitions.into_iter().map(part).collect();
        Ok(Self {
            order: parts.order.map(|descending| ReadOrder::new(&chunks, descending)),
            chunks,
            pruned_by_zones: parts.pruned_by_zones,
            partitions: Partitions::from_parts(all, parts.cut_along),
            max_partitions: parts.max_partitions,
            declares_range: parts.cut_along.is_some(),
            limit: parts.limit,
            account: parts.account,
        })
    }
}
