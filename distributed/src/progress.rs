//! How far the workers are with a query that still runs.
//!
//! ```text
//!   coordinator                                worker
//!   WorkerProgress ── number of the query ──▶  Running: the plans of its tasks
//!        counters ◀── sums of their metrics ──    │
//! ```
//!
//! datafusion-distributed sends metrics when a query has ended. A progress line needs them before.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion_distributed::{DistributedExec, NetworkBoundaryExt};
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::server::{NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::channel::Channels;

/// The header with the number of the query to which a task belongs.
const HEADER: HeaderName = HeaderName::from_static("x-gridfusion-query");

/// The path of the call.
const PATH: &str = "/gridfusion.Progress/Counters";

/// The time between two questions to a worker.
const INTERVAL: Duration = Duration::from_millis(200);

/// The number of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueryNumber(pub(crate) u128);

impl QueryNumber {
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(format!("{:032x}", self.0)) {
            headers.insert(HEADER, value);
        }
    }

    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(HEADER)?.to_str().ok()?;
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

/// The plan of a task, until it ends.
type Task = Weak<dyn ExecutionPlan>;

/// Sums of metrics, by name: the number, or the pruned and the matched one.
type Sums = BTreeMap<String, [u64; 2]>;

/// The plans of the tasks that a worker runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    tasks: Arc<Mutex<HashMap<QueryNumber, Vec<Task>>>>,
}

impl Running {
    /// Adds the plan of a task. Forgets tasks that have ended.
    pub(crate) fn add(&self, query: QueryNumber, plan: &Arc<dyn ExecutionPlan>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|_, plans| {
            plans.retain(|plan| plan.strong_count() > 0);
            !plans.is_empty()
        });
        tasks.entry(query).or_default().push(Arc::downgrade(plan));
    }

    /// Returns sums of the metrics of all tasks of a query.
    fn counters(&self, query: QueryNumber) -> Counters {
        let plans: Vec<Arc<dyn ExecutionPlan>> = {
            let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.get(&query).into_iter().flatten().filter_map(Weak::upgrade).collect()
        };
        let mut sums = Sums::new();
        for plan in plans {
            add_metrics(&plan, &mut sums);
        }
        let counter =
            |(name, [value, matched]): (String, [u64; 2])| Counter { name, value, matched };
        Counters { counters: sums.into_iter().map(counter).collect() }
    }
}

/// Adds the metrics of a plan to sums.
fn add_metrics(plan: &Arc<dyn ExecutionPlan>, sums: &mut Sums) {
    // The closure never fails.
    let _ = plan.apply(|node| {
        for metric in node.metrics().unwrap_or_default().iter() {
            let (name, [value, matched]) = match metric.value() {
                MetricValue::Count { name, count } => (name, [count.value() as u64, 0]),
                MetricValue::PruningMetrics { name, pruning_metrics: pruned } => {
                    (name, [pruned.pruned() as u64, pruned.matched() as u64])
                }
                _ => continue,
            };
            let sum = sums.entry(name.to_string()).or_default();
            *sum = [sum[0].saturating_add(value), sum[1].saturating_add(matched)];
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// A question for the counters of a query.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Question {
    /// The number of the query, big-endian.
    #[prost(bytes = "vec", tag = "1")]
    query: Vec<u8>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Counters {
    #[prost(message, repeated, tag = "1")]
    counters: Vec<Counter>,
}

/// A metric, summed over nodes and tasks.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Counter {
    #[prost(string, tag = "1")]
    name: String,
    /// The count, or what was pruned.
    #[prost(uint64, tag = "2")]
    value: u64,
    /// What was kept, for metrics of pruning.
    #[prost(uint64, tag = "3")]
    matched: u64,
}

/// The service of a worker that answers such questions.
#[derive(Debug, Clone)]
pub(crate) struct ProgressService(pub(crate) Running);

impl NamedService for ProgressService {
    const NAME: &'static str = "gridfusion.Progress";
}

impl UnaryService<Question> for ProgressService {
    type Response = Counters;
    type Future = std::future::Ready<Result<Response<Counters>, Status>>;

    fn call(&mut self, question: Request<Question>) -> Self::Future {
        let number = <[u8; 16]>::try_from(question.into_inner().query.as_slice());
        std::future::ready(match number {
            Ok(number) => {
                let number = QueryNumber(u128::from_be_bytes(number));
                Ok(Response::new(self.0.counters(number)))
            }
            Err(_) => Err(Status::invalid_argument("the number of a query has 16 bytes")),
        })
    }
}

impl Service<http::Request<Body>> for ProgressService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(Status::unimplemented(request.uri().path()).into_http());
            }
            let codec = ProstCodec::<Counters, Question>::default();
            Ok(tonic::server::Grpc::new(codec).unary(service, request).await)
        })
    }
}

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
