//! The metrics of a sparse scan, which `EXPLAIN ANALYZE` shows and tests assert.

use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, PruningMetrics, Time,
};

use super::plan::TileCounts;
use crate::exec::metrics::RequestMetrics;

/// The metrics of one partition of a scan.
#[derive(Debug)]
pub(super) struct SparseMetrics {
    /// Output rows, and the time spent making columns.
    pub(super) baseline: BaselineMetrics,
    /// Tiles that were checked against dynamic filters: pruned, and kept.
    pub(super) tiles_examined: PruningMetrics,
    /// Tiles of which a payload was read.
    pub(super) tiles_read: Count,
    /// Cells of the tiles whose coordinates or variables were decoded.
    pub(super) cells_decoded: Count,
    /// Cells that a newer cell of the same coordinates replaces.
    pub(super) cells_duplicate: Count,
    /// Cells that were deleted.
    pub(super) cells_deleted: Count,
    /// Cells outside the selected coordinates, or outside the time window.
    pub(super) cells_outside: Count,
    /// Cells that filters over variables exclude.
    pub(super) cells_filtered: Count,
    /// Bytes of the payloads that were read.
    pub(super) bytes_read: Count,
    /// Bytes of decoded tiles.
    pub(super) bytes_decoded: Count,
    /// Time waiting for payloads.
    pub(super) time_fetch: Time,
    /// Time spent decoding payloads.
    pub(super) time_decode: Time,
    /// Time spent finding the newest of several cells.
    pub(super) time_merge: Time,
    /// Requests to object stores.
    pub(super) requests: RequestMetrics,
}

impl SparseMetrics {
    /// Registers the metrics of one partition of a scan, and the tiles that planning pruned.
    pub(super) fn new(
        set: &ExecutionPlanMetricsSet,
        partition: usize,
        counts: &TileCounts,
    ) -> Self {
        let pruning = |name: &'static str| MetricBuilder::new(set).pruning_metrics(name, partition);
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, partition);
        let time = |name: &'static str| MetricBuilder::new(set).subset_time(name, partition);
        // Each reason prunes tiles that the reasons before it have left.
        let mut left = counts.tiles;
        let mut planned = |name: &'static str, without: u64| {
            let metrics = pruning(name);
            left = left.saturating_sub(without);
            // Tiles outside the plan belong to no partition; partition 0 reports them.
            if partition == 0 && !counts.is_reported_elsewhere {
                metrics.add_pruned(without as usize);
                metrics.add_matched(left as usize);
            }
        };
        planned("tiles_pruned_domain", counts.outside_domain);
        planned("tiles_pruned_rtree", counts.outside_rectangle);
        planned("tiles_pruned_statistics", counts.outside_statistics);
        Self {
            baseline: BaselineMetrics::new(set, partition),
            tiles_examined: pruning("tiles_pruned_dynamic_filter"),
            tiles_read: counter("tiles_read"),
            cells_decoded: counter("cells_decoded"),
            cells_duplicate: counter("cells_duplicate"),
            cells_deleted: counter("cells_deleted"),
            cells_outside: counter("cells_outside"),
            cells_filtered: counter("cells_filtered"),
            bytes_read: counter("bytes_read"),
            bytes_decoded: counter("bytes_decoded"),
            time_fetch: time("time_fetch"),
            time_decode: time("time_decode"),
            time_merge: time("time_merge"),
            requests: RequestMetrics::new(set, partition),
        }
    }
}
