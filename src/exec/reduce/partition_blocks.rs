//! [`PartitionBlocks`]: the groups of a partition, block by block if their values need more memory than there is.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};

use super::group_blocks::GroupBlock;
use super::partitions::ReducePartition;
use super::reduction::Reduction;
use super::strategy::ReduceStrategy;
use super::stream::PartitionReducer;
use crate::exec::config::GridfusionConfig;
use crate::exec::metrics::ScanMetrics;

/// Returns the most rows of a block whose values fit into the memory for groups.
fn most_rows(reduction: &Reduction, context: &TaskContext) -> u64 {
    let bytes_per_row = match &*reduction.strategy {
        ReduceStrategy::Accumulators(plan) if reduction.whole => plan.gathered_bytes_per_row,
        _ => 0,
    };
    let config = GridfusionConfig::from_options(context.session_config().options());
    let memory = match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(limit) => (limit / 2).min(config.optimizer.reduce_memory),
        _ => config.optimizer.reduce_memory,
    };
    let of_partition = memory / reduction.partitions.len().max(1);
    of_partition.checked_div(bytes_per_row).map_or(u64::MAX, |rows| rows as u64)
}

/// The blocks of a partition that are left, the last first.
pub(super) struct PartitionBlocks {
    reduction: Arc<Reduction>,
    partition: usize,
    metrics: Arc<ScanMetrics>,
    context: Arc<TaskContext>,
    /// They are halved when it is their turn, because there may be very many.
    pending: Vec<GroupBlock>,
    most_rows: u64,
    /// Whether no groups were returned yet.
    is_whole: bool,
    /// Whether values are gathered instead of being summarized, as long as they fit in memory.
    gathers_summaries: bool,
}

impl PartitionBlocks {
    /// Begins with all groups of partition number `partition`, or of the part of it that filters keep.
    pub(super) fn new(
        reduction: Arc<Reduction>,
        part: ReducePartition,
        partition: usize,
        metrics: ScanMetrics,
        context: Arc<TaskContext>,
    ) -> Self {
        let pending = vec![GroupBlock::new(&reduction, part)];
        let (most_rows, metrics) = (most_rows(&reduction, &context), Arc::new(metrics));
        let gathers_summaries = reduction.whole;
        Self {
            reduction,
            partition,
            metrics,
            context,
            pending,
            most_rows,
            is_whole: true,
            gathers_summaries,
        }
    }

    /// Returns the groups of the next block. A block is halved if its values are too many, or the memory pool refuses memory for
    /// them. Values of one group are summarized then, if that is possible. If rows may take less, the partition is aggregated
    /// over rows.
    pub(super) async fn next(mut self) -> Result<Option<(SendableRecordBatchStream, Self)>> {
        while let Some(block) = self.pending.pop() {
            if block.rows() > self.most_rows
                && let Some(halves) = block.halves(&self.reduction)
            {
                self.pending.extend(halves.into_iter().rev());
                continue;
            }
            let reducer = PartitionReducer::new(
                &self.reduction,
                block.part.clone(),
                self.partition,
                Arc::clone(&self.metrics),
                Arc::clone(&self.context),
            );
            // Nothing is yielded before the last chunk, so until then the work can start again.
            let reduced = match reducer {
                Ok(mut reducer) => {
                    reducer.gathers_summaries = self.gathers_summaries;
                    reducer.into_stream().await
                }
                Err(refused) => Err(refused),
            };
            let error = match reduced {
                Err(error) if is_exhausted(&error) => error,
                reduced => {
                    self.is_whole = false;
                    return Ok(Some((reduced?, self)));
                }
            };
            let batch_size = self.context.session_config().batch_size();
            let Reduction { strategy, keys, whole, .. } = &*self.reduction;
            if self.is_whole && strategy.rows_may_take_less(keys, batch_size) {
                log::debug!("no memory for the groups, aggregating rows: {error}");
                self.pending.clear();
                let of_plan = self.reduction.partitions[self.partition].partition;
                let rows = self.reduction.over_rows(self.partition)?;
                return Ok(Some((rows.execute(of_plan, Arc::clone(&self.context))?, self)));
            }
            let halves = if *whole { block.halves(&self.reduction) } else { None };
            let Some(halves) = halves else {
                if self.gathers_summaries && strategy.has_summaries() {
                    log::debug!("no memory for the values of a group, summarizing them: {error}");
                    self.gathers_summaries = false;
                    self.pending.push(block);
                    continue;
                }
                return Err(error);
            };
            log::debug!(
                "no memory for the values of all groups, aggregating half of them: {error}"
            );
            self.pending.extend(halves.into_iter().rev());
        }
        Ok(None)
    }
}

/// Whether the memory pool refused memory, directly or below other errors.
pub(in crate::exec) fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
