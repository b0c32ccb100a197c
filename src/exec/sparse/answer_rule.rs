//! [`SparseAnswerRule`]: lets stored statistics of tiles answer aggregates over sparse scans.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::answer::SparseAnswerExec;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule that puts a [`SparseAnswerExec`] above the first stage of aggregations without
/// groups over a [`SparseScanExec`](super::SparseScanExec).
///
/// It belongs where [`GridReduceRule`](crate::exec::GridReduceRule) is, and
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it there.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use gridfusion::exec::SparseAnswerRule;
///
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rule(Arc::new(SparseAnswerRule))
///     .build();
/// # let _ = state;
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct SparseAnswerRule;

impl PhysicalOptimizerRule for SparseAnswerRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !GridfusionConfig::of(config).reduce {
            return Ok(plan);
        }
        plan.transform_up(|plan| {
            let aggregate = plan.downcast_ref::<AggregateExec>();
            let partial = aggregate.filter(|it| *it.mode() == AggregateMode::Partial);
            Ok(match partial.and_then(|_| SparseAnswerExec::over(&plan)) {
                Some(node) => Transformed::yes(Arc::new(node) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "SparseAnswer"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
