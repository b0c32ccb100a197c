//! [`SparseScanExec`]: the operator that yields the visible cells of a sparse array as record batches.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::display;
use super::metrics::SparseMetrics;
use super::plan::{SparsePlan, TileTask};
use super::properties::{properties, statistics};
use super::pruner::Pruner;
use super::stream::SparseStream;
use super::tile_reader::TileReader;
use crate::array::{SparseArray, SparseFragment};
use crate::exec::columns::visit_all;
use crate::exec::display::{filters as shown_filters, tree};
use crate::exec::leaf::without_children;
use crate::exec::pruning::dynamic::dynamic_filters;
use crate::source::TableOrigin;

/// An operator that scans the tiles of a [`SparsePlan`], and returns a row per visible cell that the plan's
/// filters select.
///
/// ```text
/// SparseScanExec: array=points, fragments=1/1, tiles=3/124, filter=x@0 < 5, projection=[x, v]
/// ```
///
/// The scan also skips tiles and rows by dynamic filters (of a TopK or a hash join). These filters only save
/// work: the operator above evaluates them again.
#[derive(Debug, Clone)]
pub struct SparseScanExec {
    array: Arc<SparseArray>,
    /// The places, format and options of the array; `None` if the caller opened it.
    origin: Option<Arc<TableOrigin>>,
    plan: Arc<SparsePlan>,
    /// Columns of the array's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
    /// Dynamic filters over the output columns; rows for which one is not true may be left out.
    filters: Vec<PhysicalExprRef>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl SparseScanExec {
    /// Makes a scan of `array` by `plan`; `projection` lists columns of the array's schema.
    ///
    /// # Errors
    /// If the projection lists a column that the schema does not have.
    pub fn try_new(
        array: Arc<SparseArray>,
        plan: impl Into<Arc<SparsePlan>>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let plan = plan.into();
        let schema = Arc::new(array.schema().project(&projection)?);
        let properties = Arc::new(properties(&array, &plan, &projection, &schema));
        let metrics = ExecutionPlanMetricsSet::new();
        let (origin, filters) = (None, vec![]);
        Ok(Self { array, origin, plan, projection, schema, filters, metrics, properties })
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

    /// Returns the same scan with these dynamic filters over the output columns.
    pub fn with_filters(self, filters: Vec<PhysicalExprRef>) -> Self {
        Self { filters, ..self }
    }

    /// Returns the columns of the array's schema, in output order, and the dynamic filters over them.
    pub fn pushed_down(&self) -> (&[usize], &[PhysicalExprRef]) {
        (&self.projection, &self.filters)
    }

    /// Returns the array that is scanned.
    pub fn array(&self) -> &Arc<SparseArray> {
        &self.array
    }

    /// Returns the column of the table that an output column is.
    pub(super) fn table_column(&self, output: usize) -> Option<usize> {
        self.projection.get(output).copied()
    }

    /// Whether there may be tiles that the query sees whole.
    pub(super) fn has_answers(&self) -> bool {
        self.plan.partitions.iter().any(|it| it.tiles.iter().any(|task| task.is_inside))
    }

    /// Returns the same scan, which reads only `tiles` in one partition besides those to merge.
    pub(super) fn with_tiles(&self, partition: usize, tiles: Vec<TileTask>) -> Self {
        let mut plan = SparsePlan::clone(&self.plan);
        if let Some(tasks) = plan.partitions.get_mut(partition) {
            tasks.tiles = tiles;
        }
        Self { plan: Arc::new(plan), ..self.clone() }
    }

    /// Returns `count` scans that together yield the rows of this one, in as many partitions each.
    pub fn shares(&self, count: usize) -> Vec<Self> {
        let fragments = self.array.source().fragments();
        let cells = |task: &TileTask| fragments[task.tile.fragment].cells_of(task.tile.tile);
        let share = |plan: SparsePlan| {
            let metrics = ExecutionPlanMetricsSet::new();
            Self { plan: Arc::new(plan), metrics, ..self.clone() }
        };
        self.plan.shares(cells, count).into_iter().map(share).collect()
    }

    /// Returns the position of the first tile that is read among all tiles of the array, and their number.
    pub fn first_tile(&self) -> (u64, u64) {
        let tasks = || self.plan.partitions.iter();
        let merged = tasks().flat_map(|it| &it.merges).flat_map(|merge| &merge.tiles);
        let mut read = tasks().flat_map(|it| &it.tiles).chain(merged);
        let of = |fragments: &[SparseFragment]| fragments.iter().map(|it| it.tiles).sum::<u64>();
        let fragments = self.array.source().fragments();
        let position = |task: &TileTask| of(&fragments[..task.tile.fragment]) + task.tile.tile;
        (read.next().map_or(0, position), of(fragments))
    }

    /// Returns the plan, which lists the tiles to read.
    pub fn plan(&self) -> &Arc<SparsePlan> {
        &self.plan
    }
}

impl DisplayAs for SparseScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut parts = display::parts(&self.array, &self.plan);
        parts.push(format!("projection=[{}]", columns.join(", ")));
        parts.extend(self.plan.limit.map(|limit| format!("limit={limit}")));
        parts.extend(shown_filters(&self.filters));
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "SparseScanExec: {}", parts.join(", "))
            }
            DisplayFormatType::TreeRender => tree(&parts, f),
        }
    }
}

