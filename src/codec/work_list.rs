//! [`WorkListExec`]: a leaf whose partitions an engine can choose, for engines that only know their own leaves.
//!
//! Ballista gives each task of a stage a slice of the partitions. It cuts leaves that it knows, such as rows in memory, and gives
//! every task the whole of all others. So the partitions of a scan become rows in memory:
//!
//! ```text
//!   planned                            a task with the partitions 2 and 3
//!   WorkListExec: GridScanExec         WorkListExec: GridScanExec
//!     DataSourceExec: [0][1][2][3]       DataSourceExec: [2][3]
//! ```
//!
//! Without a list, a travelled leaf refuses to run in an executor of Ballista, where rows would multiply.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::shared_join::JoinShareExec;
use super::shares::SharedLeaf;
use super::travelled_exec::with_nodes_made;
use crate::error::Error;
use crate::exec::operator::{Frame, Operator, operator_methods};

/// An operator that runs those partitions of a leaf that its input lists: a row per partition, with the number.
#[derive(Debug, Clone)]
pub struct WorkListExec {
    leaf: Arc<dyn ExecutionPlan>,
    list: Arc<dyn ExecutionPlan>,
    /// The leaf has the dynamic filters.
    frame: Frame,
}

/// Returns a plan whose leaves of gridfusion have lists of their partitions as inputs. An engine such as Ballista can then
/// give each task some of the partitions. Leaves of one partition stay as they are.
///
/// ```
/// use datafusion::prelude::{SessionConfig, SessionContext};
/// use gridfusion::codec::with_work_lists;
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
/// ctx.enable_gridfusion();
/// let options = ArrayOptions::default().with_dataset("temperature");
/// ctx.register_array("t", "examples/data/stations.tet", options).await?;
/// let plan = ctx.sql("SELECT * FROM t").await?.create_physical_plan().await?;
/// let plan = with_work_lists(plan)?;
/// assert_eq!(plan.name(), "WorkListExec");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Internal errors only.
pub fn with_work_lists(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| match SharedLeaf::from_node(&node) {
        // An engine that cuts work lists does not give each task all rows that a join looks up.
        Some(leaf) if leaf.is_divisible() && !node.is::<JoinShareExec>() => {
            Ok(Transformed::yes(Arc::new(WorkListExec::all(node)?) as _))
        }
        _ => Ok(Transformed::no(node)),
    })
    .data()
}

impl WorkListExec {
    /// Makes an operator that runs all partitions of a leaf.
    fn all(leaf: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let field = Field::new("partition", DataType::UInt64, false);
        let schema = Arc::new(Schema::new(vec![field]));
        let partitions = leaf.output_partitioning().partition_count() as u64;
        let row = |number: u64| -> Result<Vec<RecordBatch>> {
            let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![number]));
            Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![numbers])?])
        };
        let rows = (0..partitions).map(row).collect::<Result<Vec<_>>>()?;
        Self::try_new(leaf, MemorySourceConfig::try_new_exec(&rows, Arc::clone(&schema), None)?)
    }

    /// Makes an operator that runs the partitions that `list` names.
    ///
    /// # Errors
    /// `Corrupt` if the list is no column of numbers.
    pub(super) fn try_new(
        leaf: Arc<dyn ExecutionPlan>,
        list: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let schema = list.schema();
        if !schema.fields().iter().map(|field| field.data_type()).eq([&DataType::UInt64]) {
            let message = "the partitions of a leaf are no column of numbers";
            return Err(Error::corrupt_region("plan", message).into());
        }
        let partitions = list.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            leaf.equivalence_properties().clone(),
            Partitioning::UnknownPartitioning(partitions),
            leaf.properties().emission_type,
            leaf.properties().boundedness,
        )
        .with_scheduling_type(leaf.properties().scheduling_type);
        Ok(Self { leaf, list, frame: Frame::new(properties) })
    }

    /// Returns the leaf.
    pub(super) fn leaf(&self) -> &Arc<dyn ExecutionPlan> {
        &self.leaf
    }
}

impl DisplayAs for WorkListExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(format, DisplayFormatType::TreeRender) {
            f.write_str("WorkListExec: ")?;
        }
        self.leaf.fmt_as(format, f)
    }
}

impl Operator for WorkListExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.list]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [list] = inputs else { return internal_err!("a work list without a list") };
        Self::try_new(Arc::clone(&self.leaf), Arc::clone(list))
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        let mut found = vec![];
        // This visit has no errors.
        let _ = self.leaf.apply_expressions(&mut |expr| {
            found.push(Arc::clone(expr));
            Ok(TreeNodeRecursion::Continue)
        });
        found
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        match partition {
            None => {
                let of_leaf = StatisticsContext::new();
                let of_leaf = of_leaf.compute(self.leaf.as_ref(), &StatisticsArgs::new())?;
                Ok(Statistics::clone(&of_leaf))
            }
            Some(_) => Ok(Statistics::new_unknown(&self.schema())),
        }
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let numbers = self.list.execute(partition, Arc::clone(&context))?;
        let leaf = Arc::clone(&self.leaf);
        let rows = async move {
            // The node itself, made only once: a leaf that travelled refuses to run without a list.
            let leaf = with_nodes_made(leaf, &context).await?;
            let of_batch = move |batch: RecordBatch| {
                let numbers: Vec<u64> =
                    batch.column(0).as_primitive::<UInt64Type>().values().to_vec();
                let (leaf, context) = (Arc::clone(&leaf), Arc::clone(&context));
                let run = move |number| leaf.execute(number as usize, Arc::clone(&context));
                stream::iter(numbers).map(run).try_flatten()
            };
            Ok::<_, datafusion::error::DataFusionError>(numbers.map_ok(of_batch).try_flatten())
        };
        let rows = stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn measured(&self) -> Option<MetricsSet> {
        self.leaf.metrics()
    }

    fn reset(&self) -> Result<Self> {
        let leaf = Arc::clone(&self.leaf).reset_state()?;
        Ok(Self { leaf, ..self.with_frame(self.frame.anew()) })
    }
}

impl ExecutionPlan for WorkListExec {
    operator_methods!();

    /// Repartitioning the list would mix partitions whose rows are in order.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }
}
