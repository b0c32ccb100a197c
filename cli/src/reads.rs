//! Counts the chunks and bytes that a plan reads, from the metrics of its scans and reductions.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use gridfusion::source::size_text;
use gridfusion_distributed::{WorkerProgress, with_worker_metrics};

use crate::progress::{Done, Progress};

/// Counts of chunks and bytes, up to now if the plan still runs. Tiles of sparse arrays count as chunks. Operators that have not begun, and tables
/// that are no arrays, add nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Chunks of the scanned arrays; a chunk counts once per scan.
    pub(crate) chunks: u64,
    /// Chunks that labels, zone maps, limits or dynamic filters ruled out.
    pub(crate) pruned: u64,
    /// The part of `pruned` that was ruled out before the scan began.
    pub(crate) pruned_by_plan: u64,
    /// Chunks whose zone maps gave the result.
    pub(crate) answered: u64,
    /// Chunks whose payload was read.
    pub(crate) read: u64,
    /// Bytes of the payloads that were read.
    pub(crate) bytes: u64,
}

impl Reads {
    /// Returns the counts of a plan that has run, here and on workers. Without the metrics of workers, they are those of this
    /// process: the rows have arrived, so the query has not failed.
    pub(crate) async fn from_run(plan: &Arc<dyn ExecutionPlan>) -> Self {
        match with_worker_metrics(Arc::clone(plan)).await {
            Ok(plan) => Self::from_node(plan.as_ref()),
            Err(_) => Self::from_node(plan.as_ref()),
        }
    }

    /// Returns the counts of `plan` and its children.
    pub(crate) fn from_node(plan: &dyn ExecutionPlan) -> Self {
        let mut reads = Self::default();
        reads.add(plan);
        reads
    }

    /// Shows a progress line for a plan that is about to run, here or on workers.
    pub(crate) fn watch(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Progress {
        let (workers, plan) = (WorkerProgress::watch(plan, context), Arc::clone(plan));
        Progress::start(move || {
            let mut reads = Self::from_node(plan.as_ref());
            for counter in workers.counters() {
                reads.count_pruned(&counter.name, counter.count, counter.matched);
                reads.count_of(&counter.name, counter.count);
            }
            reads.done()
        })
    }

    /// Returns the progress, on the assumption that reading payloads takes most of the time.
    ///
    /// With 30 chunks, of which the plan pruned 10, a dynamic filter 5, and 3 were read: 8 of 20 are done.
    pub(crate) fn done(&self) -> Done {
        let by_run = self.pruned - self.pruned_by_plan + self.answered;
        let chunks = by_run + self.read;
        // A scan of dimensions alone reads no chunk, so its progress is not known.
        let of = if chunks > 0 { self.chunks - self.pruned_by_plan } else { 0 };
        Done { chunks, of, bytes: self.bytes, ..Done::default() }
    }

    fn add(&mut self, plan: &dyn ExecutionPlan) {
        for metric in plan.metrics().iter().flat_map(|metrics| metrics.iter()) {
            self.count(metric.value());
        }
        for child in plan.children() {
            self.add(child.as_ref());
        }
    }

    /// Adds a metric. Only the library's operators have metrics with these names.
    fn count(&mut self, metric: &MetricValue) {
        match metric {
            MetricValue::PruningMetrics { name, pruning_metrics } => {
                let (pruned, matched) = (pruning_metrics.pruned(), pruning_metrics.matched());
                self.count_pruned(name, pruned as u64, matched as u64);
            }
            MetricValue::Count { name, count } => self.count_of(name, count.value() as u64),
            _ => {}
        }
    }

    fn count_pruned(&mut self, name: &str, pruned: u64, matched: u64) {
        match name {
            "chunks_pruned_selection" | "tiles_pruned_domain" => {
                // These come first, so they see every chunk or tile.
                self.chunks += pruned + matched;
                self.pruned_by_plan += pruned;
            }
            "chunks_pruned_zone_map"
            | "chunks_pruned_limit"
            | "tiles_pruned_rtree"
            | "tiles_pruned_statistics" => {
                self.pruned_by_plan += pruned;
            }
            "chunks_pruned_dynamic_filter" | "tiles_pruned_dynamic_filter" => {}
            _ => return,
        }
        self.pruned += pruned;
    }

    fn count_of(&mut self, name: &str, count: u64) {
        match name {
            "chunks_answered" => self.answered += count,
            "chunks_read" | "tiles_read" => self.read += count,
            "bytes_read" => self.bytes += count,
            _ => {}
        }
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chunks, pruned, answered, read, .. } = self;
        write!(f, "chunks: {read} read, {pruned} pruned")?;
        if *answered > 0 {
            write!(f, ", {answered} answered by zone maps")?;
        }
        write!(f, ", {chunks} in all; {} read", size_text(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_are_not_planned_do_not_count() {
        let reads =
            Reads { chunks: 20, pruned: 9, pruned_by_plan: 6, answered: 1, read: 2, bytes: 7 };
        assert_eq!(reads.done(), Done { chunks: 6, of: 14, bytes: 7, ..Done::default() });
        let unread = Reads { chunks: 20, pruned: 6, pruned_by_plan: 6, ..Reads::default() };
        assert_eq!(unread.done(), Done::default());
    }
}
