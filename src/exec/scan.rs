//! [`GridScanExec`]: one array, or the selected part of it, as a stream of record batches.

use std::fmt;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SortOrderPushdownResult,
};

use super::chunks::budget;
use super::columns::{Expr, visit_all};
use super::dynamic::{DynamicFilters, dynamic_filters, never_null};
use super::metrics::ScanMetrics;
use super::priority::Priority;
use super::stream::{GridStream, values_of};
use super::{display, order, stats, to_datafusion, without_children};
use crate::array::{Column, GridArray};
use crate::plan::ScanPlan;

/// Scans the chunks of a plan; partition `i` yields the rows of `plan.tasks(i)`. Unless another order is
/// pushed down to it, chunks come in row-major order of the grid, and the cells of each in row-major
/// order of the chunk.
///
/// ```text
/// GridScanExec: dataset=temperature, chunks=1/64, selection=[station=ST00007], projection=[time, value]
/// ```
///
/// Filters that become known while the query runs (of a TopK, of a hash join) are asked about each chunk
/// before it is read. They only spare work: whoever pushes one down evaluates it again.
#[derive(Debug, Clone)]
pub struct GridScanExec {
    array: Arc<GridArray>,
    /// What to read; free of handles.
    plan: Arc<ScanPlan>,
    /// Columns of the array's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
    /// The order that was pushed down; over the output columns, as the plan reads them.
    asked: Vec<PhysicalSortExpr>,
    /// Rows for which one of these is not true need not be yielded; over the output columns.
    filters: Vec<Expr>,
    /// Columns of the array's schema that are NULL in no row that is wanted.
    present: Vec<usize>,
    /// Which chunks those filters profit from most.
    priority: Option<Priority>,
    /// Bytes that chunks which are held together may take, in all partitions.
    budget: u64,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl GridScanExec {
    /// Scans `plan` of `array`; `projection` lists columns of the array's schema.
    ///
    /// # Errors
    /// If the projection names a column that is not there.
    pub fn try_new(
        array: Arc<GridArray>,
        plan: impl Into<Arc<ScanPlan>>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let plan = plan.into();
        let schema = Arc::new(array.schema().project(&projection)?);
        let properties = Arc::new(properties(&array, &plan, &projection, &schema, &[])?);
        Ok(Self {
            budget: budget(&array, &MemoryLimit::Unknown),
            array,
            plan,
            projection,
            schema,
            asked: vec![],
            filters: vec![],
            present: vec![],
            priority: None,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// The same scan in a session with this much memory: rows are read in another order than chunks
    /// only if the chunks that must be held together for it fit.
    #[must_use = "the scan is not changed in place"]
    pub fn with_memory_limit(self, limit: &MemoryLimit) -> Self {
        Self { budget: budget(&self.array, limit), ..self }
    }

    /// The array that is scanned.
    pub fn array(&self) -> &Arc<GridArray> {
        &self.array
    }

    /// What of it is read.
    pub fn plan(&self) -> &Arc<ScanPlan> {
        &self.plan
    }

    /// The same scan by another plan.
    ///
    /// # Errors
    /// Never; the projection is known to fit.
    pub(super) fn over_plan(&self, plan: impl Into<Arc<ScanPlan>>) -> Result<Self> {
        self.ordered(plan, self.asked.clone())
    }

    /// The same scan by a plan whose rows are in the order that was `asked` for.
    fn ordered(
        &self,
        plan: impl Into<Arc<ScanPlan>>,
        asked: Vec<PhysicalSortExpr>,
    ) -> Result<Self> {
        let plan = plan.into();
        let properties = properties(&self.array, &plan, &self.projection, &self.schema, &asked)?;
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { plan, asked, properties: Arc::new(properties), metrics, ..self.clone() })
    }

    /// What was pushed down to it while the query runs.
    pub(super) fn filters(&self) -> DynamicFilters {
        let is_present = |at: &usize| self.present.contains(&self.projection[*at]);
        DynamicFilters {
            filters: self.filters.clone(),
            columns: self.columns(),
            schema: Arc::clone(&self.schema),
            present: (0..self.projection.len()).filter(is_present).collect(),
        }
    }

    /// The same scan, with the chunks first that have the first rows by this output column, if filters
    /// profit from that.
    pub(super) fn reading_first(&self, column: usize, options: SortOptions) -> Self {
        let priority = Some(Priority { column: self.projection[column], options });
        Self { priority, ..self.clone() }
    }

    /// Which chunks to read first.
    pub(super) fn priority(&self) -> Option<Priority> {
        let mut priority = self.priority?;
        priority.options.nulls_first &= !self.present.contains(&priority.column);
        Some(priority)
    }

    /// Whether chunks of this plan, as many as are held together for `ordered` axes in order, fit in
    /// memory.
    fn fits(&self, ordered: usize) -> bool {
        /// What is kept of each chunk besides its cells, in bytes.
        const PER_CHUNK: u64 = 1 << 10;
        let slab = self.plan.slab_shape(ordered);
        if slab.axes == self.array.grid().rank() {
            return true; // one chunk at a time, as ever
        }
        let values = values_of(&self.columns());
        let width = |&value: &usize| self.array.value(value).cell_bytes();
        let bytes = slab.cells.saturating_mul(values.iter().map(width).sum());
        let bytes = bytes.saturating_add(slab.chunks.saturating_mul(PER_CHUNK));
        let is_fixed =
            |&value: &usize| self.array.value(value).data_type().primitive_width().is_some();
        bytes <= self.budget / self.plan.partition_count() as u64 && values.iter().all(is_fixed)
    }

    /// The schema of the output.
    pub(super) fn schema_ref(&self) -> &SchemaRef {
        &self.schema
    }

    /// What each output column shows.
    pub fn columns(&self) -> Vec<Column> {
        self.projection.iter().map(|&column| self.array.columns()[column]).collect()
    }
}

fn properties(
    array: &GridArray,
    plan: &ScanPlan,
    projection: &[usize],
    schema: &SchemaRef,
    asked: &[PhysicalSortExpr],
) -> Result<PlanProperties> {
    let columns: Vec<Column> = projection.iter().map(|&column| array.columns()[column]).collect();
    Ok(PlanProperties::new(
        order::equivalences(array, plan, &columns, schema, asked),
        order::partitioning(array, plan, &columns, schema)?,
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for GridScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut parts = display::parts(&self.array, &self.plan);
        parts.push(format!("projection=[{}]", columns.join(", ")));
        parts.extend(display::order(&self.array, &self.plan));
        parts.extend(self.plan.limit().map(|limit| format!("limit={limit}")));
        parts.extend(display::filters(&self.filters));
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "GridScanExec: {}", parts.join(", "))
            }
            DisplayFormatType::TreeRender => {
                parts.iter().try_for_each(|part| writeln!(f, "{part}"))
            }
        }
    }
}

impl ExecutionPlan for GridScanExec {
    fn name(&self) -> &'static str {
        "GridScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_all(&self.filters, visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        without_children(self, &children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        without_children(self, &children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.plan.partition_count() {
            return internal_err!("GridScanExec has no partition {partition}");
        }
        let metrics =
            ScanMetrics::new(&self.metrics, partition, self.plan.grid(), self.plan.pruned());
        let stream = GridStream::new(self, partition, &context, metrics);
        let batches = futures::stream::try_unfold(stream, |mut stream| async move {
            let batch = stream.next().await?;
            Ok(batch.map(|batch| (batch, stream)))
        });
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), Box::pin(batches));
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let statistics =
            stats::statistics(&self.array, &self.plan, &self.columns(), args.partition())
                .map_err(to_datafusion)?;
        let exact = self.filters.is_empty();
        Ok(Arc::new(if exact { statistics } else { statistics.to_inexact() }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        if !self.filters.is_empty() {
            return None; // a limit on fewer rows is another limit
        }
        let limited = self.over_plan(self.plan.with_limit(limit.map(|limit| limit as u64)));
        limited.ok().map(|scan| Arc::new(scan) as _)
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.limit().map(|limit| limit as usize)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        if phase == FilterPushdownPhase::Pre {
            // Static filters were looked at when the scan was planned, but for what is wanted of NULLs.
            let filters = pushed.parent_filters.iter().map(|parent| &parent.filter);
            let present = never_null(filters).into_iter().map(|column| self.projection[column]);
            let present = [self.present.clone(), present.collect()].concat();
            let result = FilterPushdownPropagation::all_unsupported(pushed);
            return Ok(result.with_updated_node(Arc::new(Self { present, ..self.clone() })));
        }
        Ok(dynamic_filters(phase, pushed, |filters| {
            // A limit is one on rows before any filter, and slabs are read whole.
            let is_free = self.plan.limit().is_none() && self.plan.reordered().is_none();
            let filters = [self.filters.clone(), filters].concat();
            let metrics = ExecutionPlanMetricsSet::new();
            is_free.then(|| Self { filters, metrics, ..self.clone() })
        }))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        if self.plan.limit().is_some() || !self.filters.is_empty() {
            // A limit chose its rows in the order there is, and filters are for chunks one by one.
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let columns = self.columns();
        if let Some(descending) = order::by_axes(&self.array, &self.plan, &columns, order)
            && self.fits(descending.len())
        {
            let scan = self.ordered(self.plan.in_order(descending), order.to_vec())?;
            return Ok(SortOrderPushdownResult::Exact { inner: Arc::new(scan) });
        }
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // Those who pushed filters down get new ones, which they do not push down again.
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { filters: vec![], metrics, ..Self::clone(&self) }))
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !self.filters.is_empty() || !self.asked.is_empty() {
            return Ok(None); // they are over the columns that there are
        }
        let kept = |projected: &ProjectionExpr| {
            let column = projected.expr.downcast_ref::<PhysicalColumn>()?;
            // A column under another name needs a node that renames it.
            (column.name() == projected.alias).then(|| self.projection[column.index()])
        };
        let Some(columns) = projection.expr().iter().map(kept).collect::<Option<Vec<usize>>>()
        else {
            return Ok(None);
        };
        let scan = Self::try_new(Arc::clone(&self.array), Arc::clone(&self.plan), columns)?;
        let present = self.present.clone();
        Ok(Some(Arc::new(Self { present, priority: self.priority, budget: self.budget, ..scan })))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
