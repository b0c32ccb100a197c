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

/// Returns the groups of a partition in as many blocks as their values need, of the memory for groups.
fn blocks(
    reduction: &Reduction,
    part: ReducePartition,
    context: &TaskContext,
) -> Result<Vec<GroupBlock>> {
    let block = GroupBlock::new(reduction, part);
    let bytes_per_row = match &*reduction.strategy {
        ReduceStrategy::Accumulators(plan) if reduction.whole => plan.gathered_bytes_per_row,
        _ => 0,
    };
    if bytes_per_row == 0 {
        return Ok(vec![block]);
    }
    let config = GridfusionConfig::from_options(context.session_config().options());
    let memory = match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(limit) => (limit / 2).min(config.optimizer.reduce_memory),
        _ => config.optimizer.reduce_memory,
    };
    let most = memory / reduction.partitions.len().max(1) / bytes_per_row;
    Ok(block.of_rows(reduction, most as u64))
}

/// The blocks of a partition that are left, the last first.
pub(super) struct PartitionBlocks {
    reduction: Arc<Reduction>,
    partition: usize,
    metrics: Arc<ScanMetrics>,
    context: Arc<TaskContext>,
    pending: Vec<GroupBlock>,
    /// Whether no groups were returned yet.
    is_whole: bool,
}

impl PartitionBlocks {
    /// Divides partition number `partition`, or the part of it that filters keep.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn try_new(
        reduction: &Arc<Reduction>,
        part: ReducePartition,
        partition: usize,
        metrics: ScanMetrics,
        context: Arc<TaskContext>,
    ) -> Result<Self> {
        let mut pending = blocks(reduction, part, &context)?;
        pending.reverse();
        let (reduction, metrics) = (Arc::clone(reduction), Arc::new(metrics));
        Ok(Self { reduction, partition, metrics, context, pending, is_whole: true })
    }

    /// Returns the groups of the next block. If the memory pool refuses memory for them, the block is halved; if rows may
    /// take less, the partition is aggregated over rows.
    pub(super) async fn next(mut self) -> Result<Option<(SendableRecordBatchStream, Self)>> {
        while let Some(block) = self.pending.pop() {
            let reducer = PartitionReducer::new(
                &self.reduction,
                block.part.clone(),
                self.partition,
                Arc::clone(&self.metrics),
                Arc::clone(&self.context),
            );
            // Nothing is yielded before the last chunk, so until then the work can start again.
            let reduced = match reducer {
                Ok(reducer) => reducer.into_stream().await,
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
            let Some(halves) = halves else { return Err(error) };
            log::debug!(
                "no memory for the values of all groups, aggregating half of them: {error}"
            );
            self.pending.extend(halves.into_iter().rev());
        }
        Ok(None)
    }
}

/// Whether the memory pool refused memory, directly or below other errors.
fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
