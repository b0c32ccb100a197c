//! The rule `SparseAnswer`: lets stored statistics of tiles answer aggregates over sparse scans.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::answer::SparseAnswerExec;
use super::scan::SparseScanExec;
use crate::exec::rules::walk::up;

/// Puts a [`SparseAnswerExec`] above the first stage of aggregations without groups over a [`SparseScanExec`].
pub(in crate::exec) fn answer_by_statistics(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, answered).data()
}

/// Returns the replacement of `plan`, if `plan` is an aggregation that statistics can answer.
fn answered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let Some(scan) = scan_below(aggregate.input()) else { return Ok(None) };
    let stage = |mode, input: &Arc<dyn ExecutionPlan>| -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(AggregateExec::try_new(
            mode,
            aggregate.group_expr().clone(),
            aggregate.aggr_expr().to_vec(),
            aggregate.filter_expr().to_vec(),
            Arc::clone(input),
            aggregate.input_schema(),
        )?))
    };
    let partial = match aggregate.mode() {
        AggregateMode::Partial | AggregateMode::Single => stage(AggregateMode::Partial, scan)?,
        _ => return Ok(None),
    };
    let Some(node) = SparseAnswerExec::over(&partial) else { return Ok(None) };
    let node: Arc<dyn ExecutionPlan> = Arc::new(node);
    // A single stage has one input partition, so its states need no repartitioning.
    Ok(Some(match aggregate.mode() {
        AggregateMode::Partial => node,
        _ => stage(AggregateMode::Final, &node)?,
    }))
}

/// Returns the sparse scan below an aggregation, also if its rows are distributed to more partitions: the
/// states of whole tiles leave little to distribute.
fn scan_below(input: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let is_scan = |plan: &Arc<dyn ExecutionPlan>| plan.downcast_ref::<SparseScanExec>().is_some();
    if is_scan(input) {
        return Some(input);
    }
    let repartition = input.downcast_ref::<RepartitionExec>()?;
    let is_round_robin = matches!(repartition.partitioning(), Partitioning::RoundRobinBatch(_));
    Some(repartition.input()).filter(|input| is_round_robin && is_scan(input))
}
