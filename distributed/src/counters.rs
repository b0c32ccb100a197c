//! The counters of the tasks that a worker runs, and the call that asks for them.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use futures::future::BoxFuture;
use prost::Message;
use tonic::body::Body;
use tonic::server::{NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::query_number::QueryNumber;

/// The path of the call.
pub(crate) const PATH: &str = "/gridfusion.Progress/Counters";

/// The plan of a task, until it ends.
type Task = Weak<dyn ExecutionPlan>;

/// Sums of metrics by name: a count, or the numbers of what was pruned and what was not.
pub(crate) type Sums = BTreeMap<String, [u64; 2]>;

/// Adds to the sum of this name.
pub(crate) fn add(sums: &mut Sums, name: &str, numbers: [u64; 2]) {
    let sum = sums.entry(name.to_owned()).or_default();
    *sum = [sum[0].saturating_add(numbers[0]), sum[1].saturating_add(numbers[1])];
}

/// The plans of the tasks that a worker runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTasks {
    tasks: Arc<Mutex<HashMap<QueryNumber, Vec<Task>>>>,
}

impl RunningTasks {
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
            |(name, [count, matched]): (String, [u64; 2])| Counter { name, count, matched };
        Counters { counters: sums.into_iter().map(counter).collect() }
    }
}

/// Adds the metrics of a plan to sums.
fn add_metrics(plan: &Arc<dyn ExecutionPlan>, sums: &mut Sums) {
    // The closure never fails.
    let _ = plan.apply(|node| {
        for metric in node.metrics().unwrap_or_default().iter() {
            match metric.value() {
                MetricValue::Count { name, count } => add(sums, name, [count.value() as u64, 0]),
                MetricValue::PruningMetrics { name, pruning_metrics: pruned } => {
                    add(sums, name, [pruned.pruned() as u64, pruned.matched() as u64]);
                }
                _ => {}
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// A question for the counters of a query.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Question {
    /// The number of the query, big-endian.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) query: Vec<u8>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Counters {
    #[prost(message, repeated, tag = "1")]
    pub(crate) counters: Vec<Counter>,
}

/// A metric, summed over nodes and tasks.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Counter {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    /// The count; for pruning, the number of chunks or tiles that were ruled out.
    #[prost(uint64, tag = "2")]
    pub(crate) count: u64,
    /// For pruning, the number of chunks or tiles that were not ruled out.
    #[prost(uint64, tag = "3")]
    pub(crate) matched: u64,
}

/// The service of a worker that answers such questions.
#[derive(Debug, Clone)]
pub(crate) struct ProgressService(pub(crate) RunningTasks);

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
