//! Which chunks to read first, when only the first rows of an order are wanted.
//!
//! The sooner a TopK has seen good rows, the more chunks its filter rules out. So chunks come by their
//! best bound in the first sort key: the greatest value first for `ORDER BY value DESC LIMIT 10`.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, UInt64Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use datafusion::error::Result;

use super::prune::ChunkFacts;
use crate::array::{Column, GridArray};
use crate::plan::ScanPlan;

/// The first key of an order that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Priority {
    /// A column of the array's schema.
    pub(super) column: usize,
    pub(super) options: SortOptions,
}

/// More tasks than this are left in their order.
const MAX_TASKS: usize = 1 << 20;

impl Priority {
    /// The tasks, the most promising first; in their order if nothing is known about them.
    pub(super) async fn best_first(
        self,
        array: &Arc<GridArray>,
        plan: &ScanPlan,
        tasks: Vec<u64>,
    ) -> Result<Vec<u64>> {
        let column = array.columns()[self.column];
        let schema = Arc::new(array.schema().project(&[self.column])?);
        let facts = ChunkFacts::gather(array, plan.selection(), &[column], schema).await?;
        let known = facts.know_values() || column.axis().is_some();
        if !known || tasks.len() > MAX_TASKS {
            return Ok(tasks);
        }
        self.sorted(&facts, column, plan, tasks)
    }

    fn sorted(
        self,
        facts: &ChunkFacts,
        column: Column,
        plan: &ScanPlan,
        tasks: Vec<u64>,
    ) -> Result<Vec<u64>> {
        let chunks: Vec<Vec<u64>> = tasks.iter().map(|&task| plan.task(task).coordinates).collect();
        let places = facts.places_of(&chunks.iter().map(Vec::as_slice))?;
        let Some((least, greatest, null_counts)) = facts.bounds(&places)? else {
            return Ok(tasks);
        };
        let bound = if self.options.descending { greatest } else { least };
        // A chunk that may hold NULLs, or anything, is a promising one where NULLs come first.
        let may_hold_nulls: BooleanArray = match null_counts {
            Some(counts) => counts.iter().map(|count| Some(count != Some(0))).collect(),
            None => (0..bound.len()).map(|_| Some(false)).collect(),
        };
        let options = |descending| Some(SortOptions { descending, nulls_first: false });
        let mut keys =
            vec![SortColumn { values: bound, options: options(self.options.descending) }];
        if self.options.nulls_first && column.value().is_some() {
            let nulls = SortColumn { values: Arc::new(may_hold_nulls), options: options(true) };
            keys.insert(0, nulls);
        }
        // Equals stay in their order, so that rows which are in order of the key stay in order.
        let places_in_plan = UInt64Array::from(tasks.clone());
        keys.push(SortColumn { values: Arc::new(places_in_plan), options: options(false) });
        let order = lexsort_to_indices(&keys, None)?;
        Ok(order.values().iter().map(|&at| tasks[at as usize]).collect())
    }
}
