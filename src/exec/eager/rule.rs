//! [`EagerAggregateRule`]: moves aggregations below joins, where they become reductions.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::pushed::pushed_below;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule that reduces an array before it is joined with tables. The aggregation above the join must
/// need no more than states of cells with equal join keys.
///
/// It belongs before [`AlignJoinsRule`](crate::exec::AlignJoinsRule), where
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use gridfusion::exec::EagerAggregateRule;
///
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(EagerAggregateRule))
///     .build();
/// # let _ = state;
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct EagerAggregateRule;

impl PhysicalOptimizerRule for EagerAggregateRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = GridfusionConfig::of(config);
        if !config.reduce || !config.eager_aggregation {
            return Ok(plan);
        }
        plan.transform_down(|plan| {
            let pushed = match plan.downcast_ref::<AggregateExec>() {
                Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => {
                    pushed_below(aggregate, &config)?
                }
                _ => None,
            };
            Ok(pushed.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "EagerAggregate"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
