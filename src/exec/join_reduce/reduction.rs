//! [`JoinReduction`]: a planned aggregation above a lookup.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;

use super::products::ProductPlan;
use super::query::{JoinKey, JoinQuery};
use crate::exec::GridLookupExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::config::GridfusionConfig;
use crate::exec::lookup::GridLookup;
use crate::exec::matching::{KeysByAxis, NumberedKeys, group_count, may_fail};
use crate::exec::reduce::{
    AccumulatePlan, Aggregate, Cuts, Output, ReducePartition, as_planned, without_shared_groups,
    without_shared_groups_or_empty,
};
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// Where the values of a key are.
#[derive(Debug, Clone)]
pub(super) enum KeyColumn {
    /// The key of the other side with this number.
    Built(usize),
    /// A key over one axis.
    Axis {
        axis: usize,
        /// The values by the number of the group on the axis.
        values: ArrayRef,
    },
}

/// The columns of the join that the aggregates use.
#[derive(Debug)]
pub(super) struct UsedColumns {
    /// Columns of the scan, ascending: first those of the aggregates.
    pub(super) scanned: Vec<usize>,
    /// Columns of the other side, ascending.
    pub(super) built: Vec<usize>,
}

/// A planned aggregation above a lookup; it does not change while it runs.
#[derive(Debug)]
pub(super) struct JoinReduction {
    /// The aggregation that it replaces: its first stage if there are two.
    pub(super) rows: AggregateExec,
    pub(super) lookup: Arc<GridLookup>,
    /// The keys of the other side, over its columns.
    pub(super) built_keys: Vec<PhysicalExprRef>,
    /// The numbers of the keys along each axis.
    pub(super) axes: Vec<AxisGroups>,
    /// The keys in the order of the query.
    pub(super) keys: Vec<KeyColumn>,
    pub(super) columns: UsedColumns,
    /// The aggregates over the columns that they use.
    pub(super) aggregates: AccumulatePlan,
    /// The same as sums of products, if all are.
    pub(super) products: Option<ProductPlan>,
    pub(super) partitions: Vec<ReducePartition>,
    /// Whether it yields final values, because no group is in two partitions. Otherwise it yields partial states.
    pub(super) whole: bool,
    pub(super) schema: SchemaRef,
    /// The condition on pairs, for `EXPLAIN`.
    pub(super) predicate: Option<PhysicalExprRef>,
}

impl JoinReduction {
    /// Makes a reduction that is equivalent to `aggregate`; `None` if there is none, or its groups are too many.
    pub(super) fn try_new(
        aggregate: &AggregateExec,
        output: Output,
        config: &GridfusionConfig,
    ) -> Result<Option<(Self, GridLookupExec)>> {
        let Some(query) = JoinQuery::try_new(aggregate)? else { return Ok(None) };
        let lookup = Arc::clone(&query.lookup.joined().lookup);
        let Some((axes, built_keys, keys)) = numbered(&query, &lookup) else { return Ok(None) };
        let Some((columns, aggregates)) = used(&query, &lookup)? else { return Ok(None) };
        let plan = lookup.scan.plan();
        let apart = match output {
            Output::States => None,
            // Without keys, an empty partition would yield a group, too.
            Output::WholeIfApart(schema) => {
                without_shared_groups(plan, &axes, Cuts::Cheap).map(|apart| (apart, schema))
            }
            Output::Whole(schema) => {
                Some((without_shared_groups_or_empty(plan, &axes, Cuts::Cheap), schema))
            }
        };
        let whole = apart.is_some();
        let (partitions, schema) = apart.unwrap_or_else(|| (as_planned(plan), aggregate.schema()));
        let reduction = Self {
            rows: aggregate.clone(),
            built_keys,
            axes,
            keys,
            columns,
            aggregates,
            products: ProductPlan::try_new(&query, &lookup),
            partitions,
            whole,
            schema,
            predicate: query.predicate,
            lookup,
        };
        // The other side has a group, or there is nothing to aggregate.
        let fits = reduction.bytes(1) <= config.optimizer.reduce_memory as u64;
        Ok(fits.then_some((reduction, query.lookup)))
    }

    /// Returns the greatest number of groups of one group of the other side, in all partitions together.
    pub(super) fn axis_groups(&self) -> u64 {
        let groups = group_count(&self.axes, &self.lookup.scan).unwrap_or(u64::MAX);
        let tables = if self.whole { 1 } else { self.partitions.len() as u64 };
        groups.saturating_mul(tables)
    }

    /// Returns the bytes of all groups if the other side has so many.
    pub(super) fn bytes(&self, built_groups: u64) -> u64 {
        let groups = self.axis_groups().saturating_mul(built_groups);
        groups.saturating_mul(self.bytes_per_group() as u64)
    }

