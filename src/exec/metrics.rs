//! The metrics of a scan, which `EXPLAIN ANALYZE` shows and tests assert.

use std::sync::OnceLock;

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, PruningMetrics, Time,
};

use crate::grid::ChunkGrid;
use crate::io::RequestCounts;
use crate::plan::PrunedChunks;

/// The metrics of one partition of a scan.
#[derive(Debug)]
pub(super) struct ScanMetrics {
    /// Output rows, and the time spent making columns.
    pub(super) baseline: BaselineMetrics,
    /// Chunks that were checked against dynamic filters: pruned, and kept.
    pub(super) chunks_examined: PruningMetrics,
    /// Chunks whose payload was read. Chunks that only gave dimension columns do not count.
    pub(super) chunks_read: Count,
    /// Chunks that were not read because their zone maps hold all requested statistics.
    pub(super) chunks_answered: Count,
    /// Bytes of the payloads that were read, without the index and without bytes between payloads.
    pub(super) bytes_read: Count,
    /// Bytes of decoded tiles, compressed or not.
    pub(super) bytes_decoded: Count,
    /// Cells of visited chunks that the selection leaves out.
    pub(super) cells_skipped: Count,
    /// Time spent pruning and locating chunks.
    pub(super) time_locate: Time,
    /// Time waiting for payloads.
    pub(super) time_fetch: Time,
    /// Time spent decoding payloads.
    pub(super) time_decode: Time,
    /// Requests to object stores.
    pub(super) requests: RequestMetrics,
}

impl ScanMetrics {
    /// Registers the metrics of one partition of a scan of `grid`, and the chunks that planning pruned; `None` if another
    /// scan reports them.
    pub(super) fn new(
        set: &ExecutionPlanMetricsSet,
        partition: usize,
        grid: &ChunkGrid,
        pruned: Option<PrunedChunks>,
    ) -> Self {
        let pruning = |name: &'static str| MetricBuilder::new(set).pruning_metrics(name, partition);
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        let time = |name: &'static str| MetricBuilder::new(set).subset_time(name, partition);
        // Each reason prunes chunks that the reasons before it have left.
        let mut left = grid.chunks();
        let is_reported = partition == 0 && pruned.is_some();
        let pruned = pruned.unwrap_or_default();
        let mut planned = |name: &'static str, without: u64| {
            let metrics = pruning(name);
            left -= without;
            // Chunks outside the plan belong to no partition; partition 0 reports them.
            if is_reported {
                metrics.add_pruned(without as usize);
                metrics.add_matched(left as usize);
            }
        };
        planned("chunks_pruned_selection", pruned.by_selection);
        planned("chunks_pruned_zone_map", pruned.by_zones);
        planned("chunks_pruned_limit", pruned.by_limit);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            chunks_examined: pruning("chunks_pruned_dynamic_filter"),
            chunks_read: counter("chunks_read"),
            chunks_answered: counter("chunks_answered"),
            bytes_read: counter("bytes_read"),
            bytes_decoded: counter("bytes_decoded"),
            cells_skipped: counter("cells_skipped"),
            time_locate: time("time_locate"),
            time_fetch: time("time_fetch"),
            time_decode: time("time_decode"),
            requests: RequestMetrics::new(set, partition),
        }
    }
}

/// The requests of one partition to object stores. Scans of files do not have these metrics.
#[derive(Debug)]
pub(super) struct RequestMetrics {
    set: ExecutionPlanMetricsSet,
    partition: usize,
    counters: OnceLock<RequestCounters>,
}

#[derive(Debug)]
struct RequestCounters {
    /// Requests, also those that were tried again.
    requests: Count,
    /// Requests that were tried again.
    retries: Count,
    /// Bytes that arrived, also those between payloads.
    bytes_fetched: Count,
    /// Bytes that arrived only because they lie between wanted ones.
    bytes_wasted: Count,
    /// Bytes that needed no request.
    bytes_cached: Count,
    /// The time of all requests together.
    time_requests: Time,
}

impl RequestMetrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self { set: set.clone(), partition, counters: OnceLock::new() }
    }

    pub(super) fn add(&self, counts: &RequestCounts) {
        if *counts == RequestCounts::default() {
            return;
        }
        let counters = self.counters.get_or_init(|| {
            let counter =
                |name: &'static str| MetricBuilder::new(&self.set).counter(name, self.partition);
            RequestCounters {
                requests: counter("requests"),
                retries: counter("retries"),
                bytes_fetched: counter("bytes_fetched"),
                bytes_wasted: counter("bytes_wasted"),
                bytes_cached: counter("bytes_cached"),
                time_requests: MetricBuilder::new(&self.set)
                    .subset_time("time_requests", self.partition),
            }
        });
        counters.requests.add(counts.requests as usize);
        counters.retries.add(counts.retries as usize);
        counters.bytes_fetched.add(counts.bytes_fetched as usize);
        counters.bytes_wasted.add(counts.bytes_wasted as usize);
        counters.bytes_cached.add(counts.bytes_cached as usize);
        counters.time_requests.add_duration(counts.time);
    }
}
