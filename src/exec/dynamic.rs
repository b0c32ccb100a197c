//! Filters that become known while a query runs: the threshold of a TopK, the keys of a hash join's
//! other side, the least value found so far.
//!
//! Whoever pushes such a filter down needs no row for which it is not true. Between two chunks one
//! atomic load tells whether a filter has changed; only then is it looked at again:
//!
//! ```text
//!   filter (now)        station IN ('A', 'F') AND station >= 'A' AND value > 312.5
//!     may it hold?      all conjuncts, against labels and zone maps of the chunk     no: not read
//!     where?            conjuncts over one dimension, against the chunk's labels     only these rows
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_optimizer::pruning::PruningPredicate;

use super::columns::{Expr, columns_of, over_columns};
use super::prune::ChunkFacts;
use super::select::select_labels;
use crate::grid::AxisSelection;
use crate::scan::{ChunkTask, Column, GridArray, ScanPlan};

/// Whether `filter` may change while the query runs.
pub(super) fn is_dynamic(filter: &Expr) -> bool {
    DynamicFilterTracking::classify(filter).contains_dynamic_filter()
}

/// Filters that were pushed down to a scan.
#[derive(Debug, Clone)]
pub(super) struct DynamicFilters {
    pub(super) filters: Vec<Expr>,
    /// What each of the scan's columns, which filters are over, shows.
    pub(super) columns: Vec<Column>,
    /// The schema of these columns.
    pub(super) schema: SchemaRef,
}

impl Default for DynamicFilters {
    fn default() -> Self {
        Self { filters: vec![], columns: vec![], schema: Arc::new(Schema::empty()) }
    }
}

impl DynamicFilters {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}

/// What the filters of a scan leave of its chunks.
pub(super) struct Examiner {
    array: Arc<GridArray>,
    plan: Arc<ScanPlan>,
    columns: Vec<Column>,
    schema: SchemaRef,
    filters: Vec<(Expr, DynamicFilterTracking)>,
    facts: ChunkFacts,
    /// The columns of the facts among the scan's.
    of_facts: Vec<usize>,
    /// What the filters say at the moment; `None` until that is needed.
    current: Option<Current>,
}

/// Filters as they were when last looked at.
#[derive(Default)]
struct Current {
    /// What rules out whole chunks.
    predicates: Vec<Arc<PruningPredicate>>,
    /// What selects indices of one axis.
    slices: Vec<Slice>,
}

/// A conjunct over one dimension.
struct Slice {
    axis: usize,
    columns: Vec<Column>,
    /// Over batches of these columns.
    predicate: Expr,
    schema: SchemaRef,
    /// By chunk coordinate the indices for which it is true, relative to the chunk.
    known: HashMap<u64, AxisSelection>,
}

impl Examiner {
    /// Examines chunks of `plan` by `filters`.
    pub(super) async fn new(
        array: &Arc<GridArray>,
        plan: &Arc<ScanPlan>,
        filters: DynamicFilters,
    ) -> Result<Self> {
        let DynamicFilters { filters, columns, schema } = filters;
        let of_facts = columns_of(&filters);
        let known: Vec<Column> = of_facts.iter().map(|&at| columns[at]).collect();
        let schema_of_facts = Arc::new(schema.project(&of_facts)?);
        let facts = ChunkFacts::gather(array, plan.selection(), &known, schema_of_facts).await?;
        let track = |filter: Expr| (Expr::clone(&filter), DynamicFilterTracking::classify(&filter));
        Ok(Self {
            array: Arc::clone(array),
            plan: Arc::clone(plan),
            columns,
            schema,
            filters: filters.into_iter().map(track).collect(),
            facts,
            of_facts,
            current: None,
        })
    }

    /// Whether a filter has changed since chunks were last examined.
    pub(super) fn has_news(&mut self) -> bool {
        let changed = |tracking: &mut DynamicFilterTracking| {
            tracking.watcher().is_some_and(|watcher| watcher.changed())
        };
        // Each must be asked: asking takes note.
        let news = self.filters.iter_mut().fold(false, |news, (_, it)| changed(it) || news);
        if news {
            self.current = None;
        }
        news || self.current.is_none()
    }

    /// What is left of each of some tasks of the plan; `None` where that is nothing.
    pub(super) fn examine(&mut self, tasks: Vec<ChunkTask>) -> Result<Vec<Option<ChunkTask>>> {
        self.has_news();
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.look()?,
        };
        let mut left: Vec<Option<ChunkTask>> = tasks.into_iter().map(Some).collect();
        self.drop_chunks(&current, &mut left)?;
        for slice in &mut current.slices {
            for place in &mut left {
                if let Some(task) = place.take() {
                    *place = self.sliced(slice, task);
                }
            }
        }
        self.current = Some(current);
        Ok(left)
    }

    fn drop_chunks(&self, current: &Current, left: &mut [Option<ChunkTask>]) -> Result<()> {
        for predicate in &current.predicates {
            let chunks = left.iter().flatten().map(|task| task.coordinates.as_slice());
            let places = self.facts.places_of(&chunks)?;
            let Some(keep) = self.facts.prune(predicate, &places) else { continue };
            let still_there = left.iter_mut().filter(|task| task.is_some());
            still_there.zip(keep).filter(|(_, keep)| !keep).for_each(|(task, _)| *task = None);
        }
        Ok(())
    }

    /// What the filters say now.
    fn look(&self) -> Result<Current> {
        let mut current = Current::default();
        for (filter, _) in &self.filters {
            let filter = snapshot_physical_expr(Arc::clone(filter))?;
            current.predicates.extend(self.facts.predicate(over_columns(&filter, &self.of_facts)?));
            for conjunct in split_conjunction(&filter) {
                current.slices.extend(self.slice(conjunct)?);
            }
        }
        Ok(current)
    }

    /// The conjunct as one that selects indices of an axis, if it is over one dimension.
    fn slice(&self, conjunct: &Expr) -> Result<Option<Slice>> {
        let needed = columns_of([conjunct]);
        let columns: Vec<Column> = needed.iter().map(|&at| self.columns[at]).collect();
        let Some(axis) = columns.first().and_then(|column| column.axis()) else { return Ok(None) };
        if columns.iter().any(|column| column.axis() != Some(axis)) {
            return Ok(None);
        }
        Ok(Some(Slice {
            axis,
            columns,
            predicate: over_columns(conjunct, &needed)?,
            schema: Arc::new(self.schema.project(&needed)?),
            known: HashMap::new(),
        }))
    }

    /// What `slice` leaves of a task.
    fn sliced(&self, slice: &mut Slice, mut task: ChunkTask) -> Option<ChunkTask> {
        let (axis, chunk) = (slice.axis, task.coordinates[slice.axis]);
        let wanted = match slice.known.get(&chunk) {
            Some(wanted) => wanted,
            None => {
                let range = self.array.grid().axis_range(axis, chunk);
                let selected = self.plan.selection().axes()[axis].within(range.clone());
                let Slice { predicate, columns, schema, .. } = &*slice;
                let wanted =
                    select_labels(predicate, &self.array, columns, schema, &selected, range.start);
                // Whoever pushed the filter down evaluates it again.
                let wanted = wanted.unwrap_or_else(|error| {
                    log::debug!("no row is skipped by {}: {error}", slice.predicate);
                    selected
                });
                slice.known.entry(chunk).or_insert(wanted)
            }
        };
        let left = task.selection[axis].intersect(wanted);
        task.selection[axis] = left;
        task.rows = task.selection.iter().map(AxisSelection::count).product();
        (task.rows > 0).then_some(task)
    }
}
