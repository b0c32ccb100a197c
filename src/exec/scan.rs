//! [`GridScanExec`]: the operator that yields the selected part of an array as record batches.
//!
//! The table makes a scan with a finished plan. DataFusion's optimizer then offers the scan more, and
//! each answer is a new scan over a changed plan or with more fields:
//!
//! ```text
//!   projection    fewer columns                       try_swapping_with_projection
//!   order         rows in order, or best chunks first try_pushdown_sort
//!   limit         fewer chunks                        with_fetch
//!   filters       chunks skipped while running        handle_child_pushdown_result
//! ```
//!
//! Some exclude each other. A limit counts rows in one order and before filters, so with a limit the scan
//! accepts neither. Filters drop chunks one by one, so they do not go together with slabs of interleaved
//! chunks.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
#[cfg(feature = "codec")]
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use super::batches::{Batches, stream_of};
use super::blocks::values_of;
use super::chunk_memory::budget;
use super::columns::picked;
use super::metrics::ScanMetrics;
use super::operator::{Frame, Operator, operator_methods, shown_by_text, take_filters};
use super::pruning::dynamic::never_null;
use super::pruning::{DynamicFilters, Priority};
use super::stream::{GridStream, StreamInput};
use super::{display, order, stats};
use crate::array::{ColumnSource, GridArray};
use crate::grid::Selection;
use crate::plan::ScanPlan;
use crate::source::TableOrigin;

/// An operator that scans the chunks of a [`ScanPlan`]: partition `i` yields the rows of `plan.tasks(i)`.
/// Unless another order is pushed down, chunks come in row-major order of the grid, and cells in row-major
/// order of their chunk.
///
/// ```text
/// GridScanExec: dataset=temperature, chunks=1/64, selection=[station=ST00007], projection=[time, value]
/// ```
///
/// The scan checks each chunk against dynamic filters (of a TopK or a hash join) before it reads the
/// chunk. These filters only save work: the operator above evaluates them again.
#[derive(Debug, Clone)]
pub struct GridScanExec {
    array: Arc<GridArray>,
    /// The places, format and options of the array; `None` if the caller opened it.
    origin: Option<Arc<TableOrigin>>,
    /// The chunks and cells to read; holds no open files.
    plan: Arc<ScanPlan>,
    /// Columns of the array's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
    /// The pushed-down order, over the output columns; the plan reads rows in this order.
    ordering: Vec<PhysicalSortExpr>,
    /// Columns of the array's schema whose NULL rows are not needed.
    non_null_columns: Vec<usize>,
    /// The sort key whose best chunks make the filters strict soonest.
    priority: Option<Priority>,
    /// Bytes that the chunks of slabs may take, in all partitions together.
    budget: u64,
    /// Whether the memory pool has a limit, of which the budget is a share.
    is_limited: bool,
    /// The reason why an operator above aggregates or moves over rows, for `EXPLAIN`.
    rows_because: Option<Arc<str>>,
    frame: Frame,
}

/// The columns, order and filters that the optimizer pushed down to a scan.
#[cfg(feature = "codec")]
#[derive(Debug, Clone, Default)]
pub(crate) struct PushedDown {
    /// Columns of the array's schema, in output order.
    pub(crate) projection: Vec<usize>,
    /// The order of the rows, over the output columns.
    pub(crate) ordering: Vec<PhysicalSortExpr>,
    /// Dynamic filters over the output columns.
    pub(crate) filters: Vec<PhysicalExprRef>,
    /// Columns of the array's schema whose NULL rows are not needed.
    pub(crate) non_null_columns: Vec<usize>,
    /// The column of the array's schema whose first rows are read first.
    pub(crate) priority: Option<(usize, SortOptions)>,
}

impl GridScanExec {
    /// Makes a scan of `array` by `plan`; `projection` lists columns of the array's schema.
    ///
    /// # Errors
    /// If the projection lists a column that the schema does not have.
    pub fn try_new(
        array: Arc<GridArray>,
        plan: impl Into<Arc<ScanPlan>>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let plan = plan.into();
        let schema = Arc::new(array.schema().project(&projection)?);
        let columns = sources(&array, &projection);
        let properties = order::properties(&array, &plan, &columns, &schema, &[])?;
        Ok(Self {
            budget: budget(&array, &MemoryLimit::Unknown),
            is_limited: false,
            array,
            origin: None,
            plan,
            projection,
            schema,
            ordering: vec![],
            non_null_columns: vec![],
            priority: None,
            rows_because: None,
            frame: Frame::new(properties),
        })
    }

