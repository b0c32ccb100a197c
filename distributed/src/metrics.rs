//! The metrics of a plan that ran on workers.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedMetricsFormat, rewrite_distributed_plan_with_metrics,
};
use tokio::time::timeout;

/// The time for metrics to arrive after the last row.
const ARRIVE: Duration = Duration::from_secs(5);

/// Returns a plan that has run, with the metrics of all workers in its nodes. A plan that ran in one process, or whose metrics
/// do not arrive, is returned as it is.
///
/// ```
/// use datafusion::physical_plan::collect;
/// use datafusion::prelude::SessionContext;
/// use gridfusion_distributed::with_worker_metrics;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// let plan = ctx.sql("SELECT 1").await?.create_physical_plan().await?;
/// collect(plan.clone(), ctx.task_ctx()).await?;
/// let plan = with_worker_metrics(plan).await?;
/// println!("{:?}", plan.metrics());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the plan has not run.
pub async fn with_worker_metrics(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if !plan.is::<DistributedExec>() {
        return Ok(plan);
    }
    let format = DistributedMetricsFormat::Aggregated;
    // A worker that dies after its last row never sends them.
    let arrived = rewrite_distributed_plan_with_metrics(Arc::clone(&plan), format);
    timeout(ARRIVE, arrived).await.unwrap_or(Ok(plan))
}
