//! The rule `GridJoinReduce`: replaces aggregations above lookups by reductions.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::node::GridJoinReduceExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::reduce::Output;
use crate::exec::rules::walk::down;

/// Turns aggregations above a [`crate::exec::GridLookupExec`] into a [`GridJoinReduceExec`], if each key is over the other side or
/// over one axis. A reduction that needs no final stage replaces both stages.
pub(in crate::exec) fn reduce_joins(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    down(plan, |node| reduced(node, config)).data()
}

fn reduced(
    plan: &Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    match aggregate.mode() {
        // An operator above may need its groups in order.
        AggregateMode::Partial if plan.output_ordering().is_some() => Ok(None),
        AggregateMode::Partial => {
            let node = GridJoinReduceExec::replacing(aggregate, Output::States, config)?;
            Ok(node.map(|node| Arc::new(node) as _))
        }
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            let partitions = plan.output_partitioning().partition_count();
            let output = Output::WholeIfApart(plan.schema());
            let node = GridJoinReduceExec::replacing(aggregate, output, config)?;
            // An operator above may rely on the number of partitions.
            let fits = |node: &GridJoinReduceExec| {
                node.is_whole()
                    && node.properties().output_partitioning().partition_count() == partitions
            };
            Ok(node.filter(fits).map(|node| Arc::new(node) as _))
        }
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let partial = aggregate.input().downcast_ref::<AggregateExec>();
            let partial = partial.filter(|it| *it.mode() == AggregateMode::Partial);
            let Some(partial) = partial else { return Ok(None) };
            let output = Output::WholeIfApart(plan.schema());
            let node = GridJoinReduceExec::replacing(partial, output, config)?;
            let Some(node) = node else { return Ok(None) };
            if node.is_whole() {
                return Ok(Some(Arc::new(node)));
            }
            let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Some(Arc::clone(plan).replace_children(vec![Arc::new(node)], recompute)?))
        }
        AggregateMode::PartialReduce => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::lookup::look_up_rows;
    use crate::exec::test_array::rewritten;

    fn both(
        plan: Arc<dyn ExecutionPlan>,
        config: &GridfusionConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        reduce_joins(look_up_rows(plan, config)?, config)
    }

    #[tokio::test]
    async fn aggregations_above_lookups_become_reductions() {
        let query = "SELECT h.height, t.hour, avg(t.value), sum(t.value * h.height)
            FROM t JOIN heights h ON t.station = h.station GROUP BY h.height, t.hour";
        insta::assert_snapshot!(rewritten(query, both).await.unwrap(), @r"
        OutputRequirementExec: order_by=[], dist_by=Unspecified
          GridJoinReduceExec: mode=whole, gby=[height, hour], aggr=[avg(t.value), sum(t.value * h.height)], tier=sparse, on=[(station@0, station@1)], dataset=test, chunks=32/32
            DataSourceExec: partitions=1, partition_sizes=[1]
        ");
        let query = "SELECT h.height, max(t.value) FROM t JOIN heights h ON t.station = h.station
            WHERE t.value > h.height GROUP BY h.height";
        let plan = rewritten(query, both).await.unwrap();
        for part in ["AggregateExec: mode=Final", "mode=partial", "tier=accumulators", "filter="] {
            assert!(plan.contains(part), "{part}: {plan}");
        }
    }

    #[tokio::test]
    async fn other_aggregations_stay() {
        for query in [
            "SELECT t.value, count(*) FROM t JOIN heights h ON t.station = h.station GROUP BY t.value",
            "SELECT h.height + t.hour, count(*) FROM t JOIN heights h ON t.station = h.station GROUP BY 1",
            "SELECT h.height, array_agg(value) FROM t JOIN heights h ON t.station = h.station GROUP BY 1",
            "SELECT h.height, sum(value) FROM t LEFT JOIN heights h ON t.station = h.station GROUP BY 1",
            "SELECT h.height, sum(value) FROM t JOIN heights h ON t.station = h.station AND random() > 0.5 GROUP BY 1",
        ] {
            let text = rewritten(query, both).await.unwrap_or_default();
            assert!(!text.contains("GridJoinReduceExec"), "{query}\n{text}");
        }
    }
}
