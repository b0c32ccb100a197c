//! What a scan counts. Shown by `EXPLAIN ANALYZE`, and asserted in tests.

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, PruningMetrics, Time,
};

use crate::scan::ScanPlan;

/// The metrics of one partition of a scan.
#[derive(Debug)]
pub(super) struct ScanMetrics {
    /// Output rows, and the time spent making columns.
    pub(super) baseline: BaselineMetrics,
    /// Chunks whose payload was read. Chunks that only gave dimension columns do not count.
    pub(super) chunks_read: Count,
    /// Chunks whose zone map said all that was asked.
    pub(super) chunks_answered: Count,
    /// Bytes of payloads that were asked for; not the index, nor bytes between payloads.
    pub(super) bytes_read: Count,
    /// Bytes of decoded tiles, compressed or not.
    pub(super) bytes_decoded: Count,
    /// Cells of visited chunks that the selection leaves out.
    pub(super) cells_skipped: Count,
    /// Time waiting for index rows.
    pub(super) time_locate: Time,
    /// Time waiting for payloads.
    pub(super) time_fetch: Time,
    /// Time spent decompressing.
    pub(super) time_decode: Time,
}

impl ScanMetrics {
    /// The metrics of `partition`, which reads the partition `at` of `plan`; all partitions together
    /// visit `visited` chunks.
    pub(super) fn new(
        set: &ExecutionPlanMetricsSet,
        partition: usize,
        plan: &ScanPlan,
        at: usize,
        visited: u64,
    ) -> Self {
        let chunks: PruningMetrics =
            MetricBuilder::new(set).pruning_metrics("chunks_pruned", partition);
        let tasks = plan.tasks(at);
        chunks.add_matched((tasks.end - tasks.start) as usize);
        if partition == 0 {
            // Chunks outside the plan belong to no partition; the first one reports them.
            chunks.add_pruned((plan.grid().chunks() - visited) as usize);
        }
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        let time = |name: &'static str| MetricBuilder::new(set).subset_time(name, partition);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            chunks_read: counter("chunks_read"),
            chunks_answered: counter("chunks_answered"),
            bytes_read: counter("bytes_read"),
            bytes_decoded: counter("bytes_decoded"),
            cells_skipped: counter("cells_skipped"),
            time_locate: time("time_locate"),
            time_fetch: time("time_fetch"),
            time_decode: time("time_decode"),
        }
    }
}