    /// Sets the session's memory limit. For a pushed-down order the scan must hold slabs of chunks. It
    /// accepts the order only if they fit into its share of the limit.
    #[must_use = "the scan is not changed in place"]
    pub fn with_memory_limit(self, limit: &MemoryLimit) -> Self {
        let is_limited = matches!(limit, MemoryLimit::Finite(_));
        Self { budget: budget(&self.array, limit), is_limited, ..self }
    }

    /// Takes over the share of memory of another scan of the session.
    #[must_use = "the scan is not changed in place"]
    pub(super) fn with_budget_of(self, other: &Self) -> Self {
        Self { budget: other.budget, is_limited: other.is_limited, ..self }
    }

    /// Sets what the array was opened from.
    #[must_use = "the scan is not changed in place"]
    pub fn with_origin(self, origin: Option<Arc<TableOrigin>>) -> Self {
        Self { origin, ..self }
    }

    /// Returns what the array was opened from; `None` if the caller opened it.
    pub fn origin(&self) -> Option<&Arc<TableOrigin>> {
        self.origin.as_ref()
    }

    /// Returns what was pushed down to the scan, for another process to make the same.
    #[cfg(feature = "codec")]
    pub(crate) fn pushed_down(&self) -> PushedDown {
        PushedDown {
            projection: self.projection.clone(),
            ordering: self.ordering.clone(),
            filters: self.frame.filters().to_vec(),
            non_null_columns: self.non_null_columns.clone(),
            priority: self.priority.map(|it| (it.column, it.options)),
        }
    }

    /// Makes the scan again to which all this was pushed down.
    ///
    /// # Errors
    /// If columns are not those of the array.
    #[cfg(feature = "codec")]
    pub(crate) fn from_pushed_down(
        array: Arc<GridArray>,
        plan: impl Into<Arc<ScanPlan>>,
        pushed: PushedDown,
    ) -> Result<Self> {
        let columns = array.schema().fields().len();
        let known = pushed.non_null_columns.iter().chain(pushed.priority.as_ref().map(|it| &it.0));
        if known.clone().any(|column| *column >= columns) {
            return internal_err!("a scan of columns that the array does not have");
        }
        let scan = Self::try_new(array, plan, pushed.projection)?;
        let plan = Arc::clone(&scan.plan);
        let scan = scan.ordered(plan, pushed.ordering)?;
        let priority = pushed.priority.map(|(column, options)| Priority { column, options });
        let non_null_columns = pushed.non_null_columns;
        let frame = scan.frame.clone().with_filters(pushed.filters);
        Ok(Self { frame, non_null_columns, priority, ..scan })
    }

    /// Returns the array that is scanned.
    pub fn array(&self) -> &Arc<GridArray> {
        &self.array
    }

    /// Returns the selection if the scan shows each of its cells: no limit, filter or mask leaves one out.
    pub fn whole_box(&self) -> Option<&Selection> {
        let is_whole = self.plan.is_selection() && self.frame.filters().is_empty();
        is_whole.then(|| self.plan.selection())
    }

    /// Returns the plan, which lists the chunks and cells to read.
    pub(crate) fn plan(&self) -> &Arc<ScanPlan> {
        &self.plan
    }

    /// Returns `count` scans that together yield the rows of this one, in as many partitions each.
    ///
    /// # Errors
    /// Internal errors only: the projection is known to fit.
    pub fn shares(&self, count: usize) -> Result<Vec<Self>> {
        self.plan.shares(count).into_iter().map(|plan| self.over_plan(plan)).collect()
    }

