//! Walks of rules through plans.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

/// The answer of a rule for one operator: what replaces it, with its inputs. `None` if it stays.
type Replacement = Result<Option<Arc<dyn ExecutionPlan>>>;

/// Replaces operators from the bottom of a plan to its top.
pub(in crate::exec) fn up(
    plan: Arc<dyn ExecutionPlan>,
    replace: impl Fn(&Arc<dyn ExecutionPlan>) -> Replacement,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_up(|node| Ok(answer(replace(&node)?, node)))
}

/// Replaces operators from the top of a plan to its bottom.
pub(in crate::exec) fn down(
    plan: Arc<dyn ExecutionPlan>,
    replace: impl Fn(&Arc<dyn ExecutionPlan>) -> Replacement,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_down(|node| Ok(answer(replace(&node)?, node)))
}

/// Returns an operator above another input that has the properties of the one before.
pub(in crate::exec) fn with_like_input(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(vec![input], options)
}

fn answer(
    replacement: Option<Arc<dyn ExecutionPlan>>,
    node: Arc<dyn ExecutionPlan>,
) -> Transformed<Arc<dyn ExecutionPlan>> {
    replacement.map_or_else(|| Transformed::no(node), Transformed::yes)
}
