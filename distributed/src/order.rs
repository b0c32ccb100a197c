//! [`UnorderedShuffles`]: a rule for plans that do not rely on the order of rows behind a shuffle between workers.
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
//! So the rule deals rows to two partitions first, which loses their order already there. Nodes are made again without it, and sorted
//! where they need it. It stands directly behind `EnsureRequirements`, which makes these repartitions: later rules push limits
//! to operators, and tell aggregates that their rows are in order.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, LexRequirement, Partitioning};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};

/// Makes plans in which no node relies on the order of rows behind a repartition by hashes.
#[derive(Debug)]
pub(crate) struct UnorderedShuffles;

impl UnorderedShuffles {
    /// Puts the rule into its place.
    pub(crate) fn add_to(optimizer: &mut PhysicalOptimizer) {
        let requirements = EnsureRequirements::new();
        let at = optimizer.rules.iter().position(|it| it.name() == requirements.name());
        optimizer.rules.insert(at.map_or(0, |at| at + 1), Arc::new(Self));
    }
}

impl PhysicalOptimizerRule for UnorderedShuffles {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let (node, is_sorted) = sorted(node)?;
            Ok(match unordered(&node)? {
                Some(shuffle) => Transformed::yes(shuffle),
                None => Transformed::new_transformed(node, is_sorted),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "UnorderedShuffles"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Sorts the inputs of a node that lack an order that it needs. Returns also whether there are any.
fn sorted(node: Arc<dyn ExecutionPlan>) -> Result<(Arc<dyn ExecutionPlan>, bool)> {
    let (children, required) = (node.children(), node.required_input_ordering());
    let mut inputs = Vec::with_capacity(children.len());
    let mut is_changed = false;
    for (child, required) in children.into_iter().zip(required) {
        let missing = required.and_then(|it| missing(child, it.into_single()));
        is_changed |= missing.is_some();
        inputs.push(match missing {
            Some(order) => {
                Arc::new(SortExec::new(order, Arc::clone(child)).with_preserve_partitioning(true))
            }
            None => Arc::clone(child),
        });
    }
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let node = if is_changed { node.replace_children(inputs, recompute)? } else { node };
    Ok((node, is_changed))
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
