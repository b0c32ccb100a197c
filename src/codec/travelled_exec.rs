//! [`TravelledExec`]: a node that came from another process, and is made when it first runs.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use super::declarations::Declarations;
use super::recipe::Recipe;
use crate::error::{Error, ErrorKind};
use crate::exec::operator::{Frame, Operator, operator_methods};

/// The prefix of the settings that each session of Ballista has.
const BALLISTA: &str = "ballista";

/// A scan, a reduction or another node of gridfusion that was planned in another process.
///
/// It declares what the node declared there: schema, order, partitions, statistics. The first poll of a partition opens the
/// table and makes the node; all partitions share it. Optimizer rules cannot change it.
#[derive(Debug, Clone)]
pub struct TravelledExec {
    declared: Declarations,
    recipe: Arc<dyn Recipe>,
    /// The node itself, once it was made.
    made: Arc<OnceCell<Arc<dyn ExecutionPlan>>>,
}

impl TravelledExec {
    pub(super) fn new(declared: Declarations, recipe: Arc<dyn Recipe>) -> Self {
        Self { declared, recipe, made: Arc::default() }
    }

    pub(super) fn declared(&self) -> &Declarations {
        &self.declared
    }

    pub(super) fn recipe(&self) -> &dyn Recipe {
        &*self.recipe
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
        let is_one = self.declared.frame.properties().output_partitioning().partition_count() == 1;
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
        let (planned, made) = (self.declared.frame.properties(), node.properties());
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

impl Operator for TravelledExec {
    fn frame(&self) -> &Frame {
        &self.declared.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self::new(Declarations { frame, ..self.declared.clone() }, Arc::clone(&self.recipe))
    }

    fn title(&self) -> &str {
        &self.declared.name
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.recipe.inputs()
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        match self.recipe.with_inputs(inputs) {
            Some(recipe) => Ok(Self::new(self.declared.clone(), recipe)),
            None => internal_err!("{} over {} inputs", self.declared.name, inputs.len()),
        }
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let Declarations { statistics, of_partitions, .. } = &self.declared;
        let known = partition.map_or(Some(statistics), |partition| of_partitions.get(partition));
        let unknown = || Statistics::new_unknown(self.declared.schema());
        Ok(known.map_or_else(unknown, |known| Statistics::clone(known)))
    }

    fn stream(
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

    fn measured(&self) -> Option<MetricsSet> {
        Some(self.made.get().and_then(|node| node.metrics()).unwrap_or_default())
    }
}

impl ExecutionPlan for TravelledExec {
    operator_methods!();

    fn fetch(&self) -> Option<usize> {
        self.declared.fetch
    }
}
