//! [`visit_every_node`]: all nodes of a plan, also those from which nodes of gridfusion are made.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use super::travelled_exec::TravelledExec;
use super::work_list::WorkListExec;

/// Visits all nodes of a plan, parents first. Also visits the plans that nodes of gridfusion hold besides their inputs, such as the
/// aggregation over rows that a reduction replaces. A tree traversal of DataFusion does not see these.
///
/// # Errors
/// The first error of `visit`.
pub fn visit_every_node(
    plan: &Arc<dyn ExecutionPlan>,
    visit: &mut dyn FnMut(&Arc<dyn ExecutionPlan>) -> Result<()>,
) -> Result<()> {
    let mut open = vec![Arc::clone(plan)];
    while let Some(node) = open.pop() {
        visit(&node)?;
        open.extend(node.children().into_iter().map(Arc::clone));
        if let Some(travelled) = node.downcast_ref::<TravelledExec>() {
            open.extend(travelled.recipe().nested().into_iter().map(Arc::clone));
        }
        if let Some(listed) = node.downcast_ref::<WorkListExec>() {
            open.push(Arc::clone(listed.leaf()));
        }
    }
    Ok(())
}
