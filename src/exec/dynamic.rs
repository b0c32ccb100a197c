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
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column as PhysicalColumn, DynamicFilterTracking, IsNotNullExpr, IsNullExpr,
    Literal, lit,
};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};

use super::columns::{Expr, columns_of, over_columns};
use super::prune::ChunkFacts;
use super::select::select_labels;
use crate::array::{Column, GridArray};
use crate::grid::{AxisSelection, ChunkTask};
use crate::plan::ScanPlan;

/// Hands the filters that may still change to `take`, which returns a node that knows them. None counts
/// as applied: whoever pushed one down evaluates it again.
pub(super) fn dynamic_filters<N: ExecutionPlan>(
    phase: FilterPushdownPhase,
    pushed: ChildPushdownResult,
    take: impl FnOnce(Vec<Expr>) -> Option<N>,
) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
    let refused = vec![PushedDown::No; pushed.parent_filters.len()];
    let result = FilterPushdownPropagation::with_parent_pushdown_result(refused);
    let is_dynamic =
        |filter: &Expr| DynamicFilterTracking::classify(filter).contains_dynamic_filter();
    let filters = pushed.parent_filters.into_iter().map(|parent| parent.filter);
    let filters: Vec<Expr> = filters.filter(is_dynamic).collect();
    if phase != FilterPushdownPhase::Post || filters.is_empty() {
        return result;
    }
    match take(filters) {
        Some(node) => result.with_updated_node(Arc::new(node)),
        None => result,
    }
}

/// Filters that were pushed down to a scan.
#[derive(Debug, Clone)]
pub(super) struct DynamicFilters {
    pub(super) filters: Vec<Expr>,
    /// What each of the scan's columns, which filters are over, shows.
    pub(super) columns: Vec<Column>,
    /// The schema of these columns.
    pub(super) schema: SchemaRef,
    /// Which of these columns are NULL in no row that is wanted.
    pub(super) present: Vec<usize>,
}

impl Default for DynamicFilters {
    fn default() -> Self {
        Self {
            filters: vec![],
            columns: vec![],
            schema: Arc::new(Schema::empty()),
            present: vec![],
        }
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
    /// Columns of the scan that are NULL in no row that is wanted.
    present: Vec<usize>,
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
        let DynamicFilters { filters, columns, schema, present } = filters;
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
            present,
            current: None,
        })
    }

    /// Whether a filter has changed since chunks were last examined.
    pub(super) fn has_news(&mut self) -> bool {
        for (filter, tracking) in &mut self.filters {
            if tracking.watcher().is_some_and(|watcher| watcher.changed()) {
                *tracking = DynamicFilterTracking::classify(filter);
                self.current = None;
            }
        }
        self.current.is_none()
    }

    /// Whether a filter may still change.
    pub(super) fn expects_news(&self) -> bool {
        let may_change = |tracking| matches!(tracking, &DynamicFilterTracking::Watching(_));
        self.filters.iter().any(|(_, tracking)| may_change(tracking))
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
            let Some(filter) = snapshot(filter)? else { continue };
            let filter = without_nulls(filter, &self.present)?;
            if self.facts.know_anything() {
                let predicate = self.facts.predicate(over_columns(&filter, &self.of_facts)?);
                current.predicates.extend(predicate);
            }
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

/// What a filter says now; `None` if that cannot be relied on.
///
/// DataFusion 55 leaves an aggregate that has seen no value yet out of the filter of `min(a), max(b)`,
/// instead of letting everything pass for it. Such a filter is over fewer columns than it will be.
pub(super) fn snapshot(filter: &Expr) -> Result<Option<Expr>> {
    let now = snapshot_physical_expr(Arc::clone(filter))?;
    let columns = columns_of([&now]);
    let is_whole = columns.is_empty() || columns == columns_of([filter]);
    Ok(is_whole.then_some(now))
}

/// The columns of which `filters` let no NULL pass: those that are compared with something, or asked for
/// outright.
pub(super) fn never_null<'a>(filters: impl IntoIterator<Item = &'a Expr>) -> Vec<usize> {
    let mut columns = Vec::new();
    for conjunct in filters.into_iter().flat_map(split_conjunction) {
        if let Some(not_null) = conjunct.downcast_ref::<IsNotNullExpr>() {
            columns.extend(column_of(not_null.arg()));
        } else if let Some(compared) = conjunct.downcast_ref::<BinaryExpr>()
            && matches!(
                compared.op(),
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
            )
        {
            columns
                .extend(column_of(compared.left()).into_iter().chain(column_of(compared.right())));
        }
    }
    columns
}

fn column_of(expr: &Expr) -> Option<usize> {
    Some(expr.downcast_ref::<PhysicalColumn>()?.index())
}

/// `filter` where these columns are not NULL: `value IS NULL OR value > 3` is then `value > 3`, which rules
/// out chunks that hold NULLs besides.
fn without_nulls(filter: Expr, present: &[usize]) -> Result<Expr> {
    let is_false = |expr: &Expr| {
        let literal = expr.downcast_ref::<Literal>();
        literal.is_some_and(|literal| *literal.value() == ScalarValue::Boolean(Some(false)))
    };
    filter
        .transform_up(|expr| {
            if let Some(is_null) = expr.downcast_ref::<IsNullExpr>()
                && column_of(is_null.arg()).is_some_and(|column| present.contains(&column))
            {
                return Ok(Transformed::yes(lit(false)));
            }
            let either = expr.downcast_ref::<BinaryExpr>().filter(|it| *it.op() == Operator::Or);
            let left = either.and_then(|either| match (either.left(), either.right()) {
                (left, right) if is_false(left) => Some(Arc::clone(right)),
                (left, right) if is_false(right) => Some(Arc::clone(left)),
                _ => None,
            });
            Ok(left.map_or_else(|| Transformed::no(expr), Transformed::yes))
        })
        .data()
}
