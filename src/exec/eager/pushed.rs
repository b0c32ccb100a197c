//! Moves a first stage of an aggregation below the join that it is over.

use std::sync::Arc;

use datafusion::common::JoinSide;
use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

use super::join_sides::HashJoinSides;
use super::keys::Keys;
use super::states::States;
use crate::exec::columns::have_same_types;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{InputOperators, with_one_zero};
use crate::exec::rules::walk::down;
use crate::exec::{GridReduceExec, GridScanExec};

/// Reduces arrays before they are joined with tables. The aggregation above a join must need no more than states of cells with
/// equal join keys.
pub(in crate::exec) fn reduce_below_joins(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replace = |node: &Arc<dyn ExecutionPlan>| match node.downcast_ref::<AggregateExec>() {
        Some(aggregate) if *aggregate.mode() == AggregateMode::Partial => {
            pushed_below(aggregate, config)
        }
        _ => Ok(None),
    };
    down(plan, replace).data()
}

/// Returns a plan with the same states as `aggregate`, a first stage above a join, with reductions below the join. `None` if
/// there is none, or if it would save nothing.
fn pushed_below(
    aggregate: &AggregateExec,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if aggregate.group_expr().has_grouping_set() {
        return Ok(None);
    }
    let Some(below) = InputOperators::above(aggregate.input(), &is_join)? else { return Ok(None) };
    let Some(join) = below.input.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    for side in [JoinSide::Right, JoinSide::Left] {
        let Some(joined) = HashJoinSides::new(join, side) else { continue };
        if !leads_to_scan(joined.input())? {
            continue;
        }
        let Some(rewrite) = Rewrite::try_new(aggregate, &below, joined)? else { continue };
        let Some(reduced) = reduced(&rewrite.reduced()?, config)? else { continue };
        let plan = rewrite.above(reduced)?;
        // Functions decide the types of their states, so they are as before. A mistake here would be a wrong answer.
        if have_same_types(plan.as_ref(), aggregate) {
            return Ok(Some(plan));
        }
    }
    Ok(None)
}

fn is_join(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<HashJoinExec>()
}

/// Whether only joins and the operators of [`InputOperators`] are between `plan` and a scan of a grid.
fn leads_to_scan(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let is_end = |plan: &dyn ExecutionPlan| plan.is::<GridScanExec>() || is_join(plan);
    let Some(below) = InputOperators::above(plan, &is_end)? else { return Ok(false) };
    Ok(match below.input.downcast_ref::<HashJoinExec>() {
        Some(join) => leads_to_scan(join.left())? || leads_to_scan(join.right())?,
        None => true,
    })
}

/// Returns the states of an aggregation as a reduction, or with reductions below further joins.
fn reduced(
    aggregate: &AggregateExec,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    match GridReduceExec::from_states(aggregate, config)? {
        Some(node) if node.saves_rows() => Ok(Some(Arc::new(node))),
        Some(_) => Ok(None),
        None => pushed_below(aggregate, config),
    }
}

/// An aggregation above a join, in terms of a reduction below it.
struct Rewrite<'a> {
    aggregate: &'a AggregateExec,
    joined: HashJoinSides<'a>,
    /// The group keys, over both sides.
    groups: Vec<PhysicalExprRef>,
    /// The condition above the join, over both sides.
    predicate: Option<PhysicalExprRef>,
    keys: Keys<'a>,
    /// Per pair of join keys, the number of the key below.
    on: Vec<usize>,
    states: States<'a>,
}

