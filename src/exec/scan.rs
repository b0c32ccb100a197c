//! [`GridScanExec`]: one array, or the selected part of it, as a stream of record batches.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, CardinalityEffect, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};

use super::metrics::ScanMetrics;
use super::stream::GridStream;
use super::{display, order, stats, to_datafusion, without_children};
use crate::scan::{Column, GridArray, ScanPlan};

/// Scans the chunks of a plan; partition `i` yields the rows of `plan.tasks(i)` in row-major order
/// of the grid, each chunk's cells in row-major order of the chunk.
///
/// ```text
/// GridScanExec: dataset=temperature, chunks=1/64, selection=[station=ST00007], projection=[time, value]
/// ```
#[derive(Debug, Clone)]
pub struct GridScanExec {
    array: Arc<GridArray>,
    /// What to read; free of handles.
    plan: Arc<ScanPlan>,
    /// Columns of the array's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
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
        let properties = Arc::new(properties(&array, &plan, &projection, &schema)?);
        Ok(Self {
            array,
            plan,
            projection,
            schema,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// The array that is scanned.
    pub fn array(&self) -> &Arc<GridArray> {
        &self.array
    }

    /// What of it is read.
    pub fn plan(&self) -> &Arc<ScanPlan> {
        &self.plan
    }

    /// The same scan of another part of the array.
    ///
    /// # Errors
    /// Never; the projection is known to fit.
    pub(super) fn over_plan(&self, plan: Arc<ScanPlan>) -> Result<Self> {
        Self::try_new(Arc::clone(&self.array), plan, self.projection.clone())
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
) -> Result<PlanProperties> {
    let columns: Vec<Column> = projection.iter().map(|&column| array.columns()[column]).collect();
    Ok(PlanProperties::new(
        order::equivalences(array, plan, &columns, schema)?,
        Partitioning::UnknownPartitioning(plan.partition_count()),
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
        parts.extend(self.plan.limit().map(|limit| format!("limit={limit}")));
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
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
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
            ScanMetrics::new(&self.metrics, partition, &self.plan, partition, self.plan.chunks());
        let stream = GridStream::new(
            Arc::clone(&self.array),
            Arc::clone(&self.plan),
            partition,
            self.columns(),
            Arc::clone(&self.schema),
            &context,
            metrics,
        );
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
            stats::statistics(&self.array, &self.plan, &self.columns(), args.partition());
        statistics.map(Arc::new).map_err(to_datafusion)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let plan = self.plan.with_limit(limit.map(|limit| limit as u64));
        let partitioning = Partitioning::UnknownPartitioning(plan.partition_count());
        let properties = PlanProperties::clone(&self.properties).with_partitioning(partitioning);
        Some(Arc::new(Self {
            plan: Arc::new(plan),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.limit().map(|limit| limit as usize)
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
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
        Ok(Some(Arc::new(scan)))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
