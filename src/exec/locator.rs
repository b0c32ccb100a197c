//! [`Locator`]: the next chunks of one partition that filters keep, and where they are stored.
//!
//! ```text
//!   tasks ──prune──▶ kept tasks ──locate──▶ stored chunks
//!          (groups of up to 256; what is left is pruned again if a filter changes)
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::error::Result;

use super::metrics::ScanMetrics;
use super::pruning::priority::{Priority, best_first};
use super::pruning::{DynamicFilters, RuntimePruner};
use crate::array::GridArray;
use crate::format::StoredChunk;
use crate::grid::ChunkTask;
use crate::plan::{ScanPlan, TaskNumber};

/// The number of chunks to locate at once, and to check against filters at once.
const LOCATE_GROUP: usize = 256;

/// An iterator over tasks of a plan.
type TaskNumbers = Box<dyn Iterator<Item = TaskNumber> + Send + Sync>;

/// The chunks of one partition that are not fetched yet.
pub(super) struct Locator {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    /// The numbers of the variables to locate.
    values: Vec<usize>,
    /// The tasks whose chunks have not been located yet.
    tasks: TaskNumbers,
    filters: DynamicFilters,
    /// Applies the filters to chunks; made before the first chunk.
    pruner: Option<RuntimePruner>,
    /// Sort keys of these tasks, so that the filters become strict early; used before the first chunk.
    priorities: Option<(Vec<Priority>, TaskNumbers)>,
    /// Chunks that are located and not yet requested, with one `StoredChunk` per variable.
    located: VecDeque<(ChunkTask, Vec<StoredChunk>)>,
}

impl Locator {
    pub(super) fn new(
        array: Arc<GridArray>,
        plan: Arc<ScanPlan>,
        values: Vec<usize>,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
    ) -> Self {
        Self {
            array,
            plan,
            values,
            tasks: Box::new(tasks),
            filters: DynamicFilters::default(),
            pruner: None,
            priorities: None,
            located: VecDeque::new(),
        }
    }

    /// Skips chunks and rows that `filters` exclude at the time a chunk is read.
    pub(super) fn filter(&mut self, filters: DynamicFilters) {
        self.filters = filters;
    }

    /// Locates the most promising chunks first if there are filters. `tasks` must be all tasks.
    pub(super) fn prioritize(
        &mut self,
        priorities: Vec<Priority>,
        tasks: impl Iterator<Item = TaskNumber> + Send + Sync + 'static,
    ) {
        let tasks = (!priorities.is_empty()).then(|| Box::new(tasks) as _);
        self.priorities = tasks.map(|tasks| (priorities, tasks));
    }

    /// Before the first chunk, makes the pruner and sorts the tasks; both may read zone maps.
    pub(super) async fn prepare(&mut self) -> Result<()> {
        if self.filters.is_empty() {
            return Ok(());
        }
        // Taken, so that the second call returns above.
        let filters = std::mem::take(&mut self.filters);
        self.pruner = Some(RuntimePruner::new(&self.array, &self.plan, filters).await?);
        if let Some((priorities, tasks)) = self.priorities.take() {
            let tasks = best_first(&priorities, &self.array, &self.plan, tasks.collect()).await?;
            self.tasks = Box::new(tasks.into_iter());
        }
        Ok(())
    }

    /// Whether chunks are compared with filters.
    pub(super) fn has_filters(&self) -> bool {
        self.pruner.is_some()
    }

    /// Whether filters may become stricter once operators receive more rows.
    pub(super) fn may_prune_more(&self) -> bool {
        self.pruner.as_ref().is_some_and(RuntimePruner::may_change)
    }

    /// Whether a filter has changed since the last call.
    pub(super) fn refresh(&mut self) -> bool {
        self.pruner.as_mut().is_some_and(RuntimePruner::refresh)
    }

    /// Returns each task, restricted by the current filters; `None` if it is pruned.
    pub(super) fn prune(
        &mut self,
        tasks: Vec<ChunkTask>,
        metrics: &ScanMetrics,
    ) -> Result<Vec<Option<ChunkTask>>> {
        let Some(pruner) = &mut self.pruner else {
            return Ok(tasks.into_iter().map(Some).collect());
        };
        let left = pruner.prune(tasks)?;
        let pruned = left.iter().filter(|task| task.is_none()).count();
        metrics.chunks_examined.add_pruned(pruned);
        Ok(left)
    }

    /// Drops located chunks that the current filters exclude.
    pub(super) fn prune_located(&mut self, metrics: &ScanMetrics) -> Result<()> {
        let located: Vec<ChunkTask> = self.located.iter().map(|(task, _)| task.clone()).collect();
        let left = self.prune(located, metrics)?;
        let stored = std::mem::take(&mut self.located).into_iter().map(|(_, stored)| stored);
        let located =
            left.into_iter().zip(stored).filter_map(|(task, stored)| Some((task?, stored)));
        self.located = located.collect();
        Ok(())
    }

    /// Returns the next located chunk, if [`locate`](Self::locate) has found one.
    pub(super) fn front(&self) -> Option<&(ChunkTask, Vec<StoredChunk>)> {
        self.located.front()
    }

    /// Takes the chunk that [`front`](Self::front) returns.
    pub(super) fn pop(&mut self) -> Option<(ChunkTask, Vec<StoredChunk>)> {
        self.located.pop_front()
    }

    /// Locates the next chunks that filters keep, unless some are located; none at the end.
    pub(super) async fn locate(&mut self, metrics: &ScanMetrics) -> Result<()> {
        if !self.located.is_empty() {
            return Ok(());
        }
        let timer = metrics.time_locate.timer();
        let group = self.next_group(metrics).await?;
        if !group.is_empty() {
            let stored = self.array.locate(&group, &self.values).await?;
            self.located = group.into_iter().zip(stored).collect();
        }
        timer.done();
        Ok(())
    }

    /// Returns the next task that filters keep, if only labels are needed.
    pub(super) async fn next_task(&mut self, metrics: &ScanMetrics) -> Result<Option<ChunkTask>> {
        if self.pruner.is_none() {
            return Ok(self.tasks.next().map(|task| self.plan.task(task)));
        }
        if self.located.is_empty() {
            let group = self.next_group(metrics).await?;
            self.located = group.into_iter().map(|task| (task, vec![])).collect();
        }
        let next = self.located.pop_front();
        metrics.chunks_examined.add_matched(usize::from(next.is_some()));
        Ok(next.map(|(task, _)| task))
    }

    /// Returns the tasks that filters keep of the next group with any; an empty vector at the end.
    async fn next_group(&mut self, metrics: &ScanMetrics) -> Result<Vec<ChunkTask>> {
        loop {
            let group: Vec<ChunkTask> =
                self.tasks.by_ref().take(LOCATE_GROUP).map(|task| self.plan.task(task)).collect();
            if group.is_empty() {
                return Ok(group);
            }
            let left: Vec<ChunkTask> = self.prune(group, metrics)?.into_iter().flatten().collect();
            if !left.is_empty() {
                return Ok(left);
            }
            // The whole group was pruned. A query that prunes thousands of groups must not block its
            // thread.
            tokio::task::yield_now().await;
        }
    }
}
