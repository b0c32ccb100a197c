//! [`AlignJoinsRule`]: replaces joins of arrays on their dimensions by one scan.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::aligned::aligned;
use super::sides::Sides;
use crate::exec::EagerAggregateRule;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule that puts arrays side by side, if a query joins them on all dimensions of one of them. The
/// labels that both have must be a range of both.
///
/// It belongs behind [`EagerAggregateRule`], where
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it: an aggregation that needs only states
/// of one array need not read cells of both.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use gridfusion::exec::AlignJoinsRule;
///
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(AlignJoinsRule))
///     .build();
/// # let _ = state;
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct AlignJoinsRule;

impl PhysicalOptimizerRule for AlignJoinsRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = GridfusionConfig::of(options);
        if !config.align_joins {
            return Ok(plan);
        }
        // From the bottom up, because a join of three arrays is a join of one with two.
        let aligned = plan.transform_up(|plan| {
            let aligned = match plan.downcast_ref::<HashJoinExec>() {
                Some(join) => match Sides::of(join)? {
                    Some(sides) => aligned(join, &sides, &config)?,
                    None => None,
                },
                None => None,
            };
            Ok(aligned.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })?;
        match aligned.transformed {
            // Arrays side by side may be joined with a table, too.
            true => EagerAggregateRule.optimize(aligned.data, options),
            false => Ok(aligned.data),
        }
    }

    fn name(&self) -> &str {
        "AlignJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
