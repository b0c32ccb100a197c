//! Which worker runs which task: the one that has read the same chunks before.
//!
//! Each region of a table ranks the workers by a hash of its name and theirs. A task goes to the first worker of its region's
//! ranking that still takes tasks. So a worker reads the same regions again and again, as long as it lives. If it fails, only
//! its own tasks move.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{DistributedLeafExec, RouteTasksEvent, RouteTasksEventResponse};
use gridfusion::codec::SharedLeaf;
use url::Url;

/// Chooses the workers of a stage that reads arrays; `None` for other stages, and for single tasks.
pub(crate) fn route(
    event: &RouteTasksEvent<'_>,
    living: &[Url],
) -> Option<Result<RouteTasksEventResponse>> {
    let regions = regions(event.plan)?;
    if regions.len() != event.task_count || event.task_count < 2 || living.is_empty() {
        return None;
    }
    Some(Ok(RouteTasksEventResponse::new(assigned(&regions, living))))
}

/// Returns the region that each task of a stage reads, by its first leaf of gridfusion.
fn regions(stage: &Arc<dyn ExecutionPlan>) -> Option<Vec<String>> {
    let mut found = None;
    let visited = stage.apply(|node| {
        let Some(leaf) = node.downcast_ref::<DistributedLeafExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let region = |share: &Arc<dyn ExecutionPlan>| Some(SharedLeaf::from_node(share)?.region());
        found = leaf.variants().iter().map(region).collect();
        Ok(match found {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    visited.ok().and(found)
}

/// Assigns a worker to each region. No worker gets more than its part, rounded up.
fn assigned(regions: &[String], workers: &[Url]) -> Vec<Url> {
    let most = regions.len().div_ceil(workers.len());
    let mut taken = vec![0; workers.len()];
    let assign = |region: &String| {
        let rank = |at: &usize| {
            let mut hasher = DefaultHasher::new();
            (region, workers[*at].as_str()).hash(&mut hasher);
            hasher.finish()
        };
        let free = (0..workers.len()).filter(|at| taken[*at] < most);
        let at = free.max_by_key(rank).unwrap_or_default();
        taken[at] += 1;
        workers[at].clone()
    };
    regions.iter().map(assign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_stay_with_their_workers() {
        let workers: Vec<Url> =
            (0..4).map(|at| Url::parse(&format!("http://127.0.0.1:{at}")).unwrap()).collect();
        let regions: Vec<String> = (0..64).map(|at| format!("t {at}")).collect();
        let before = assigned(&regions, &workers);
        assert_eq!(assigned(&regions, &workers), before, "the same again");
        for worker in &workers {
            assert_eq!(before.iter().filter(|it| *it == worker).count(), 16, "equal parts");
        }
        // Without one worker, its tasks move, and few others.
        let left: Vec<Url> = workers[1..].to_vec();
        let after = assigned(&regions, &left);
        let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        assert!((16..=32).contains(&moved), "{moved}");
    }
}
