//! Plans whose threads can be taken back: an interrupt, or another query, need not wait for a join to end.
//!
//! ```text
//!   AggregateExec                    takes batches in a loop, and never gives its thread back
//!     CooperativeExec                ◀── gives it back after some batches
//!       CrossJoinExec                makes millions of batches from one of each side
//!         CooperativeExec …          DataFusion gives these to leaves alone
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;

/// Returns the plan with pauses above all nodes that make many batches from few.
pub(crate) fn cooperative(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let paused = plan.transform_up(|node| {
        let multiplies = node.is::<CrossJoinExec>()
            || node.is::<NestedLoopJoinExec>()
            || node.is::<UnnestExec>();
        Ok(match multiplies {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
            false => Transformed::no(node),
        })
    });
    Ok(paused?.data)
}
