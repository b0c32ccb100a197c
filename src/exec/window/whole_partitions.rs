//! Windows over whole partitions: the aggregates are reductions of the array, joined back to its rows.
//!
//! ```text
//!   SELECT value - avg(value) OVER (PARTITION BY lat, lon) FROM sst
//!
//!   WindowAgg  partition by lat, lon            Project  lat, lon, value, avg
//!     Sort  lat, lon                              Join  lat = lat, lon = lon
//!       Repartition  lat, lon              ──▶      GridReduce  gby=[lat, lon]: avg(value)
//!         GridScan                                  GridScan
//! ```
//!
//! Nothing is sorted, and rows stay in the order of the array. Each row has exactly one partition, so the join keeps each
//! row once.
//!
//! The rule `WindowReduce` finds them.
//!
//! NULL equals NULL in this join. Zeros of both signs are one group and two partitions, so keys with both stay over rows.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::{PlainAggregateWindowExpr, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, WindowExpr};

use crate::exec::GridReduceExec;
use crate::exec::columns::have_same_types;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{
    ScanBelow, ScanCells, has_both_zeros, unfiltered_aggregate, with_one_zero,
};
use crate::exec::reduce::reduced_aggregation;
use crate::exec::rules::walk::up;

/// Replaces aggregates `OVER (PARTITION BY …)` whole partitions of an array, if each key is over one dimension. The aggregates
/// become reductions, which are joined with the rows by their keys.
pub(in crate::exec) fn reduce_windows(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: &Arc<dyn ExecutionPlan>| match node.downcast_ref::<WindowAggExec>() {
        Some(window) => reduced(window, config),
        None => Ok(None),
    };
    up(plan, replace).data()
}

/// Returns a plan with the rows of `window`, which aggregates partitions of an array. `None` if another kind of function is
/// among those of the window, or if the aggregation is no reduction.
fn reduced(
    window: &WindowAggExec,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(partitions) = Partitions::try_new(window) else { return Ok(None) };
    if partitions.tell_zeros_apart()? {
        return Ok(None);
    }
    let Some(values) = reduced_aggregation(&partitions.values()?, config)? else { return Ok(None) };
    let reduction = values.downcast_ref().or_else(|| values.children().first()?.downcast_ref());
    if !reduction.is_some_and(GridReduceExec::saves_rows) {
        return Ok(None);
    }
    let plan = partitions.joined(values)?;
    Ok(have_same_types(plan.as_ref(), window).then_some(plan))
}

/// The aggregates of a window, which are equal for all rows of a partition.
struct Partitions<'a> {
    window: &'a WindowAggExec,
    /// The keys of the partitions, over the input of the window.
    keys: Vec<PhysicalExprRef>,
    functions: Vec<Arc<AggregateFunctionExpr>>,
}

impl<'a> Partitions<'a> {
    fn try_new(window: &'a WindowAggExec) -> Option<Self> {
        let keys = window.window_expr().first()?.partition_by().to_vec();
        let mut functions = vec![];
        for expr in window.window_expr() {
            expr.as_any().downcast_ref::<PlainAggregateWindowExpr>()?;
            let aggregate = unfiltered_aggregate(expr.as_ref())?;
            if !is_whole(expr) || expr.partition_by() != keys {
                return None;
            }
            functions.push(Arc::new(aggregate.clone()));
        }
        (!keys.iter().any(is_volatile)).then_some(Self { window, keys, functions })
    }

