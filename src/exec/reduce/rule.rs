//! The rule `GridReduce`: replaces aggregations over scans by reductions.
//!
//! ```text
//!   plan node                 if partitions share no group    otherwise
//!   Final over Partial        mode=whole replaces both        mode=partial replaces Partial
//!   Single                    mode=whole                      unchanged: nothing would merge the states
//!   Partial, met on its own   mode=partial                    mode=partial
//!   two, for count(DISTINCT)  mode=whole replaces all four    unchanged, if fewer partitions would work
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::distinct_counts::with_distinct_counts;
use super::node::GridReduceExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::rows_because::{Attempt, Declined, because, if_made, or_reason};
use crate::exec::rules::walk::down;

/// Turns aggregations over a [`crate::exec::GridScanExec`], whose keys are each over one dimension, into a [`GridReduceExec`].
///
/// Before `EnsureRequirements`, a reduction that needs no final stage replaces both stages. Behind it, a reduction still replaces
/// the first stage.
pub(in crate::exec) fn reduce_arrays(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: &Arc<dyn ExecutionPlan>| or_reason(reduction(node, config), node);
    down(plan, replace).data()
}

/// Returns the replacement of `plan`, if `plan` is an aggregation that can be reduced: a reduction, or a final stage above one.
pub(in crate::exec) fn reduced_aggregation(
    plan: &Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if_made(reduction(plan, config))
}

fn reduction(
    plan: &Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Attempt<Arc<dyn ExecutionPlan>> {
    let aggregate = plan.downcast_ref::<AggregateExec>().ok_or(Declined::NoArray)?;
    match aggregate.mode() {
        // The final stage is elsewhere, such as above a repartitioning: the rule runs behind `EnsureRequirements`.
        AggregateMode::Partial if plan.output_ordering().is_some() => {
            Err(because("an operator above may need its groups in order"))
        }
        AggregateMode::Partial => Ok(Arc::new(GridReduceExec::replacing(aggregate, None, config)?)),
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            let partitions = plan.output_partitioning().partition_count();
            let node = GridReduceExec::replacing(aggregate, Some(plan.schema()), config)?;
            // An operator above may rely on the number of partitions.
            if node.is_whole()
                && node.properties().output_partitioning().partition_count() == partitions
            {
                return Ok(Arc::new(node));
            }
            Err(because("an operator above needs its groups in these partitions"))
        }
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let partial = aggregate.input().downcast_ref::<AggregateExec>();
            let partial = partial.filter(|it| *it.mode() == AggregateMode::Partial);
            let partial = partial.ok_or(Declined::NoArray)?;
            let node = match GridReduceExec::replacing(partial, Some(plan.schema()), config) {
                Err(Declined::NoArray) => {
                    let merged = with_distinct_counts(partial)?.ok_or(Declined::NoArray)?;
                    return Ok(Arc::new(GridReduceExec::gathering(
                        &merged,
                        plan.schema(),
                        config,
                    )?));
                }
                node => node?,
            };
            if node.is_whole() {
                return Ok(Arc::new(node));
            }
            let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Arc::clone(plan).replace_children(vec![Arc::new(node)], recompute)?)
        }
        AggregateMode::PartialReduce => Err(Declined::NoArray),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    #[tokio::test]
    async fn aggregations_over_arrays_become_reductions() {
        let query = "SELECT station, avg(value), count(*) FROM t GROUP BY station";
        insta::assert_snapshot!(rewritten(query, reduce_arrays).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[station@0 as station, avg(t.value)@1 as avg(t.value), count(Int64(1))@2 as count(*)]
    GridReduceExec: mode=whole, gby=[station], aggr=[avg(t.value), count(Int64(1))], tier=dense, groups=4, dataset=test, chunks=32/32
"#);
        // Partitions are ranges of hours, and so share no group.
        let by_hour =
            rewritten("SELECT hour, max(value) FROM t GROUP BY hour", reduce_arrays).await;
        let by_hour = by_hour.unwrap();
        assert!(by_hour.contains("mode=whole") && !by_hour.contains("AggregateExec"), "{by_hour}");
    }

    #[tokio::test]
    async fn other_aggregations_stay() {
        for query in [
            "SELECT value, count(*) FROM t GROUP BY value",
            "SELECT array_agg(value) FROM t",
            "SELECT sum(value) FROM t WHERE random() > 0.5",
            "SELECT station, sum(height) FROM heights GROUP BY station",
        ] {
            assert_eq!(rewritten(query, reduce_arrays).await, None, "{query}");
        }
    }
}
