//! [`RuntimePruner`]: checks the chunks of a scan against its dynamic filters while the query runs.
//!
//! Between two chunks, one atomic load per filter shows whether the filter has changed. Only then are the
//! filters' expressions taken again:
//!
//! ```text
//!   filter (now)        station IN ('A', 'F') AND station >= 'A' AND value > 312.5
//!     may it hold?      all conjuncts, against labels and zone maps of the chunk     no: not read
//!     where?            conjuncts over one dimension, against the chunk's labels     only these rows
//! ```
//!
//! A conjunct over one dimension is evaluated over the labels of a chunk, once per chunk coordinate. The result is a task
//! with a smaller selection.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicate;

use super::dynamic::{DynamicFilters, snapshot_filter, without_nulls};
use super::labels::select_labels;
use super::statistics::ChunkStatistics;
use super::zones::ReadExtent;
use crate::array::{ColumnSource, GridArray};
use crate::exec::columns::{columns_of, over_columns};
use crate::grid::{AxisSelection, ChunkTask};
use crate::plan::ScanPlan;

/// The dynamic filters of a scan, and the statistics of its chunks that they are checked against.
pub(crate) struct RuntimePruner {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    /// The sources of the scan's columns, and their schema; the filters refer to these.
    columns: Vec<ColumnSource>,
    schema: SchemaRef,
    /// The filters, each with a watcher that shows whether it has changed.
    filters: Vec<(PhysicalExprRef, DynamicFilterTracking)>,
    /// Bounds of the columns that the filters use, gathered once.
    statistics: ChunkStatistics,
    /// The positions of the statistics' columns among the scan's.
    of_statistics: Vec<usize>,
    /// Columns of the scan whose NULL rows are not needed.
    non_null_columns: Vec<usize>,
    /// The current expressions of the filters; `None` until they are needed.
    current: Option<Snapshot>,
}

/// The expressions of the filters at one moment.
#[derive(Default)]
struct Snapshot {
    /// Predicates on chunk statistics, which exclude whole chunks; at most one per filter.
    predicates: Vec<Arc<PruningPredicate>>,
    /// Predicates on labels, which select indices of one axis. They are kept per snapshot, with their
    /// results.
    over_labels: Vec<LabelPredicate>,
}

/// A conjunct over one dimension, which selects indices of its axis.
struct LabelPredicate {
    axis: usize,
    columns: Vec<ColumnSource>,
    /// The conjunct, over batches of `columns`.
    predicate: PhysicalExprRef,
    schema: SchemaRef,
    /// Per chunk coordinate, the indices for which the predicate is true, relative to the chunk.
    selected: HashMap<u64, AxisSelection>,
}

impl RuntimePruner {
    /// Makes a pruner of the chunks of `plan`; may read zone maps.
    pub(crate) async fn new(
        array: &Arc<GridArray>,
        plan: &Arc<ScanPlan>,
        filters: DynamicFilters,
    ) -> Result<Self> {
        let DynamicFilters { filters, columns, schema, non_null_columns } = filters;
        let of_statistics = columns_of(&filters);
        let needed: Vec<ColumnSource> = of_statistics.iter().map(|&at| columns[at]).collect();
        let needed_schema = Arc::new(schema.project(&of_statistics)?);
        let chunks = ReadExtent::from_plan(plan);
        let statistics = ChunkStatistics::gather(array, chunks, &needed, needed_schema).await?;
        let track = |filter: PhysicalExprRef| {
            (Arc::clone(&filter), DynamicFilterTracking::classify(&filter))
        };
        Ok(Self {
            array: Arc::clone(array),
            plan: Arc::clone(plan),
            columns,
            schema,
            filters: filters.into_iter().map(track).collect(),
            statistics,
            of_statistics,
            non_null_columns,
            current: None,
        })
    }

    /// Drops the snapshot if a filter has changed since. Returns whether there is no snapshot, so that
    /// tasks that were kept before may now be pruned. The next call of [`prune`](Self::prune) takes a new
    /// one.
    pub(crate) fn refresh(&mut self) -> bool {
        for (filter, tracking) in &mut self.filters {
            if tracking.watcher().is_some_and(|watcher| watcher.changed()) {
                *tracking = DynamicFilterTracking::classify(filter);
                self.current = None;
            }
        }
        self.current.is_none()
    }