    /// Returns the bytes that a group takes: its number, and three times its states, which are copied for the output.
    pub(super) fn bytes_per_group(&self) -> usize {
        /// The least bytes of an accumulator: a few words.
        const ACCUMULATOR: usize = 32;
        3 * ACCUMULATOR * self.aggregates.calls.len() + 16 + 16 * self.keys.len()
    }

    /// Returns the plan of one partition.
    pub(super) fn part(&self, partition: usize) -> ScanPlan {
        let part = &self.partitions[partition];
        part.plan.partition(part.partition)
    }

    /// Returns the replaced aggregation over the rows of a part of the array. It yields what the reduction yields, in one
    /// partition.
    pub(super) fn over_rows(&self, of_part: GridLookupExec) -> Result<Arc<dyn ExecutionPlan>> {
        let mode = if self.whole { AggregateMode::Single } else { AggregateMode::Partial };
        Ok(Arc::new(self.rows_over(&(Arc::new(of_part) as _), mode)?))
    }

    /// Returns the replaced aggregation over another lookup.
    pub(super) fn rows_over(
        &self,
        lookup: &Arc<dyn ExecutionPlan>,
        mode: AggregateMode,
    ) -> Result<AggregateExec> {
        let input = Arc::clone(self.rows.input()).transform_down(|node| {
            Ok(if node.is::<GridLookupExec>() {
                Transformed::new(Arc::clone(lookup), true, TreeNodeRecursion::Jump)
            } else {
                Transformed::no(node)
            })
        });
        // Repartitioning would not keep the partitions of the reduction.
        let input = input.data()?.transform_up(|node| {
            Ok(match node.downcast_ref::<RepartitionExec>() {
                Some(repartition) => Transformed::yes(Arc::clone(repartition.input())),
                None => Transformed::no(node),
            })
        });
        AggregateExec::try_new(
            mode,
            self.rows.group_expr().clone(),
            self.rows.aggr_expr().to_vec(),
            self.rows.filter_expr().to_vec(),
            input.data()?,
            self.rows.input_schema(),
        )
    }
}

/// The groups of the axes, the keys of the other side, and all keys.
type Numbered = (Vec<AxisGroups>, Vec<PhysicalExprRef>, Vec<KeyColumn>);

/// Numbers the keys of the array along their axes. `None` if one is over several axes or over a variable.
fn numbered(query: &JoinQuery, lookup: &GridLookup) -> Option<Numbered> {
    let of_scan: Vec<PhysicalExprRef> = query
        .keys
        .iter()
        .filter_map(|key| match key {
            JoinKey::Scanned(key) => Some(Arc::clone(key)),
            JoinKey::Built(_) => None,
        })
        .collect();
    let by_axis = KeysByAxis::try_new(&of_scan, &lookup.scan)?;
    // Keys of the other side are evaluated for all rows that match a label, also if a condition leaves out all pairs of a row.
    let has_condition = lookup.predicate.is_some() || query.predicate.is_some();
    let built: Vec<_> = lookup.schema.fields()[lookup.scan.columns().len()..].to_vec();
    let built_schema = Schema::new(built);
    let fails = |key: &JoinKey| matches!(key, JoinKey::Built(key) if may_fail(key, &built_schema));
    if has_condition && query.keys.iter().any(fails) {
        return None;
    }
    let NumberedKeys { groups, values } = by_axis.number()?;
    let (mut built, mut keys, mut next) = (vec![], vec![], 0);
    for key in &query.keys {
        keys.push(match key {
            JoinKey::Built(key) => {
                built.push(Arc::clone(key));
                KeyColumn::Built(built.len() - 1)
            }
            JoinKey::Scanned(_) => {
                let axis = by_axis.axes.iter().position(|keys| keys.contains(&next))?;
                let values = Arc::clone(values[next].as_ref()?);
                next += 1;
                KeyColumn::Axis { axis, values }
            }
        });
    }
    Some((groups, built, keys))
}

/// Returns the columns that the aggregates use, and the aggregates over these columns; `None` if one needs rows in order.
fn used(query: &JoinQuery, lookup: &GridLookup) -> Result<Option<(UsedColumns, AccumulatePlan)>> {
    let calls = query.aggregates.iter();
    let of_calls = calls.clone().flat_map(Aggregate::expressions).chain(&query.predicate);
    let needed = columns_of(of_calls);
    let schema = Arc::new(lookup.schema.project(&needed)?);
    let calls = calls.map(|call| call.over_columns(&needed)).collect::<Result<Vec<_>>>()?;
    let predicate = query.predicate.as_ref().map(|it| over_columns(it, &needed)).transpose()?;
    let Some(plan) = AccumulatePlan::over_rows(calls, predicate, schema)? else {
        return Ok(None);
    };
    let scanned = lookup.scan.columns().len();
    let (of_scan, built): (Vec<usize>, Vec<usize>) =
        needed.into_iter().partition(|column| *column < scanned);
    let built = built.into_iter().map(|column| column - scanned).collect();
    Ok(Some((UsedColumns { scanned: of_scan, built }, plan)))
}