impl ExecutionPlan for SparseScanExec {
    fn name(&self) -> &'static str {
        "SparseScanExec"
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
        let Some(tasks) = self.plan.partitions.get(partition) else {
            return internal_err!("SparseScanExec has no partition {partition}");
        };
        let metrics = SparseMetrics::new(&self.metrics, partition, &self.plan.counts);
        let pruner = Pruner::new(&self.array, &self.plan.known, &self.filters, &self.projection)?;
        let reader = TileReader::new(
            Arc::clone(&self.array),
            Arc::clone(&self.plan),
            (self.projection.clone(), Arc::clone(&self.schema)),
            metrics,
            pruner,
            format!("SparseScanExec[{partition}]"),
            &context,
        );
        let batch_size = context.session_config().batch_size();
        let schema = Arc::clone(&self.schema);
        let stream = SparseStream::new(reader, tasks.clone(), schema, batch_size);
        // Nothing runs before the first poll. The stream owns the state and passes it from batch to batch.
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
        let statistics = statistics(&self.array, &self.plan, &self.projection, args.partition())?;
        // With dynamic filters, some of the planned rows do not come.
        let exact = self.filters.is_empty();
        Ok(Arc::new(if exact { statistics } else { statistics.to_inexact() }))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        if !self.filters.is_empty() {
            return None; // the limit would count rows that the filters may leave out
        }
        let plan = Arc::new(self.plan.with_limit(limit));
        let metrics = ExecutionPlanMetricsSet::new();
        Some(Arc::new(Self { plan, metrics, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.limit
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(dynamic_filters(phase, pushed, |filters| {
            // A limit counts rows before filters.
            let filters = [self.filters.clone(), filters].concat();
            let metrics = ExecutionPlanMetricsSet::new();
            self.plan.limit.is_none().then(|| Self { filters, metrics, ..self.clone() })
        }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // After a reset, operators above make new filters, which they do not push down again.
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { filters: vec![], metrics, ..Self::clone(&self) }))
    }

    /// Returns a scan of fewer or reordered columns, which replaces the projection; `None` if the
    /// projection computes or renames anything.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !self.filters.is_empty() {
            return Ok(None); // they refer to the current output columns
        }
        let kept = |projected: &ProjectionExpr| {
            let column = projected.expr.downcast_ref::<PhysicalColumn>()?;
            // A column under another name needs a node that renames it.
            (column.name() == projected.alias).then(|| self.projection[column.index()])
        };
        let columns = projection.expr().iter().map(kept).collect::<Option<Vec<usize>>>();
        let scan =
            |columns| Self::try_new(Arc::clone(&self.array), Arc::clone(&self.plan), columns);
        Ok(match columns {
            Some(columns) => Some(Arc::new(scan(columns)?.with_origin(self.origin.clone()))),
            None => None,
        })
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
