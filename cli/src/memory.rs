//! `--memory-limit`: a memory pool that operators share fairly, and settings with which spilling operators
//! fit into it.
//!
//! ```text
//!   limit      ├── partition ──┼── partition ──┤         of 32 MiB at least
//!   partition  ├ chunk ┼ merge ┼ rows of a sort ┤        a chunk and a merge cannot be spilled
//! ```
//!
//! In a pool without shares, the first sort takes the memory that the second needs to begin. Smaller partitions would
//! only spill, so a small limit means fewer of them. A merge reads files at once, or a row group of Parquet, and its
//! memory is a fixed share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::common::config::MaxRowGroupBytes;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

/// Least bytes per partition; with less, a partition spends its time on spilling.
const PARTITION: usize = 32 << 20;
/// Most bytes that a sort concatenates, because offsets of text columns have 32 bits.
const MOST_IN_PLACE: usize = 1 << 31;
/// Number of memory consumers that an error lists.
const LISTED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// Limits the memory of queries to `limit` bytes, if there is a limit.
pub(crate) fn limited(runtime: RuntimeEnvBuilder, limit: Option<usize>) -> RuntimeEnvBuilder {
    let Some(limit) = limit else { return runtime };
    // In a greedy pool, the first operator would take all memory, and operators that cannot spill would fail.
    let pool = TrackConsumersPool::new(FairSpillPool::new(limit), LISTED);
    let disk = DiskManagerBuilder::default().with_max_spill_merge_fan_in(Shares::new(limit).fan_in);
    runtime.with_memory_pool(Arc::new(pool)).with_disk_manager_builder(disk)
}

/// Adapts the settings that have their default values to a limit of `limit` bytes.
///
/// # Errors
/// Never: a row group gets at least 1 byte.
pub(crate) fn adapt(options: &mut ConfigOptions, limit: Option<usize>) -> Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let defaults = ConfigOptions::default();
    let shares = Shares::new(limit);
    let (execution, plain) = (&mut options.execution, defaults.execution);
    if execution.target_partitions == plain.target_partitions {
        execution.target_partitions = shares.partitions.min(plain.target_partitions);
    }
    if execution.sort_spill_reservation_bytes == plain.sort_spill_reservation_bytes {
        execution.sort_spill_reservation_bytes = shares.merge;
    }
    if execution.sort_in_place_threshold_bytes == plain.sort_in_place_threshold_bytes {
        // Sorting batch by batch and merging needs as much memory again, which a sort cannot spill and is not
        // granted. Sorting in one piece needs only the memory already accounted for.
        execution.sort_in_place_threshold_bytes = limit.min(MOST_IN_PLACE);
    }
    if execution.parquet.max_row_group_bytes.is_none() {
        execution.parquet.max_row_group_bytes = Some(MaxRowGroupBytes::try_new(shares.row_group)?);
        // The parallel writer limits row groups by rows alone, not by bytes.
        execution.parquet.allow_single_file_parallelism = false;
    }
    Ok(())
}

/// Returns advice for an error that the memory limit caused.
pub(crate) fn advice(error: &DataFusionError) -> Option<&'static str> {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(message) if message.contains("allocate additional") => {
            Some("raise --memory-limit, or query less data at a time")
        }
        _ => None,
    }
}

/// The shares of a memory limit. On 16 cores, 512 MiB are 16 partitions of 32 MiB. Each keeps 8 MiB free
/// for merging, and merges 10 files at once; a row group has 64 MiB.
struct Shares {
    /// The most partitions that get [`PARTITION`] bytes each.
    partitions: usize,
    /// Bytes that a sort keeps free for merging.
    merge: usize,
    /// Number of sorted spill files that are merged at once.
    fan_in: usize,
    /// Bytes of a Parquet row group, which stays in memory until it is written.
    row_group: usize,
}

impl Shares {
    fn new(limit: usize) -> Self {
        let partitions = (limit / PARTITION).max(1);
        let partition = limit / partitions.min(cores());
        Self {
            partitions,
            merge: (partition / 4).min(10 << 20),
            // A file takes four batches, and most batches have less than 256 KiB. So all files take a third
            // of the partition.
            fan_in: (partition / (3 << 20)).clamp(4, 128),
            row_group: (limit / 8).max(1),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_into_the_limit() {
        for limit in [1 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30, 1 << 40] {
            let shares = Shares::new(limit);
            let used = shares.partitions.min(cores());
            assert!(used * shares.merge <= limit / 4, "{limit}");
            assert!(shares.fan_in >= 4 && shares.row_group >= 1, "{limit}");
        }
        assert_eq!(Shares::new(64 << 20).partitions, 2);
    }

    #[test]
    fn what_was_set_stays() {
        let mut options = ConfigOptions::default();
        options.execution.target_partitions = 77;
        adapt(&mut options, Some(1 << 20)).unwrap();
        assert_eq!(options.execution.target_partitions, 77);
        assert_eq!(options.execution.sort_spill_reservation_bytes, 1 << 18);
        let mut free = ConfigOptions::default();
        adapt(&mut free, None).unwrap();
        assert_eq!(free.execution, ConfigOptions::default().execution);
    }
}