impl<'a> Rewrite<'a> {
    /// Takes the aggregation apart; `None` if an aggregate needs rows of both sides.
    fn try_new(
        aggregate: &'a AggregateExec,
        below: &InputOperators,
        joined: HashJoinSides<'a>,
    ) -> Result<Option<Self>> {
        let over_sides = |expr: &PhysicalExprRef| joined.over_sides(&below.over_input(expr)?);
        let groups = aggregate.group_expr().expr().iter().map(|(key, _)| over_sides(key));
        let groups: Vec<PhysicalExprRef> = groups.collect::<Result<_>>()?;
        let predicate = below.predicate.as_ref().map(|it| joined.over_sides(it)).transpose()?;
        let mut states = States::new(joined, !groups.is_empty())?;
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            let args = function.expressions();
            let args: Vec<_> = args.iter().map(over_sides).collect::<Result<_>>()?;
            let filter = filter.as_ref().map(over_sides).transpose()?;
            let is_volatile = args.iter().chain(&filter).any(is_volatile);
            if is_volatile || !states.add(function, &args, filter.as_ref())? {
                return Ok(None);
            }
        }
        // Evaluated per state instead of per row, these would be others.
        let condition = joined.join.filter().map(JoinFilter::expression);
        if groups.iter().chain(&predicate).chain(condition).any(is_volatile) {
            return Ok(None);
        }
        let mut keys = Keys::new(joined);
        let on = joined.join.on().iter().map(|(left, right)| match joined.side {
            JoinSide::Left => keys.add(left),
            _ => keys.add(right),
        });
        let on = on.collect();
        let filter = joined.join.filter().map_or(&[][..], JoinFilter::column_indices);
        for column in filter.iter().filter(|column| column.side == joined.side) {
            keys.add(&own_column(&joined, column.index));
        }
        for expr in groups.iter().chain(&predicate).chain(states.needed()) {
            keys.add_needed(expr)?;
        }
        Ok(Some(Self { aggregate, joined, groups, predicate, keys, on, states }))
    }

    /// Returns the aggregation below the join.
    fn reduced(&self) -> Result<AggregateExec> {
        let (functions, filters) = self.states.functions();
        AggregateExec::try_new(
            AggregateMode::Partial,
            PhysicalGroupBy::new_single(self.keys.exprs().to_vec()),
            functions,
            filters,
            Arc::clone(self.joined.input()),
            self.joined.input().schema(),
        )
    }

    /// Returns the join with the states `reduced` on one side, and the operators above it.
    fn above(&self, reduced: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let width = reduced.schema().fields().len();
        let mut plan = self.join(reduced)?;
        if let Some(predicate) = &self.predicate {
            plan = Arc::new(FilterExec::try_new(self.keys.above(predicate, width)?, plan)?);
        }
        let keys = self.groups.iter().map(|key| self.keys.above(key, width));
        let mut columns: Vec<PhysicalExprRef> = keys.collect::<Result<_>>()?;
        columns.extend(self.states.above(&self.keys, width)?);
        let schema = self.aggregate.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        let columns = columns.into_iter().zip(names).collect::<Vec<_>>();
        Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
    }

    /// Returns the join of the states.
    fn join(&self, reduced: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let HashJoinSides { join, side } = self.joined;
        let key = |number: usize| -> PhysicalExprRef {
            Arc::new(PhysicalColumn::new(&self.keys.exprs()[number].1, number))
        };
        let (left, right) = match side {
            JoinSide::Left => (reduced, Arc::clone(join.right())),
            _ => (Arc::clone(join.left()), reduced),
        };
        let mut on = vec![];
        for ((of_left, of_right), &number) in join.on().iter().zip(&self.on) {
            let (of_left, of_right) = match side {
                JoinSide::Left => (key(number), Arc::clone(of_right)),
                _ => (Arc::clone(of_left), key(number)),
            };
            // Keys of a reduction have one zero.
            let of_left = with_one_zero(&of_left, &left.schema())?;
            on.push((of_left, with_one_zero(&of_right, &right.schema())?));
        }
        HashJoinExecBuilder::new(left, right, on, *join.join_type())
            .with_filter(join.filter().map(|filter| self.filter(filter)).transpose()?)
            .with_partition_mode(*join.partition_mode())
            .with_null_equality(join.null_equality())
            .build_exec()
    }

    /// Returns the condition of the join over keys instead of columns.
    fn filter(&self, filter: &JoinFilter) -> Result<JoinFilter> {
        let column = |column: &ColumnIndex| {
            if column.side != self.joined.side {
                return column.clone();
            }
            let own = own_column(&self.joined, column.index);
            let number = self.keys.number(&own);
            ColumnIndex { index: number.unwrap_or(usize::MAX), side: column.side }
        };
        let columns = filter.column_indices().iter().map(column).collect();
        let (expression, schema) = (Arc::clone(filter.expression()), Arc::clone(filter.schema()));
        Ok(JoinFilter::new(expression, columns, schema))
    }
}

/// Returns a column of the input that is reduced.
fn own_column(joined: &HashJoinSides<'_>, index: usize) -> PhysicalExprRef {
    Arc::new(PhysicalColumn::new(joined.input().schema().field(index).name(), index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    #[tokio::test]
    async fn arrays_are_reduced_below_joins() {
        let query = "SELECT h.height, avg(t.value) FROM t JOIN heights h ON t.station = h.station
            GROUP BY h.height";
        insta::assert_snapshot!(rewritten(query, reduce_below_joins).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  AggregateExec: mode=FinalPartitioned, gby=[height@0 as height], aggr=[avg(t.value)]
    ProjectionExec: expr=[height@1 as height, avg(t.value)[count]@3 as avg(t.value)[count], avg(t.value)[sum]@4 as avg(t.value)[sum]]
      HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(station@0, station@0)]
        DataSourceExec: partitions=1, partition_sizes=[1]
        GridReduceExec: mode=partial, gby=[station], aggr=[avg(t.value)], tier=dense, groups=4, dataset=test, chunks=32/32
"#);
        // The other side scales each row of a state alike.
        let scaled =
            "SELECT sum(t.value * h.height) FROM t JOIN heights h ON t.station = h.station";
        let plan = rewritten(scaled, reduce_below_joins).await.unwrap();
        assert!(plan.contains("GridReduceExec"), "{plan}");
    }

    #[tokio::test]
    async fn aggregations_that_need_rows_stay() {
        let join = "FROM t JOIN heights h ON t.station = h.station";
        // Cells of one state have different values.
        let by_value = format!("SELECT t.value, count(*) {join} GROUP BY t.value");
        let in_order = format!("SELECT array_agg(t.value) {join}");
        let random = format!("SELECT sum(t.value) {join} WHERE random() > 0.5");
        // Each cell would be a state of its own.
        let by_cell = format!("SELECT t.hour, sum(t.value) {join} GROUP BY t.hour");
        let no_join = "SELECT sum(value) FROM t".to_owned();
        for query in [by_value, in_order, random, by_cell, no_join] {
            assert_eq!(rewritten(&query, reduce_below_joins).await, None, "{query}");
        }
    }
}
