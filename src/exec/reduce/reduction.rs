//! [`Reduction`]: what is aggregated, how, and over rows again where there is no memory for that.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;

use super::keys::Keys;
use super::partitions::{ReducePartition, as_planned, without_shared_groups};
use super::query::Query;
use super::strategy::ReduceStrategy;
use crate::array::GridArray;
use crate::exec::GridScanExec;
use crate::exec::config::GridfusionConfig;
use crate::plan::ScanPlan;

/// An aggregation over a scan, planned: nothing in it changes while it runs.
#[derive(Debug)]
pub(super) struct Reduction {
    pub(super) array: Arc<GridArray>,
    /// The plan of the scan; keys are numbered over its selection, and partitions are parts of it.
    pub(super) plan: Arc<ScanPlan>,
    pub(super) partitions: Vec<ReducePartition>,
    pub(super) keys: Keys,
    pub(super) strategy: ReduceStrategy,
    /// Whether it yields final values, because no group is in two partitions; otherwise partial states.
    pub(super) whole: bool,
    /// For display; strategies have it in their own ways.
    pub(super) predicate: Option<PhysicalExprRef>,
    pub(super) schema: SchemaRef,
    /// The aggregation that this replaces.
    pub(super) rows: AggregateExec,
}

impl Reduction {
    /// A reduction that does what `aggregate` does, or `None` if there is none. With a schema for it,
    /// one that yields final values if no group is in two partitions; otherwise partial states.
    pub(super) fn replacing(
        aggregate: &AggregateExec,
        whole: Option<SchemaRef>,
        config: &GridfusionConfig,
    ) -> Result<Option<Self>> {
        let Some(query) = Query::of(aggregate)? else { return Ok(None) };
        let Some(scan) = query.scan.downcast_ref::<GridScanExec>() else { return Ok(None) };
        let Some(keys) = Keys::number(&query, scan) else { return Ok(None) };
        let Some(strategy) = ReduceStrategy::of(&query, scan)? else { return Ok(None) };
        let plan = Arc::clone(scan.plan());
        let apart =
            whole.and_then(|schema| Some((without_shared_groups(&plan, &keys.axes)?, schema)));
        let whole = apart.is_some();
        let (partitions, schema) = apart.unwrap_or_else(|| (as_planned(&plan), aggregate.schema()));
        // These share the groups between them; other partitions may each have all of them.
        let tables = if whole { 1 } else { partitions.len() as u64 };
        if keys.groups > 1 && !strategy.is_worthwhile(&keys, &plan, tables, config) {
            return Ok(None);
        }
        Ok(Some(Self {
            array: Arc::clone(scan.array()),
            plan,
            partitions,
            keys,
            strategy,
            whole,
            predicate: query.predicate.clone(),
            schema,
            rows: aggregate.clone(),
        }))
    }

    /// Bytes that the table takes per group.
    pub(super) fn bytes_per_group(&self) -> u64 {
        self.strategy.bytes_per_group(&self.keys)
    }

    /// The same partition of the aggregation that this replaces, over rows.
    pub(super) fn over_rows(&self, partition: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let partition = &self.partitions[partition];
        let input = Arc::clone(self.rows.input())
            .transform_up(|node| {
                if let Some(scan) = node.downcast_ref::<GridScanExec>() {
                    let scan = scan.over_plan(Arc::clone(&partition.plan))?;
                    return Ok(Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>));
                }
                // Another partitioning than ours.
                Ok(match node.downcast_ref::<RepartitionExec>() {
                    Some(repartition) => Transformed::yes(Arc::clone(repartition.input())),
                    None => Transformed::no(node),
                })
            })
            .data()?;
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
