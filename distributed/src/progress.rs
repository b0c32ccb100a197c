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
use datafusion_distributed::NetworkBoundaryExt;
use datafusion_distributed::grpc::BoxCloneSyncChannel;
use http::uri::PathAndQuery;
use tokio::task::JoinHandle;
use tonic::Request;
use tonic_prost::ProstCodec;

use crate::channel::Channels;
use crate::counters::{Counters, PATH, Question, Sums, add};
use crate::query_number::QueryNumber;

/// The time between two questions to a worker.
const INTERVAL: Duration = Duration::from_millis(200);

/// Counts the chunks, tiles and bytes that workers have read so far for a running query.
///
/// It asks the workers a few times per second, until it is dropped.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use datafusion::execution::TaskContext;
/// # use datafusion::physical_plan::ExecutionPlan;
/// # fn example(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) {
/// use gridfusion_distributed::WorkerProgress;
///
/// let progress = WorkerProgress::watch(plan, context);
/// for counter in progress.counters() {
///     println!("{}: {}", counter.name, counter.count);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct WorkerProgress {
    latest: Arc<Mutex<Sums>>,
    asking: Option<JoinHandle<()>>,
}

/// A metric of a running query, summed over all workers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerCounter {
    /// The name of the metric, such as `chunks_read`.
    pub name: String,
    /// The count; for metrics of pruning, the number of chunks or tiles that were ruled out.
    pub count: u64,
    /// For metrics of pruning, the number of chunks or tiles that were not ruled out; otherwise 0.
    pub matched: u64,
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

    /// Returns the counters of all workers together, as of their last answers.
    pub fn counters(&self) -> Vec<WorkerCounter> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = |(name, &[count, matched]): (&String, &[u64; 2])| WorkerCounter {
            name: name.clone(),
            count,
            matched,
        };
        latest.iter().map(counter).collect()
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
        let questions = channels.opened().into_iter().map(|(url, channel)| async {
            let answer = tokio::time::timeout(INTERVAL, counters_of(query, channel)).await;
            (url, answer.ok().flatten())
        });
        for (url, answer) in futures::future::join_all(questions).await {
            of_workers.extend(answer.map(|answer| (url, answer)));
        }
        let mut sums = Sums::new();
        for counter in of_workers.values().flat_map(|it| &it.counters) {
            add(&mut sums, &counter.name, [counter.count, counter.matched]);
        }
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = sums;
    }
}

/// Asks one worker; `None` if it does not answer.
async fn counters_of(query: QueryNumber, channel: BoxCloneSyncChannel) -> Option<Counters> {
    let question = Question { query: query.0.to_be_bytes().to_vec() };
    let codec = ProstCodec::<Question, Counters>::default();
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.ok()?;
    let path = PathAndQuery::from_static(PATH);
    let answer = client.unary(Request::new(question), path, codec).await.ok()?;
    Some(answer.into_inner())
}
