//! The figures of a query that has run, as `--timing` has them.

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
        let seconds = self.start.elapsed().as_secs_f64();
        let reads = Reads::from_run(&self.plan).await;
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