    /// Whether zeros of both signs are keys of partitions. A reduction would take them for one.
    fn tell_zeros_apart(&self) -> Result<bool> {
        let below = ScanBelow::find(self.window.input(), ScanCells::Read)?;
        let Some(below) = below else { return Ok(false) };
        for key in &self.keys {
            if has_both_zeros(&below.over_scan(key)?, &below.scan)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn groups(&self) -> PhysicalGroupBy {
        let name = |(number, key): (usize, &PhysicalExprRef)| {
            (Arc::clone(key), format!("partition key {number}"))
        };
        PhysicalGroupBy::new_single(self.keys.iter().enumerate().map(name).collect())
    }

    /// Returns the aggregation by partition, in two stages.
    fn values(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let input = self.window.input();
        let stage = |mode, groups: PhysicalGroupBy, below: Arc<dyn ExecutionPlan>| {
            let (functions, filters) = (self.functions.clone(), vec![None; self.functions.len()]);
            AggregateExec::try_new(mode, groups, functions, filters, below, input.schema())
        };
        let states = stage(AggregateMode::Partial, self.groups(), Arc::clone(input))?;
        let mode = match self.keys.as_slice() {
            [] => AggregateMode::Final,
            _ => AggregateMode::FinalPartitioned,
        };
        Ok(Arc::new(stage(mode, self.groups().as_final(), Arc::new(states))?))
    }

    /// Joins the values of partitions with the rows.
    fn joined(&self, values: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.window.input();
        let (of_values, of_rows) = (values.schema(), rows.schema());
        let mut on = vec![];
        for (number, key) in self.keys.iter().enumerate() {
            let column = PhysicalColumn::new(of_values.field(number).name(), number);
            let column: PhysicalExprRef = Arc::new(column);
            on.push((with_one_zero(&column, &of_values)?, with_one_zero(key, &of_rows)?));
        }
        let joined: Arc<dyn ExecutionPlan> = match self.keys.as_slice() {
            [] => Arc::new(CrossJoinExec::new(values, Arc::clone(rows))),
            _ => HashJoinExecBuilder::new(values, Arc::clone(rows), on, JoinType::Inner)
                .with_partition_mode(PartitionMode::CollectLeft)
                .with_null_equality(NullEquality::NullEqualsNull)
                .build_exec()?,
        };
        let schema = self.window.schema();
        let (keys, width) = (self.keys.len(), of_values.fields().len());
        let columns = schema.fields().iter().enumerate().map(|(at, field)| {
            // The columns of the rows come first, and the aggregates of the window behind them.
            let input = of_rows.fields().len();
            let from = if at < input { width + at } else { keys + at - input };
            let column = PhysicalColumn::new(joined.schema().field(from).name(), from);
            (Arc::new(column) as PhysicalExprRef, field.name().clone())
        });
        let columns: Vec<_> = columns.collect();
        Ok(Arc::new(ProjectionExec::try_new_with_schema_metadata(columns, joined, &schema)?))
    }
}

/// Whether the frame of each row is its whole partition.
fn is_whole(expr: &Arc<dyn WindowExpr>) -> bool {
    let frame = expr.get_window_frame();
    let has_peers_only = frame.units == WindowFrameUnits::Range && expr.order_by().is_empty();
    let is_end = |bound: &WindowFrameBound| match bound {
        // Without an order, all rows of a partition are peers.
        WindowFrameBound::CurrentRow => has_peers_only,
        bound => bound.is_unbounded(),
    };
    is_end(&frame.start_bound) && is_end(&frame.end_bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    #[tokio::test]
    async fn whole_partitions_are_reduced_and_joined_back() {
        let query = "SELECT hour, value - avg(value) OVER (PARTITION BY station) FROM t";
        insta::assert_snapshot!(rewritten(query, reduce_windows).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[hour@0 as hour, CAST(value@2 AS Float64) - avg(t.value) PARTITION BY [t.station] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING@3 as t.value - avg(t.value) PARTITION BY [t.station] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING]
    ProjectionExec: expr=[hour@2 as hour, station@3 as station, value@4 as value, avg(t.value) PARTITION BY [t.station] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING@1 as avg(t.value) PARTITION BY [t.station] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING]
      HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(partition key 0@0, station@1)], NullsEqual: true
        GridReduceExec: mode=whole, gby=[partition key 0], aggr=[avg(t.value) PARTITION BY [t.station] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING], tier=dense, groups=4, dataset=test, chunks=32/32
        GridScanExec: dataset=test, chunks=32/32, projection=[hour, station, value]
"#);
        let of_all = "SELECT hour, max(value) OVER () FROM t";
        let plan = rewritten(of_all, reduce_windows).await.unwrap();
        assert!(plan.contains("CrossJoinExec") && plan.contains("GridReduceExec"), "{plan}");
    }

    #[tokio::test]
    async fn other_windows_stay() {
        let running = "SELECT sum(value) OVER (PARTITION BY station ORDER BY hour) FROM t";
        let no_aggregate = "SELECT row_number() OVER (PARTITION BY station) FROM t";
        let by_value = "SELECT avg(value) OVER (PARTITION BY value) FROM t";
        // Each row would be a group of its own.
        let by_cell = "SELECT avg(value) OVER (PARTITION BY hour, station) FROM t";
        let of_table = "SELECT avg(height) OVER (PARTITION BY station) FROM heights";
        for query in [running, no_aggregate, by_value, by_cell, of_table] {
            assert_eq!(rewritten(query, reduce_windows).await, None, "{query}");
        }
    }
}
