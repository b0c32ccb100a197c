//! Support for plan nodes without children.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// Returns `node`, which has no children, or an internal error if `children` is not empty.
pub(super) fn without_children(
    node: Arc<dyn ExecutionPlan>,
    children: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    match children {
        [] => Ok(node),
        _ => internal_err!("{} has no children", node.name()),
    }
}
