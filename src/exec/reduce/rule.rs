//! The rule `GridReduce`: replaces aggregations over scans by reductions.
//!
//! ```text
//!   plan node                 if partitions share no group    otherwise
//!   Final over Partial        mode=whole replaces both        mode=partial replaces Partial
//!   Single                    mode=whole                      unchanged: nothing would merge the states
//!   Partial, met on its own   mode=partial                    mode=partial
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use super::node::GridReduceExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::rules::walk::down;

/// Turns aggregations over a [`crate::exec::GridScanExec`], whose keys are each over one dimension, into a [`GridReduceExec`].
///
/// Before `EnsureRequirements`, a reduction that needs no final stage replaces both stages. Behind it, a reduction still replaces
/// the first stage.
pub(in crate::exec) fn reduce_arrays(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    down(plan, |node| reduced_aggregation(node, config)).data()
}

/// Returns the replacement of `plan`, if `plan` is an aggregation that can be reduced: a reduction, or a final stage above one.
pub(in crate::exec) fn reduced_aggregation(
    plan: &Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let node: Arc<dyn ExecutionPlan> = match aggregate.mode() {
        // The final stage is elsewhere, such as above a repartitioning.
        AggregateMode::Partial => {
            let Some(node) = GridReduceExec::replacing(aggregate, None, config)? else {
                return Ok(None);
            };
            Arc::new(node)
        }
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            match GridReduceExec::replacing(aggregate, Some(plan.schema()), config)? {
                Some(node) if node.is_whole() => Arc::new(node),
                _ => return Ok(None),
            }
        }
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let Some(partial) = aggregate.input().downcast_ref::<AggregateExec>() else {
                return Ok(None);
            };
            if *partial.mode() != AggregateMode::Partial {
                return Ok(None);
            }
            match GridReduceExec::replacing(partial, Some(plan.schema()), config)? {
                None => return Ok(None),
                Some(node) if node.is_whole() => Arc::new(node),
                Some(node) => {
                    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                    Arc::clone(plan).replace_children(vec![Arc::new(node)], recompute)?
                }
            }
        }
        AggregateMode::PartialReduce => return Ok(None),
    };
    Ok(Some(node))
}
