//! [`Reduction`]: a planned aggregation over a scan, and the same over rows if memory is short.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::internal_datafusion_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;

use super::keys::Keys;
use super::partitions::{
    ReducePartition, as_planned, in_one, shares_apart, without_shared_groups,
    without_shared_groups_or_empty,
};
use super::query::Query;
use super::reason;
use super::strategy::ReduceStrategy;
use crate::array::GridArray;
use crate::exec::GridScanExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::rows_because::{Attempt, because, if_made};
use crate::plan::ScanPlan;

/// A planned aggregation over a scan; it does not change while it runs.
#[derive(Debug, Clone)]
pub(super) struct Reduction {
    pub(super) array: Arc<GridArray>,
    /// The plan of the scan; keys are numbered over its selection, and partitions are parts of it. It
    /// must read chunks one by one, as a plan does before sorts are pushed down: groups are found by
    /// ascending indices.
    pub(super) plan: Arc<ScanPlan>,
    pub(super) partitions: Vec<ReducePartition>,
    pub(super) keys: Arc<Keys>,
    pub(super) strategy: Arc<ReduceStrategy>,
    /// Whether the reduction yields final values, because no group is in two partitions; otherwise it
    /// yields partial states.
    pub(super) whole: bool,
    /// Whether groups may be weighed.
    pub(super) weighs: bool,
    /// The predicate for `EXPLAIN`; strategies hold it in their own form.
    pub(super) predicate: Option<PhysicalExprRef>,
    pub(super) schema: SchemaRef,
    /// The aggregation over rows that the reduction replaces.
    pub(super) rows: AggregateExec,
}

/// The output of a reduction.
#[derive(Debug, Clone)]
pub(in crate::exec) enum Output {
    /// Partial states.
    States,
    /// Final values of this schema if partitions of equal size share no group, and partial states otherwise.
    WholeIfApart(SchemaRef),
    /// Final values of this schema. Partitions may be empty.
    Whole(SchemaRef),
}

impl Reduction {
    /// Makes a reduction that is equivalent to `aggregate`, if there is one.
    pub(super) fn replacing(
        aggregate: &AggregateExec,
        output: Output,
        config: &GridfusionConfig,
    ) -> Attempt<Self> {
        let query = Query::try_new(aggregate)?;
        let scan = &query.scan;
        let keys = Keys::number(&query, scan, config);
        let keys = keys.ok_or_else(|| because(reason::of_keys(&query, aggregate)))?;
        let is_whole = !matches!(output, Output::States);
        let strategy = ReduceStrategy::try_new(&query, scan, &keys, config, is_whole)?;
        let strategy =
            strategy.ok_or_else(|| because(reason::of_aggregates(&query, &keys, config)))?;
        let plan = Arc::clone(scan.plan());
        // With the schema of final values, tries partitions that need no final stage.
        let apart = match output {
            Output::States => None,
            Output::WholeIfApart(schema) | Output::Whole(schema) if strategy.is_of_labels() => {
                Some((in_one(&plan), schema))
            }
            // Without keys, an empty partition would yield a group, too.
            Output::WholeIfApart(schema) if !strategy.needs_order() || query.keys.is_empty() => {
                without_shared_groups(&plan, &keys.axes, strategy.cuts())
                    .map(|apart| (apart, schema))
            }
            Output::WholeIfApart(schema) | Output::Whole(schema) => {
                let parts = without_shared_groups_or_empty(&plan, &keys.axes, strategy.cuts());
                Some((parts, schema))
            }
        };
        let whole = apart.is_some();
        if strategy.needs_order() && !whole {
            return Err(because("partitions share groups whose rows must be in order"));
        }
        let (partitions, schema) = apart.unwrap_or_else(|| (as_planned(&plan), aggregate.schema()));
        // Partitions without shared groups hold each group once; others may each hold all groups.
        let tables = if whole { 1 } else { partitions.len() as u64 };
        if strategy.groups(&keys) > 1 {
            strategy.is_worthwhile(&keys, &plan, tables, config)?;
        }
        Ok(Self {
            array: Arc::clone(scan.array()),
            plan,
            partitions,
            keys: Arc::new(keys),
            strategy: Arc::new(strategy),
            whole,
            weighs: config.optimizer.enable_reduce_weights,
            predicate: query.predicate.clone(),
            schema,
            rows: aggregate.clone(),
        })
    }

    /// Returns `count` reductions that together yield what this one yields. Shares of final values have no group in
    /// common; some may be empty.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn shares(&self, count: usize) -> Result<Vec<Self>> {
        let config = GridfusionConfig::unlimited(self.weighs);
        // Groups are numbered anew, because a share selects fewer labels.
        let share = |plan: ScanPlan| {
            let (rows, output) = (
                self.rows_over(&Arc::new(plan))?,
                match self.whole {
                    true => Output::Whole(Arc::clone(&self.schema)),
                    false => Output::States,
                },
            );
            let share = if_made(Self::replacing(&rows, output, &config))?;
            share.ok_or_else(|| internal_datafusion_err!("a share of a reduction is no reduction"))
        };
        let plans = match self.whole {
            true => shares_apart(&self.plan, &self.keys.axes, count, self.strategy.cuts()),
            false => self.plan.shares(count),
        };
        plans.into_iter().map(share).collect()
    }

    /// Returns the replaced aggregation over the rows of another plan.
    fn rows_over(&self, plan: &Arc<ScanPlan>) -> Result<AggregateExec> {
        let over_plan = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<GridScanExec>() {
            Some(scan) => Ok(Transformed::yes(Arc::new(scan.over_plan(Arc::clone(plan))?) as _)),
            None => Ok(Transformed::no(node)),
        };
        let rows: Arc<dyn ExecutionPlan> = Arc::new(self.rows.clone());
        let rows = rows.transform_up(over_plan).data()?;
        let rows = rows.downcast_ref::<AggregateExec>().cloned();
        rows.ok_or_else(|| internal_datafusion_err!("an aggregation became another node"))
    }

    /// Returns the bytes that the table of groups takes per group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        self.strategy.bytes_per_group(&self.keys)
    }

    /// Returns the replaced aggregation over the rows of one partition of the reduction. It yields final
    /// values or partial states, as the reduction does, so its batches can take the place of the
    /// reduction's.
    pub(super) fn over_rows(&self, partition: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let partition = &self.partitions[partition];
        let input = Arc::clone(self.rows.input())
            .transform_up(|node| {
                if let Some(scan) = node.downcast_ref::<GridScanExec>() {
                    let scan = scan.over_plan(Arc::clone(&partition.plan))?;
                    return Ok(Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>));
                }
                // Removes repartitioning, which would not keep the partitions of the reduction.
                Ok(match node.downcast_ref::<RepartitionExec>() {
                    Some(repartition) => Transformed::yes(Arc::clone(repartition.input())),
                    None => Transformed::no(node),
                })
            })
            .data()?;
        // A single stage per partition is final, because no other partition has its groups.
        let mode = if self.whole { AggregateMode::Single } else { AggregateMode::Partial };
        Ok(Arc::new(AggregateExec::try_new(
            mode,
            self.rows.group_expr().clone(),
            self.rows.aggr_expr().to_vec(),
            self.rows.filter_expr().to_vec(),
            input,
            self.rows.input_schema(),
        )?))
    }
}
