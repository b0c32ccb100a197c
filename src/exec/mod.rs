//! The physical side of DataFusion: operators over arrays.
//!
//! [`GridScanExec`] streams the chunks of a [`crate::plan::ScanPlan`], [`GridReduceExec`] aggregates
//! them. Everything about them is decided when they are made; `execute` starts no I/O, the first poll
//! of a stream does.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

mod best_first;
mod breaks;
mod chunks;
mod columns;
mod compact;
mod config;
mod display;
mod dynamic;
mod error;
mod metrics;
mod order;
mod priority;
mod prune;
mod reduce;
mod scan;
mod select;
mod stats;
mod stream;

pub use best_first::BestFirstRule;
pub use config::GridfusionConfig;
pub use error::to_datafusion;
pub(crate) use prune::ChunkFacts;
pub use reduce::{GridReduceExec, GridReduceRule};
pub use scan::GridScanExec;
pub(crate) use select::{satisfied, select_labels};

/// What a node without children becomes when it is given others.
fn without_children(
    node: Arc<dyn ExecutionPlan>,
    children: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    match children {
        [] => Ok(node),
        _ => internal_err!("{} has no children", node.name()),
    }
}
