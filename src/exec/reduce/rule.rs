//! [`GridReduceRule`]: replaces aggregations over scans by reductions.
//!
//! ```text
//!   plan node                 if partitions share no group    otherwise
//!   Final over Partial        mode=whole replaces both        mode=partial replaces Partial
//!   Single                    mode=whole                      unchanged: nothing would merge the states
//!   Partial, met on its own   mode=partial                    mode=partial
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use super::node::GridReduceExec;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule that turns aggregations over a [`crate::exec::GridScanExec`], whose keys
/// are each over one dimension, into a [`GridReduceExec`].
///
/// The best place is before `EnsureRequirements`, where
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts the rule: a
/// reduction that needs no final stage then replaces both stages. After all other rules, a reduction
/// still replaces the first stage.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use gridfusion::exec::GridReduceRule;
///
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(GridReduceRule))
///     .build();
/// # let _ = state;
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct GridReduceRule;

impl PhysicalOptimizerRule for GridReduceRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = GridfusionConfig::of(config);
        if !config.reduce {
            return Ok(plan);
        }
        plan.transform_down(|plan| {
            Ok(match reduced_aggregation(&plan, &config)? {
                Some(reduced) => Transformed::yes(reduced),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "GridReduce"
    }

    fn schema_check(&self) -> bool {
        true
    }
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
