//! [`GridTopExec`]: the operator that leaves out rows which cannot be among the first of their partition.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::grid_top::GridTop;
use super::stream;
use super::top_of::TopOf;
use crate::error::Error;
use crate::exec::columns::visit_all;
use crate::exec::leaf::without_children;
use crate::exec::{GridScanExec, display, order};

/// An operator that leaves out the rows of a scan which cannot be among the first of their partition of a window. The others stay
/// in the order of the scan, and the window above numbers them.
///
/// ```text
/// GridTopExec: first=3, by=value@3 DESC, gby=[lat@1], dataset=sst, chunks=240/240, projection=[time, lat, lon, value]
/// ```
///
/// [`GridTopRule`](super::GridTopRule) plans the operator. It has no children: it holds the scan's array and plan, so no
/// optimizer rule that runs later changes either.
#[derive(Debug, Clone)]
pub struct GridTopExec {
    grid_top: Arc<GridTop>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl GridTopExec {
    /// Makes the operator. `None` if a key is not over one dimension, or the sort key has no order that can be compared.
    pub(super) fn over(scan: &GridScanExec, top: TopOf) -> Result<Option<Self>> {
        let Some(grid_top) = GridTop::of(scan, top)? else { return Ok(None) };
        let (array, plan) = (scan.array(), scan.plan());
        let projection = scan.pushed_down().projection;
        let properties = order::properties(array, plan, &projection, scan.schema_ref(), &[])?;
        let (metrics, properties) = (ExecutionPlanMetricsSet::new(), Arc::new(properties));
        Ok(Some(Self { grid_top: Arc::new(grid_top), metrics, properties }))
    }

    /// Returns the bytes that the best keys take in all partitions of the plan.
    pub(super) fn bytes(&self) -> u64 {
        self.grid_top.bytes()
    }

    /// Makes an operator that was planned before.
    ///
    /// # Errors
    /// `Unsupported` if it cannot be made here.
    pub fn as_planned(scan: &GridScanExec, top: TopOf) -> Result<Self> {
        let message = "the first rows of partitions cannot be found here as it was planned";
        Ok(Self::over(scan, top)?.ok_or_else(|| Error::unsupported(message))?)
    }

    /// Returns `count` operators over shares of the scan.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn shares(&self, count: usize) -> Result<Vec<Self>> {
        let shares = self.grid_top.scan.shares(count)?.into_iter();
        shares.map(|scan| Self::as_planned(&scan, self.grid_top.top.clone())).collect()
    }

    /// Returns the scan whose rows are read.
    pub fn scan(&self) -> &GridScanExec {
        &self.grid_top.scan
    }

    /// Returns the rows to keep.
    pub fn top(&self) -> &TopOf {
        &self.grid_top.top
    }

    /// Returns the parts of the text in `EXPLAIN`.
    fn text(&self) -> Vec<String> {
        let TopOf { count, partition_by, order, predicate, .. } = &self.grid_top.top;
        let keys: Vec<String> = partition_by.iter().map(ToString::to_string).collect();
        let columns: Vec<&str> = self
            .grid_top
            .scan
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let mut parts = vec![
            format!("first={count}"),
            format!("by={order}"),
            format!("gby=[{}]", keys.join(", ")),
        ];
        parts.extend(predicate.as_ref().map(|predicate| format!("predicate={predicate}")));
        parts.extend(display::parts(self.grid_top.scan.array(), self.grid_top.scan.plan()));
        parts.push(format!("projection=[{}]", columns.join(", ")));
        parts
    }
}

impl DisplayAs for GridTopExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "GridTopExec: {}", self.text().join(", "))
            }
            DisplayFormatType::TreeRender => display::tree(&self.text(), f),
        }
    }
}

impl ExecutionPlan for GridTopExec {
    fn name(&self) -> &'static str {
        "GridTopExec"
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
        let TopOf { partition_by, order, predicate, .. } = &self.grid_top.top;
        visit_all(partition_by.iter().chain([&order.expr]).chain(predicate), visit)
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
        if partition >= self.grid_top.scan.plan().partition_count() {
            return internal_err!("GridTopExec has no partition {partition}");
        }
        stream::rows(&self.grid_top, partition, &self.metrics, &context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(self.grid_top.scan.schema_ref())))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { metrics: ExecutionPlanMetricsSet::new(), ..Self::clone(&self) }))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}