    /// Whether a filter may still change.
    pub(crate) fn may_change(&self) -> bool {
        let may_change = |tracking| matches!(tracking, &DynamicFilterTracking::Watching(_));
        self.filters.iter().any(|(_, tracking)| may_change(tracking))
    }

    /// Returns each task, restricted by the current filters; `None` if it is pruned. The result has as
    /// many entries as `tasks`, in the same order.
    pub(crate) fn prune(&mut self, tasks: Vec<ChunkTask>) -> Result<Vec<Option<ChunkTask>>> {
        self.refresh();
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.snapshot()?,
        };
        // First the cheap check of whole chunks, for all tasks at once; then labels, for the tasks that
        // are left.
        let mut left: Vec<Option<ChunkTask>> = tasks.into_iter().map(Some).collect();
        self.drop_chunks(&current, &mut left)?;
        for predicate in &mut current.over_labels {
            for place in &mut left {
                if let Some(task) = place.take() {
                    *place = self.restricted(predicate, task);
                }
            }
        }
        self.current = Some(current);
        Ok(left)
    }

    /// Replaces the tasks of chunks in which no row can satisfy a predicate by `None`.
    fn drop_chunks(&self, current: &Snapshot, left: &mut [Option<ChunkTask>]) -> Result<()> {
        for predicate in &current.predicates {
            let chunks = left.iter().flatten().map(|task| task.coordinates.as_slice());
            let chunks = self.statistics.indices_of(&chunks)?;
            let Some(keep) = self.statistics.prune(predicate, &chunks) else { continue };
            // `keep` has an entry per task that was still there, in order.
            let still_there = left.iter_mut().filter(|task| task.is_some());
            still_there.zip(keep).filter(|(_, keep)| !keep).for_each(|(task, _)| *task = None);
        }
        Ok(())
    }

    /// Takes the current expressions of the filters.
    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for (filter, _) in &self.filters {
            let Some(filter) = snapshot_filter(filter)? else { continue };
            // Then `value IS NULL OR value > 3` also excludes chunks with NULLs.
            let filter = without_nulls(filter, &self.non_null_columns)?;
            if self.statistics.know_anything() {
                let predicate = over_columns(&filter, &self.of_statistics)?;
                snapshot.predicates.extend(self.statistics.predicate(predicate));
            }
            for conjunct in split_conjunction(&filter) {
                snapshot.over_labels.extend(self.over_labels(conjunct)?);
            }
        }
        Ok(snapshot)
    }

    /// Turns a conjunct over one dimension into a predicate on its labels; `None` for other conjuncts.
    fn over_labels(&self, conjunct: &PhysicalExprRef) -> Result<Option<LabelPredicate>> {
        let needed = columns_of([conjunct]);
        let columns: Vec<ColumnSource> = needed.iter().map(|&at| self.columns[at]).collect();
        let Some(axis) = columns.first().and_then(|column| column.axis()) else { return Ok(None) };
        if columns.iter().any(|column| column.axis() != Some(axis)) {
            return Ok(None);
        }
        Ok(Some(LabelPredicate {
            axis,
            columns,
            predicate: over_columns(conjunct, &needed)?,
            schema: Arc::new(self.schema.project(&needed)?),
            selected: HashMap::new(),
        }))
    }

    /// Restricts a task to the cells that a predicate keeps; `None` if it keeps none.
    fn restricted(&self, over: &mut LabelPredicate, mut task: ChunkTask) -> Option<ChunkTask> {
        // All tasks at one coordinate of the axis have the same labels, so the predicate is evaluated
        // once for all.
        let (axis, chunk) = (over.axis, task.coordinates[over.axis]);
        let selected = match over.selected.get(&chunk) {
            Some(selected) => selected,
            None => {
                let range = self.array.grid().axis_range(axis, chunk);
                let candidates = self.plan.selection().axes()[axis].within(range.clone());
                let LabelPredicate { predicate, columns, schema, .. } = &*over;
                let selected = select_labels(
                    predicate,
                    &self.array,
                    columns,
                    schema,
                    &candidates,
                    range.start,
                );
                // The operator above evaluates the filter again.
                let selected = selected.unwrap_or_else(|error| {
                    log::debug!("cannot skip rows by {}: {error}", over.predicate);
                    candidates
                });
                over.selected.entry(chunk).or_insert(selected)
            }
        };
        let left = task.selection[axis].intersect(selected);
        task.selection[axis] = left;
        task.rows = task.selection.iter().map(AxisSelection::count).product();
        (task.rows > 0).then_some(task)
    }
}
