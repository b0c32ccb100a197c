//! [`WindowReduceRule`]: replaces windows over whole partitions by reductions.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::WindowAggExec;

use super::partition::reduced;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule for aggregates `OVER (PARTITION BY …)` whole partitions of an array, if each key is over one
/// dimension. The aggregates become reductions, which are joined with the rows by their keys.
///
/// It belongs before [`GridReduceRule`](crate::exec::GridReduceRule), where
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use gridfusion::exec::WindowReduceRule;
///
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(WindowReduceRule))
///     .build();
/// # let _ = state;
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct WindowReduceRule;

impl PhysicalOptimizerRule for WindowReduceRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = GridfusionConfig::of(options);
        if !config.reduce || !config.reduce_windows {
            return Ok(plan);
        }
        plan.transform_up(|plan| {
            let reduced = match plan.downcast_ref::<WindowAggExec>() {
                Some(window) => reduced(window, &config)?,
                None => None,
            };
            Ok(reduced.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "WindowReduce"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
