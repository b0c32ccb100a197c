//! [`Priority`]: which chunks to read first for queries that need only the first rows of an order.
//!
//! The sooner a TopK receives good rows, the more chunks its filter excludes. So chunks are sorted by
//! their best bound of the first sort key: the greatest value first for `ORDER BY value DESC LIMIT 10`.
//!
//! ```text
//!   chunk       0        1         2         3            ORDER BY value DESC NULLS LAST
//!   value    10..20   10..90    30..40   unknown          reads 1, 2, 0, 3
//! ```
//!
//! `benches/prune.rs` measures the effect. Of 256 chunks whose values rise, `ORDER BY value DESC LIMIT 10`
//! reads 3 instead of 132, in a twentieth of the time. If the order of the grid is already the best one,
//! sorting costs a tenth of a millisecond.
//!
//! A scan has a priority if it cannot read in the requested order. It uses the priority only with filters that benefit. A
//! reduction that computes only extremes has a priority for each of them, and they take turns. Chunks of equal priority
//! keep their order, so a declared order of rows survives.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, UInt64Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use datafusion::error::Result;

use super::statistics::ChunkStatistics;
use super::zones::ReadExtent;
use crate::array::{ColumnSource, GridArray};
use crate::plan::{ScanPlan, TaskNumber};

/// The first sort key of a query, as an order to read chunks in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority {
    /// A column of the array's schema.
    pub(crate) column: usize,
    /// The direction of the query, and where it wants NULLs.
    pub(crate) options: SortOptions,
}

/// The greatest number of tasks to sort, counted once per priority.
const MAX_TASKS: usize = 1 << 20;

/// Returns the tasks, the most promising first; in the given order if they have no statistics. Several
/// priorities take turns: of the orders 5, 2, 9 and 2, 9, 5 come 5, 2, 9.
pub(crate) async fn best_first(
    priorities: &[Priority],
    array: &Arc<GridArray>,
    plan: &ScanPlan,
    tasks: Vec<TaskNumber>,
) -> Result<Vec<TaskNumber>> {
    // Each priority needs a sorted copy of all tasks.
    if tasks.len().saturating_mul(priorities.len()) > MAX_TASKS {
        return Ok(tasks);
    }
    if let [priority] = priorities {
        return priority.order(array, plan, tasks).await;
    }
    let mut orders = Vec::with_capacity(priorities.len());
    for priority in priorities {
        orders.push(priority.order(array, plan, tasks.clone()).await?);
    }
    let mut seen = HashSet::with_capacity(tasks.len());
    // All first choices, then all second ones, and so on. A task comes with the first order that names it.
    let in_turn = (0..tasks.len()).flat_map(|at| orders.iter().map(move |order| order[at]));
    Ok(in_turn.filter(|task| seen.insert(*task)).collect())
}

impl Priority {
    /// Returns the tasks in the order of this key; unchanged without statistics of its column.
    async fn order(
        self,
        array: &Arc<GridArray>,
        plan: &ScanPlan,
        tasks: Vec<TaskNumber>,
    ) -> Result<Vec<TaskNumber>> {
        let column = array.columns()[self.column];
        let schema = Arc::new(array.schema().project(&[self.column])?);
        let chunks = ReadExtent::from_plan(plan);
        let statistics = ChunkStatistics::gather(array, chunks, &[column], schema).await?;
        let known = statistics.know_values() || column.axis().is_some();
        if !known {
            return Ok(tasks);
        }
        self.sorted(&statistics, column, plan, tasks)
    }

    /// Sorts the tasks by their best bound. Chunks without a bound come last, unless NULLs sort first.
    fn sorted(
        self,
        statistics: &ChunkStatistics,
        column: ColumnSource,
        plan: &ScanPlan,
        tasks: Vec<TaskNumber>,
    ) -> Result<Vec<TaskNumber>> {
        let chunks: Vec<Vec<u64>> = tasks.iter().map(|&task| plan.task(task).coordinates).collect();
        let chunks = statistics.indices_of(&chunks.iter().map(Vec::as_slice))?;
        let Some((least, greatest, null_counts)) = statistics.bounds(&chunks)? else {
            return Ok(tasks);
        };
        let bound = if self.options.descending { greatest } else { least };
        // If NULLs sort first, a chunk that may hold NULLs is promising, and so is one without statistics.
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
        // Chunks with equal bounds keep their order, so that rows that are sorted by the key stay sorted.
        let as_planned = UInt64Array::from_iter_values(tasks.iter().map(|task| task.get()));
        keys.push(SortColumn { values: Arc::new(as_planned), options: options(false) });
        let order = lexsort_to_indices(&keys, None)?;
        Ok(order.values().iter().map(|&at| tasks[at as usize]).collect())
    }
}
