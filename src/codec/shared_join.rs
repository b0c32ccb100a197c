//! [`SharedJoinExec`]: a join of an array that several processes run together.
//!
//! An engine divides the leaves of a plan. The chunks of a join that looks up rows are no leaf, so a second input stands for them:
//!
//! ```text
//!   planned                        to be divided                           task 1 of 3
//!   GridJoinReduceExec             SharedJoinExec                          GridJoinReduceExec, a third of the chunks
//!     rows that are looked up        rows, all of them for each task         rows
//!                                    JoinShareExec: all chunks               nothing
//! ```
//!
//! Each process looks up all rows of the other side, so the engine sends them to each of them, once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning};

use super::shares::width;
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::{GridJoinReduceExec, GridLookupExec, GridScanExec};
use crate::plan::ScanPlan;

/// Returns a plan whose joins that look up rows have a leaf of their own. An engine divides it as a [`SharedLeaf`](super::SharedLeaf)
/// into as many shares as its stage has tasks.
///
/// `broadcast` makes the input of which each task gets all rows, in one partition. Joins stay as they are if these rows seem to have more
/// than `most_bytes`. [`without_shared_joins`] returns the plan as it was.
///
/// ```
/// use datafusion::physical_plan::displayable;
/// use datafusion::prelude::{SessionConfig, SessionContext};
/// use gridfusion::codec::{with_shared_joins, without_shared_joins};
/// use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
/// ctx.enable_gridfusion();
/// let options = ArrayOptions::default().with_dataset("temperature");
/// ctx.register_array("t", "examples/data/stations.tet", options).await?;
/// ctx.sql("CREATE TABLE s AS VALUES ('Oslo'), ('Bergen')").await?;
/// let query = "SELECT t.time, t.value FROM t JOIN s ON t.station = s.column1";
/// let plan = ctx.sql(query).await?.create_physical_plan().await?;
/// let planned = displayable(plan.as_ref()).indent(true).to_string();
/// let shared = with_shared_joins(plan, 1 << 20, &|rows| rows)?;
/// assert!(displayable(shared.as_ref()).indent(true).to_string().contains("JoinShareExec"));
/// let again = without_shared_joins(shared)?;
/// assert_eq!(displayable(again.as_ref()).indent(true).to_string(), planned);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Internal errors only.
pub fn with_shared_joins(
    plan: Arc<dyn ExecutionPlan>,
    most_bytes: usize,
    broadcast: &dyn Fn(Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if JoinNode::of(&node).is_none() {
            return Ok(Transformed::no(node));
        }
        let [rows] = node.children().try_into().map_err(|_| no_join())?;
        if bytes_of(rows)?.is_some_and(|bytes| bytes > most_bytes as u64) {
            return Ok(Transformed::no(node));
        }
        let rows = broadcast(Arc::clone(rows));
        Ok(Transformed::yes(Arc::new(SharedJoinExec::new(node, rows)) as _))
    })
    .data()
}

/// Returns about how many bytes the rows of a plan have; `None` if that is not known.
fn bytes_of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<u64>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    let of_row: u64 = plan.schema().fields().iter().map(|field| width(field.data_type())).sum();
    let rows = statistics.num_rows.get_value();
    Ok(rows.map(|rows| (*rows as u64).saturating_mul(of_row)))
}

/// Returns a plan whose joins are those from which [`with_shared_joins`] made others.
///
/// # Errors
/// Internal errors only.
pub fn without_shared_joins(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        Ok(match node.downcast_ref::<SharedJoinExec>() {
            Some(shared) => Transformed::yes(Arc::clone(&shared.join)),
            None => Transformed::no(node),
        })
    })
    .data()
}

fn no_join() -> datafusion::error::DataFusionError {
    datafusion::common::internal_datafusion_err!("a shared join is not a join that looks up rows")
}

/// A join that looks up rows.
enum JoinNode<'a> {
    Rows(&'a GridLookupExec),
    Reduced(&'a GridJoinReduceExec),
}

impl<'a> JoinNode<'a> {
    fn of(node: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        let rows = node.downcast_ref::<GridLookupExec>().map(Self::Rows);
        rows.or_else(|| node.downcast_ref::<GridJoinReduceExec>().map(Self::Reduced))
    }

    fn scan(&self) -> &'a GridScanExec {
        match self {
            Self::Rows(lookup) => lookup.scan(),
            Self::Reduced(reduce) => reduce.lookup().scan(),
        }
    }

    fn filters(&self) -> Vec<PhysicalExprRef> {
        match self {
            Self::Rows(lookup) => lookup.frame().filters().to_vec(),
            Self::Reduced(reduce) => reduce.frame().filters().to_vec(),
        }
    }

    /// Returns `count` plans of the array whose joins together yield what this one yields.
    fn share_plans(&self, count: usize) -> Vec<ScanPlan> {
        match self {
            Self::Rows(lookup) => lookup.scan().plan().shares(count),
            Self::Reduced(reduce) => reduce.share_plans(count),
        }
    }

    fn over_plan(&self, plan: &Arc<ScanPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match self {
            Self::Rows(lookup) => Arc::new(lookup.over_plan(plan)?),
            Self::Reduced(reduce) => Arc::new(reduce.over_plan(plan)?),
        })
    }
}

