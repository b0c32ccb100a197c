//! [`TravelledExec`]: a node that came from another process, and is made when it first runs.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::declared::Declared;
use super::recipe::Recipe;
use crate::error::{Error, ErrorKind};
use crate::exec::columns::visit_all;

/// The prefix of the settings that each session of Ballista has.
const BALLISTA: &str = "ballista";

/// A scan, a reduction or another node of gridfusion that was planned in another process.
///
/// It declares what the node declared there: schema, order, partitions, statistics. The first poll of a partition opens the
/// table and makes the node; all partitions share it. Optimizer rules cannot change it.
#[derive(Debug, Clone)]
pub struct TravelledExec {
    declared: Declared,
    recipe: Arc<dyn Recipe>,
    /// The node itself, once it was made.
    made: Arc<OnceCell<Arc<dyn ExecutionPlan>>>,
}

impl TravelledExec {
    pub(super) fn new(declared: Declared, recipe: Arc<dyn Recipe>) -> Self {
        Self { declared, recipe, made: Arc::default() }
    }

    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    pub(super) fn recipe(&self) -> &dyn Recipe {
        &*self.recipe
    }

    /// Returns the schema of the output.
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.declared.schema())
    }

    /// Returns the same node over other inputs.
    fn over(self: Arc<Self>, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        if inputs.is_empty() && self.recipe.inputs().is_empty() {
            return Ok(self);
        }
        match self.recipe.with_inputs(inputs) {
            Some(recipe) => Ok(Arc::new(Self::new(self.declared.clone(), recipe))),
            None => internal_err!("{} over {} inputs", self.declared.name, inputs.len()),
        }
    }

    /// Returns the node itself; opens its table for the first partition that needs it.
    async fn node(&self, context: &Arc<TaskContext>) -> Result<Arc<dyn ExecutionPlan>> {
        let make = || async {
            let node = self.recipe.make(&self.declared, context).await?;
            self.check(&node)?;
            Ok(node)
        };
        self.made.get_or_try_init(make).await.cloned()
    }

    /// Fails in an executor of Ballista 55, if the node has several partitions. Ballista gives each task of a stage the whole
    /// leaf, so rows would multiply, without any error.
    fn refuse_ballista(&self, context: &TaskContext) -> Result<()> {
        let is_leaf = self.recipe.inputs().is_empty() || self.recipe.has_scan();
        let is_one = self.declared.properties.output_partitioning().partition_count() == 1;
        let mut settings = context.session_config().options().extensions.iter();
        if !is_leaf || is_one || !settings.any(|(prefix, _)| prefix == BALLISTA) {
            return Ok(());
        }
        let message = "Ballista would run this scan once per task, and rows would multiply; apply `with_work_lists` to \
                       the plan before it is submitted, or use `gridfusion worker`";
        Err(Error::unsupported(message).into())
    }

    /// Fails unless the node declares the rows that were planned.
    fn check(&self, node: &Arc<dyn ExecutionPlan>) -> Result<()> {
        let partitions = |plan: &PlanProperties| plan.output_partitioning().partition_count();
        let (planned, made) = (&self.declared.properties, node.properties());
        let same = self.declared.schema().as_ref() == node.schema().as_ref()
            && partitions(planned) == partitions(made);
        if same {
            return Ok(());
        }
        let message = format!(
            "{} has other columns or partitions here than where it was planned",
            self.declared.name
        );
        Err(Error::unsupported(message).into())
    }
}

/// Returns I/O errors of this library as those of DataFusion: engines repeat a task after these, and after no others.
fn as_io_error(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::External(cause) => match cause.downcast::<Error>() {
            Ok(cause) if cause.kind() == ErrorKind::Io => {
                DataFusionError::IoError(std::io::Error::other(*cause))
            }
            Ok(cause) => DataFusionError::External(cause),
            Err(cause) => DataFusionError::External(cause),
        },
        other => other,
    }
}

/// Makes the nodes of a plan in which some came from another process.
pub(super) fn with_nodes_made(
    plan: Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> BoxFuture<'_, Result<Arc<dyn ExecutionPlan>>> {
    Box::pin(async move {
        if let Some(travelled) = plan.downcast_ref::<TravelledExec>() {
            return travelled.node(context).await;
        }
        let mut children = vec![];
        for child in plan.children() {
            children.push(with_nodes_made(Arc::clone(child), context).await?);
        }
        if children.is_empty() {
            return Ok(plan);
        }
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(children, recompute)
    })
}

impl DisplayAs for TravelledExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.made.get(), format) {
            (Some(node), format) => node.fmt_as(format, f),
            (None, DisplayFormatType::TreeRender) => f.write_str(&self.declared.tree),
            (None, _) => f.write_str(&self.declared.line),
        }
    }
}

impl ExecutionPlan for TravelledExec {
    fn name(&self) -> &str {
        &self.declared.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.declared.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.recipe.inputs()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_all(self.recipe.filters(), visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(&children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.over(&children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.refuse_ballista(&context)?;
        let (travelled, schema) = (self.clone(), self.schema());
        // Nothing is opened before the first poll.
        let rows = async move {
            let node = travelled.node(&context).await?;
            node.execute(partition, context)
        };
        let rows = futures::stream::once(rows).try_flatten().map_err(as_io_error);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.made.get().and_then(|node| node.metrics()).unwrap_or_default())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Some(partition) = args.partition() else {
            return Ok(Arc::clone(&self.declared.statistics));
        };
        let known = self.declared.of_partitions.get(partition);
        Ok(known.map_or_else(|| Arc::new(Statistics::new_unknown(&self.schema())), Arc::clone))
    }

    fn fetch(&self) -> Option<usize> {
        self.declared.fetch
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // After a reset, operators above make new filters, which they do not push down again.
        let (declared, recipe) = (self.declared.clone(), self.recipe.without_filters());
        Ok(Arc::new(Self::new(declared, recipe)))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Unknown
    }
}
