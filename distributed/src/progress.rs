//! How far the workers are with a query that still runs.
//!
//! ```text
//!   coordinator                                worker
//!   WorkerProgress ── number of the query ──▶  Running: the plans of its tasks
//!        counters ◀── sums of their metrics ──    │
//! ```
//!
//! datafusion-distributed sends metrics when a query has ended. A progress line needs them before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{DistributedExec, NetworkBoundaryExt};
use http::uri::PathAndQuery;
use tokio::task::JoinHandle;
use tonic::Request;
use tonic_prost::ProstCodec;

use crate::channel::Channels;
use crate::counters::{Counters, PATH, Question, Sums};
use crate::query_number::QueryNumber;

/// The time between two questions to a worker.
const INTERVAL: Duration = Duration::from_millis(200);

/// What the workers have done so far for a query that this process coordinates.
///
/// It asks them a few times per second, until it is dropped.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use datafusion::execution::TaskContext;
/// # use datafusion::physical_plan::ExecutionPlan;
/// # fn example(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) {
/// use gridfusion_distributed::WorkerProgress;
///
/// let progress = WorkerProgress::watch(plan, context);
/// for (name, count, _) in progress.counters() {
///     println!("{name}: {count}");
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct WorkerProgress {
    latest: Arc<Mutex<Sums>>,
    asking: Option<JoinHandle<()>>,
}

impl WorkerProgress {
    /// Begins to ask the workers about a plan, which must be about to run. Must be called in a Tokio runtime.
    pub fn watch(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Self {
        let latest = Arc::default();
        let channels = context.session_config().get_extension::<Channels>();
        let asking = number_of(plan).zip(channels).map(|(query, channels)| {
            tokio::spawn(ask(query, Arc::clone(&channels), Arc::clone(&latest)))
        });
        Self { latest, asking }
    }

    /// Returns the counters of all workers together: names of metrics, their counts or what was pruned, and what was kept.
    pub fn counters(&self) -> Vec<(String, u64, u64)> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.iter().map(|(name, [value, matched])| (name.clone(), *value, *matched)).collect()
    }
}

impl Drop for WorkerProgress {
    fn drop(&mut self) {
        if let Some(asking) = &self.asking {
            asking.abort();
        }
    }
}

/// Returns the number of a query; `None` if it runs in one process.
fn number_of(plan: &Arc<dyn ExecutionPlan>) -> Option<QueryNumber> {
    let mut number = None;
    if !plan.exists(|node| Ok(node.is::<DistributedExec>())).unwrap_or_default() {
        return None;
    }
    // The closure never fails.
    let _ = plan.apply(|node| {
        let Some(boundary) = node.as_network_boundary() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        number = Some(QueryNumber(boundary.input_stage().query_id().as_u128()));
        Ok(TreeNodeRecursion::Stop)
    });
    number
}

/// Asks all workers for their counters again and again. A worker that does not answer keeps its last ones.
async fn ask(query: QueryNumber, channels: Arc<Channels>, latest: Arc<Mutex<Sums>>) {
    let mut of_workers: HashMap<String, Counters> = HashMap::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for (url, channel) in channels.opened() {
            let question = Question { query: query.0.to_be_bytes().to_vec() };
            let codec = ProstCodec::<Question, Counters>::default();
            let mut client = tonic::client::Grpc::new(channel);
            let answer = async {
                client.ready().await.ok()?;
                let path = PathAndQuery::from_static(PATH);
                client.unary(Request::new(question), path, codec).await.ok()
            };
            if let Ok(Some(answer)) = tokio::time::timeout(INTERVAL, answer).await {
                of_workers.insert(url, answer.into_inner());
            }
        }
        let mut sums = Sums::new();
        for counter in of_workers.values().flat_map(|it| &it.counters) {
            let sum = sums.entry(counter.name.clone()).or_default();
            *sum = [sum[0].saturating_add(counter.value), sum[1].saturating_add(counter.matched)];
        }
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = sums;
    }
}