    /// Returns the scan without chunks of the first `skip` rows, and the number of rows that are left out. `None` if there is no
    /// such chunk, or if not each of the rows is skipped or one of the `fetch` rows behind them.
    ///
    /// # Errors
    /// Internal errors only: the projection is known to fit.
    pub(super) fn skipping(
        &self,
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Option<(Self, usize)>> {
        let needed = fetch.map(|fetch| fetch.saturating_add(skip) as u64);
        let is_short = |limit: u64| needed.is_none_or(|needed| limit < needed);
        if !self.frame.filters().is_empty() || self.plan.limit().is_some_and(is_short) {
            return Ok(None);
        }
        let (plan, rows) = self.plan.skipping(skip as u64, fetch.map(|fetch| fetch as u64));
        if rows == 0 {
            return Ok(None);
        }
        Ok(Some((self.over_plan(plan)?, rows as usize)))
    }

    /// Returns the same scan by another plan.
    ///
    /// # Errors
    /// Internal errors only: the projection is known to fit.
    pub(super) fn over_plan(&self, plan: impl Into<Arc<ScanPlan>>) -> Result<Self> {
        self.ordered(plan, self.ordering.clone())
    }

    /// Returns the same scan by a plan whose rows are in the pushed-down `ordering`.
    fn ordered(
        &self,
        plan: impl Into<Arc<ScanPlan>>,
        ordering: Vec<PhysicalSortExpr>,
    ) -> Result<Self> {
        let plan = plan.into();
        let properties =
            order::properties(&self.array, &plan, &self.columns(), &self.schema, &ordering)?;
        let frame = Frame::new(properties).with_filters(self.frame.filters().to_vec());
        Ok(Self { plan, ordering, frame, ..self.clone() })
    }

    /// Returns the dynamic filters, and the columns that they refer to.
    fn chunk_filters(&self) -> DynamicFilters {
        let is_non_null = |at: &usize| self.non_null_columns.contains(&self.projection[*at]);
        DynamicFilters {
            filters: self.frame.filters().to_vec(),
            columns: self.columns(),
            schema: Arc::clone(&self.schema),
            non_null_columns: (0..self.projection.len()).filter(is_non_null).collect(),
        }
    }

    /// Returns the same scan, which reads the chunks with the first rows by an output column first, if it
    /// has dynamic filters.
    pub(super) fn reading_first(&self, column: usize, options: SortOptions) -> Self {
        let priority = Some(Priority { column: self.projection[column], options });
        Self { priority, ..self.clone() }
    }

    /// Returns the sort key whose best chunks are read first.
    fn priority(&self) -> Option<Priority> {
        let mut priority = self.priority?;
        // If NULL rows are not needed, chunks that may hold them are not the best ones.
        priority.options.nulls_first &= !self.non_null_columns.contains(&priority.column);
        Some(priority)
    }

    /// Returns the same scan, which shows why an operator above runs over rows; `None` if it shows a reason already.
    pub(super) fn for_rows(&self, reason: &Arc<str>) -> Option<Self> {
        let rows_because = Some(Arc::clone(reason));
        self.rows_because.is_none().then(|| Self { rows_because, ..self.clone() })
    }

    /// Whether the slabs that the scan must hold for rows in order of `ordered` axes fit in memory.
    fn fits(&self, ordered: usize) -> bool {
        /// Bytes that a chunk takes besides its cells.
        const PER_CHUNK: u64 = 1 << 10;
        let slab = self.plan.slab_shape(ordered);
        if slab.axes == self.array.grid().rank() {
            return true; // a slab is one chunk
        }
        // All chunks of a slab are open at once, whole, with every variable of the query.
        let values = values_of(&self.columns());
        let width = |&value: &usize| self.array.value(value).cell_bytes();
        let bytes = slab.cells.saturating_mul(values.iter().map(width).sum());
        let bytes = bytes.saturating_add(slab.chunks.saturating_mul(PER_CHUNK));
        // Nothing bounds the bytes of texts and lists before they are decoded.
        let is_fixed =
            |&value: &usize| self.array.value(value).data_type().primitive_width().is_some();
        bytes <= self.budget / self.plan.partition_count() as u64 && values.iter().all(is_fixed)
    }

    /// Returns the bytes that the chunks of slabs may take, in all partitions together.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// Whether the budget is a share of a limited memory pool.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Returns the schema of the output.
    pub(super) fn schema_ref(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the source of each output column.
    pub fn columns(&self) -> Vec<ColumnSource> {
        sources(&self.array, &self.projection)
    }
}

/// Returns the sources of some columns of an array's schema.
fn sources(array: &GridArray, projection: &[usize]) -> Vec<ColumnSource> {
    projection.iter().map(|&column| array.columns()[column]).collect()
}

shown_by_text!(GridScanExec);

impl Operator for GridScanExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let mut parts = display::parts(&self.array, &self.plan);
        parts.push(display::projection(&self.schema));
        parts.extend(display::order(&self.array, &self.plan));
        parts.extend(self.plan.limit().map(|limit| format!("limit={limit}")));
        parts.extend(self.rows_because.as_ref().map(|reason| format!("rows because {reason}")));
        parts
    }

    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        // The plan's limit counts rows before filters, and slabs are read whole.
        let is_free = self.plan.limit().is_none() && self.plan.reordered().is_none();
        if is_free { filters } else { vec![] }
    }

    fn pushed(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
    ) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
        if phase != FilterPushdownPhase::Pre {
            return take_filters(self, phase, pushed);
        }
        // Planning has applied static filters. They still show which NULL rows are not needed.
        let filters = pushed.parent_filters.iter().map(|parent| &parent.filter);
        let non_null = never_null(filters).into_iter().map(|column| self.projection[column]);
        let non_null_columns = [self.non_null_columns.clone(), non_null.collect()].concat();
        let result = FilterPushdownPropagation::all_unsupported(pushed);
        result.with_updated_node(Arc::new(Self { non_null_columns, ..self.clone() }))
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        stats::statistics(&self.array, &self.plan, &self.columns(), partition)
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (grid, pruned) = (self.plan.grid(), self.plan.pruned());
        let metrics = ScanMetrics::new(self.frame.metrics(), partition, grid, pruned);
        let input = StreamInput {
            array: Arc::clone(&self.array),
            plan: Arc::clone(&self.plan),
            columns: self.columns(),
            schema: Arc::clone(&self.schema),
            filters: self.chunk_filters(),
            priority: self.priority(),
        };
        let batches = GridStream::new(input, partition, &context, metrics).into_stream();
        Ok(stream_of(Arc::clone(&self.schema), batches))
    }
}