/// A join of an array, over the rows that it looks up. Its second input, a [`JoinShareExec`], stands for a share of the chunks.
#[derive(Debug, Clone)]
pub(super) struct SharedJoinExec {
    /// The join with all chunks, over its input as it was planned.
    join: Arc<dyn ExecutionPlan>,
    rows: Arc<dyn ExecutionPlan>,
    share: Arc<dyn ExecutionPlan>,
    frame: Frame,
    /// The join of the share, once it runs here.
    made: Arc<OnceLock<Arc<dyn ExecutionPlan>>>,
}

impl SharedJoinExec {
    fn new(join: Arc<dyn ExecutionPlan>, rows: Arc<dyn ExecutionPlan>) -> Self {
        let frame = Frame::new(Arc::clone(join.properties()));
        let frame = frame.with_filters(JoinNode::of(&join).map_or(vec![], |it| it.filters()));
        let share = Arc::new(JoinShareExec::new(Arc::clone(&join), None));
        Self { join, rows, share, frame, made: Arc::default() }
    }

    /// The dynamic filters of the join.
    pub(super) fn filters(&self) -> &[PhysicalExprRef] {
        self.frame.filters()
    }

    /// The input that stands for a share.
    pub(super) fn share(&self) -> &Arc<dyn ExecutionPlan> {
        &self.share
    }

    /// Returns the join of the share, over the rows that it looks up.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn join_of_share(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(share) = self.share.downcast_ref::<JoinShareExec>() else {
            return internal_err!("{} is no share of a join", self.share.name());
        };
        let join = match &share.plan {
            None => Arc::clone(&self.join),
            Some(plan) => JoinNode::of(&self.join).ok_or_else(no_join)?.over_plan(plan)?,
        };
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        join.replace_children(vec![Arc::clone(&self.rows)], recompute)
    }
}

impl DisplayAs for SharedJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.join.fmt_as(format, f)
    }
}

impl Operator for SharedJoinExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, made: Arc::default(), ..self.clone() }
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.rows, &self.share]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let [rows, share] = inputs else { return internal_err!("a join over no share") };
        let (rows, share) = (Arc::clone(rows), Arc::clone(share));
        Ok(Self { rows, share, ..self.with_frame(self.frame.anew()) })
    }

    fn reset(&self) -> Result<Self> {
        let frame = self.frame.anew().with_filters(vec![]);
        Ok(Self { join: Arc::clone(&self.join).reset_state()?, ..self.with_frame(frame) })
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let arguments = StatisticsArgs::new().with_partition(partition);
        let statistics = StatisticsContext::new().compute(self.join.as_ref(), &arguments)?;
        Ok(Arc::unwrap_or_clone(statistics))
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let join = match self.made.get() {
            Some(join) => Arc::clone(join),
            None => {
                let join = self.join_of_share()?;
                // Another partition may have been faster. All must share one join, which reads its rows once.
                Arc::clone(self.made.get_or_init(|| join))
            }
        };
        join.execute(partition, context)
    }

    fn measured(&self) -> Option<MetricsSet> {
        Some(self.made.get().and_then(|join| join.metrics()).unwrap_or_default())
    }
}

impl ExecutionPlan for SharedJoinExec {
    operator_methods!();
}

/// A leaf without rows, which stands for a share of the chunks of a join.
#[derive(Debug, Clone)]
pub(super) struct JoinShareExec {
    join: Arc<dyn ExecutionPlan>,
    /// The chunks of the share; `None` for all.
    plan: Option<Arc<ScanPlan>>,
    frame: Frame,
}

impl JoinShareExec {
    fn new(join: Arc<dyn ExecutionPlan>, plan: Option<Arc<ScanPlan>>) -> Self {
        let properties = declared(
            EquivalenceProperties::new(Arc::new(Schema::empty())),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
        );
        Self { join, plan, frame: Frame::new(properties) }
    }

    /// Returns `count` shares of all chunks.
    pub(super) fn shares(&self, count: usize) -> Vec<Self> {
        let plans = JoinNode::of(&self.join).map_or(vec![], |join| join.share_plans(count));
        let share = |plan| Self::new(Arc::clone(&self.join), Some(Arc::new(plan)));
        plans.into_iter().map(share).collect()
    }

    /// Returns the plan of the share, or that of the whole `scan`.
    pub(super) fn plan<'a>(&'a self, scan: &'a GridScanExec) -> &'a ScanPlan {
        self.plan.as_ref().unwrap_or(scan.plan())
    }

    /// The join whose chunks are divided.
    pub(super) fn join(&self) -> &Arc<dyn ExecutionPlan> {
        &self.join
    }

    /// The scan of the join, with all chunks.
    pub(super) fn scan(&self) -> Option<&GridScanExec> {
        JoinNode::of(&self.join).map(|join| join.scan())
    }
}

shown_by_text!(JoinShareExec);

impl Operator for JoinShareExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let Some(scan) = self.scan() else { return vec![] };
        let (name, plan) = (scan.array().name(), self.plan(scan));
        vec![
            format!("dataset={name}"),
            format!("chunks={}/{}", plan.chunks(), plan.grid().chunks()),
        ]
    }

    fn stream(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the share of a join has no rows of its own")
    }
}

impl ExecutionPlan for JoinShareExec {
    operator_methods!();
}
