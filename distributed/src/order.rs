//! [`UnorderedShuffles`]: plans that do not rely on the order of rows behind a shuffle between workers.
//!
//! A `RepartitionExec` by hashes keeps the order of its only partition, and nodes above it may rely on that. When the plan is
//! divided among workers, a `NetworkShuffleExec` stands in its place. It declares the same order, but merges the rows
//! of several tasks as they come:
//!
//! ```text
//!   AggregateExec, ordered by t                AggregateExec, ordered by t     ← groups of one t in two places
//!     RepartitionExec: Hash(t), 1 input          NetworkShuffleExec            ← a1 b1 a2 b2
//!       rows in order of t                         task a   task b
//! ```
//!
//! So the plan for one process is changed before: rows are dealt to two partitions first, and their order is lost already there.
//! Nodes are made again without it, and sorted where they need it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{LexOrdering, LexRequirement, Partitioning};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

/// Plans for one process, which are divided then.
#[derive(Debug)]
pub(crate) struct UnorderedShuffles {
    /// The planner that the session had before; `None` for DataFusion's own.
    planner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl UnorderedShuffles {
    pub(crate) fn new(planner: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Self {
        Self { planner }
    }
}

#[async_trait]
impl QueryPlanner for UnorderedShuffles {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = match &self.planner {
            Some(planner) => planner.create_physical_plan(logical, session).await?,
            None => {
                DefaultPhysicalPlanner::default().create_physical_plan(logical, session).await?
            }
        };
        let is_sorted = logical.exists(|it| Ok(matches!(it, LogicalPlan::Sort(_))))?;
        without_shuffled_order(plan, is_sorted)
    }
}

/// Returns a plan in which no node relies on the order of rows behind a repartition by hashes. `is_sorted` tells whether the order
/// of the whole plan's rows matters.
fn without_shuffled_order(
    plan: Arc<dyn ExecutionPlan>,
    is_sorted: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let order = plan.output_ordering().filter(|_| is_sorted).cloned();
    let changed = plan.transform_up(|node| {
        let children = node.children();
        let required = node.required_input_ordering();
        let mut sorted = Vec::with_capacity(children.len());
        let mut has_sorted = false;
        for (child, required) in children.into_iter().zip(required) {
            let missing = required.map(|it| it.into_single()).and_then(|it| missing(child, it));
            has_sorted |= missing.is_some();
            sorted.push(match missing {
                Some(order) => sort(Arc::clone(child), order),
                None => Arc::clone(child),
            });
        }
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let node = if has_sorted { node.replace_children(sorted, recompute)? } else { node };
        match unordered(&node)? {
            Some(shuffle) => Ok(Transformed::yes(shuffle)),
            None => Ok(Transformed::new_transformed(node, has_sorted)),
        }
    })?;
    let plan = changed.data;
    let lost =
        order.filter(|_| changed.transformed && plan.output_partitioning().partition_count() == 1);
    Ok(match lost.and_then(|it| missing(&plan, it.into())) {
        Some(order) => sort(plan, order),
        None => plan,
    })
}

/// Returns the repartition in place of one that declares an order; `None` for other nodes.
fn unordered(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(repartition) = node.downcast_ref::<RepartitionExec>() else { return Ok(None) };
    let is_ordered = !node.equivalence_properties().oeq_class().is_empty();
    if !is_ordered || !matches!(repartition.partitioning(), Partitioning::Hash(..)) {
        return Ok(None);
    }
    let mut input = Arc::clone(repartition.input());
    if input.output_partitioning().partition_count() == 1 {
        input = Arc::new(RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(2))?);
    }
    let partitioning = repartition.partitioning().clone();
    Ok(Some(Arc::new(RepartitionExec::try_new(input, partitioning)?)))
}

/// Returns the order that a node needs of its input, if the input does not have it.
fn missing(input: &Arc<dyn ExecutionPlan>, required: LexRequirement) -> Option<LexOrdering> {
    let satisfied = input.equivalence_properties().ordering_satisfy_requirement(required.clone());
    (!satisfied.unwrap_or(false)).then(|| required.into())
}

fn sort(input: Arc<dyn ExecutionPlan>, order: LexOrdering) -> Arc<dyn ExecutionPlan> {
    Arc::new(SortExec::new(order, input).with_preserve_partitioning(true))
}
