//! The figures of a query that has run, as `--timing` has them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use gridfusion::io::{Remote, RequestCounts};

use crate::reads::Reads;

/// A query that runs.
#[derive(Debug)]
pub struct Run {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) start: Instant,
    pub(super) planning: Duration,
    pub(super) remote: Remote,
    /// The requests of the session before the query.
    pub(super) earlier: RequestCounts,
}

/// Looks at a query while it runs.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn() -> (u64, u64, u64) + Send + Sync>);

impl Watch {
    /// Makes a watch of a function with the result of [`Watch::progress`].
    pub(super) fn new(progress: impl Fn() -> (u64, u64, u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(progress))
    }

    pub(super) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let plan = Arc::clone(plan);
        Self::new(move || {
            let done = Reads::from_node(plan.as_ref()).done();
            (done.chunks, done.of, done.bytes)
        })
    }

    /// Returns the chunks that are done, those in all, or 0 if that is not known, and the bytes that were read.
    pub fn progress(&self) -> (u64, u64, u64) {
        self.0()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch{:?}", self.progress())
    }
}

/// The time that a query took, and what it read.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// From the planning to the last row.
    pub seconds: f64,
    /// The part of `seconds` before the query ran.
    pub planning_seconds: f64,
    /// Names and counts.
    pub counts: [(&'static str, u64); 10],
}

impl Run {
    /// Returns the figures after the last of `rows` rows. The counts of requests include other queries that the session ran meanwhile.
    pub async fn figures(&self, rows: usize) -> Figures {
        self.figures_of(rows, Reads::from_run(&self.plan).await)
    }

    /// As [`Run::figures`], of a run that counts its reads itself.
    pub(super) fn figures_of(&self, rows: usize, reads: Reads) -> Figures {
        let seconds = self.start.elapsed().as_secs_f64();
        let requests = self.remote.counts().since(&self.earlier);
        Figures {
            seconds,
            planning_seconds: self.planning.as_secs_f64(),
            counts: [
                ("rows", rows as u64),
                ("chunks", reads.chunks),
                ("chunks_read", reads.read),
                ("chunks_pruned", reads.pruned),
                ("chunks_answered", reads.answered),
                ("bytes_read", reads.bytes),
                ("requests", requests.requests),
                ("retries", requests.retries),
                ("bytes_fetched", requests.bytes_fetched),
                ("bytes_cached", requests.bytes_cached),
            ],
        }
    }
}