impl ExecutionPlan for GridScanExec {
    operator_methods!();

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        if !self.frame.filters().is_empty() {
            return None; // the plan's limit would count rows that the filters may leave out
        }
        let limited = self.over_plan(self.plan.with_limit(limit.map(|limit| limit as u64)));
        limited.ok().map(|scan| Arc::new(scan) as _)
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.limit().map(|limit| limit as usize)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        if self.plan.limit().is_some() || !self.frame.filters().is_empty() {
            // A limit has chosen rows in the current order, and filters need chunks that are read one by
            // one.
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let columns = self.columns();
        // Exact: the plan reads in this order, and DataFusion removes its sort.
        if let Some(descending) = order::by_axes(&self.array, &self.plan, &columns, order)
            && self.fits(descending.len())
        {
            let scan = self.ordered(self.plan.in_order(descending), order.to_vec())?;
            return Ok(SortOrderPushdownResult::Exact { inner: Arc::new(scan) });
        }
        // Inexact: the sort stays, and its filter becomes strict sooner if the best chunks come first.
        let first =
            order.first().and_then(|key| Some((key, key.expr.downcast_ref::<PhysicalColumn>()?)));
        Ok(match first {
            Some((key, column)) => {
                let inner = Arc::new(self.reading_first(column.index(), key.options));
                SortOrderPushdownResult::Inexact { inner }
            }
            None => SortOrderPushdownResult::Unsupported,
        })
    }

    /// Returns a scan of fewer or reordered columns, which replaces the projection; `None` if the
    /// projection computes or renames anything.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !self.frame.filters().is_empty() || !self.ordering.is_empty() {
            return Ok(None); // they refer to the current output columns
        }
        let Some(columns) = picked(projection) else { return Ok(None) };
        let columns = columns.into_iter().map(|column| self.projection[column]).collect();
        let scan = Self::try_new(Arc::clone(&self.array), Arc::clone(&self.plan), columns)?;
        let (non_null_columns, origin) = (self.non_null_columns.clone(), self.origin.clone());
        let rows_because = self.rows_because.clone();
        let priority = self.priority;
        let scan = Self { non_null_columns, origin, priority, rows_because, ..scan };
        Ok(Some(Arc::new(scan.with_budget_of(self))))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
