//! How scans, reductions and joins of gridfusion are divided among the tasks of a stage.
//!
//! datafusion-distributed asks twice: how many tasks a leaf is worth, and, when all leaves of the stage were asked, for the
//! leaf of each task. A leaf that only answers the first question would run whole in each task, so rows would multiply.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
};
use gridfusion::codec::SharedLeaf;

/// Returns the number of tasks that a leaf of gridfusion is worth; `None` for other nodes.
pub(crate) fn desired_tasks(
    event: DesiredTaskCountEvent<'_>,
    bytes_per_task: u64,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let leaf = SharedLeaf::from_node(event.plan)?;
    // A table that the program opened itself stays in this process, if the rest of the query does.
    if !leaf.is_divisible() || leaf.origin().is_none() {
        return Some(Ok(DesiredTaskCountEventResponse::maximum(1)));
    }
    let tasks = usize::try_from(leaf.bytes().div_ceil(bytes_per_task.max(1)));
    Some(Ok(DesiredTaskCountEventResponse::desired(tasks.unwrap_or(usize::MAX).max(1))))
}

/// Divides a leaf of gridfusion among the tasks of its stage; `None` for other nodes, and for stages of one task.
pub(crate) fn divided(
    event: ScaleUpLeafNodeEvent<'_>,
) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let leaf = SharedLeaf::from_node(event.plan)?;
    if event.task_count == 1 {
        return None;
    }
    let divided = leaf
        .shares(event.task_count)
        .and_then(|shares| DistributedLeafExec::try_new(Arc::clone(event.plan), shares));
    Some(divided.map(|divided| ScaleUpLeafNodeEventResponse::new(Arc::new(divided))))
}
