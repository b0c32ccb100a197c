//! [`Query`]: an aggregation in terms of its scan's columns, without the operators between the two.
//!
//! ```text
//!   AggregateExec  gby=[month], aggr=[avg(c)]              keys       [date_trunc('month', time)]
//!     ProjectionExec  [date_trunc('month', time), v - 273]  ──▶       aggregates [avg(value - 273)]
//!       FilterExec  v > 0                                             predicate  value > 0
//!         GridScanExec  [time, v]                                     scan       time, value
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlanProperties, Partitioning};

use crate::exec::GridScanExec;
use crate::exec::columns::over_columns;

/// An aggregation over a scan; every expression is over the scan's output columns.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The scan, which has no limit. Its dynamic filters are ignored, because they only save work.
    pub(super) scan: Arc<dyn ExecutionPlan>,
    /// Group keys, in order.
    pub(super) keys: Vec<PhysicalExprRef>,
    pub(super) aggregates: Vec<Aggregate>,
    /// The condition on rows; rows for which it is not true do not count.
    pub(super) predicate: Option<PhysicalExprRef>,
}

/// One aggregate of a query.
#[derive(Debug, Clone)]
pub(super) struct Aggregate {
    /// The function, with its names and types.
    pub(super) function: Arc<AggregateFunctionExpr>,
    /// The expressions that the function aggregates.
    pub(super) args: Vec<PhysicalExprRef>,
    /// `FILTER (WHERE …)`.
    pub(super) filter: Option<PhysicalExprRef>,
}

impl Aggregate {
    /// Returns the arguments and the filter.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.args.iter().chain(&self.filter)
    }

    /// Rewrites the aggregate for a batch that holds only `columns` of the scan.
    pub(super) fn over_columns(&self, columns: &[usize]) -> Result<Self> {
        Ok(Self {
            function: Arc::clone(&self.function),
            args: self.args.iter().map(|arg| over_columns(arg, columns)).collect::<Result<_>>()?,
            filter: self.filter.as_ref().map(|filter| over_columns(filter, columns)).transpose()?,
        })
    }
}

impl Query {
    /// Translates `aggregate`. `None` if it has grouping sets, ordered aggregates or volatile expressions,
    /// or if an operator below cannot be taken out.
    ///
    /// Volatile expressions must be evaluated once per row, and a reduction evaluates keys once per label.
    pub(super) fn of(aggregate: &AggregateExec) -> Result<Option<Self>> {
        let group_by = aggregate.group_expr();
        if group_by.has_grouping_set() {
            return Ok(None);
        }
        let Some(below) = InputOperators::of(aggregate.input())? else { return Ok(None) };
        let mut keys = Vec::new();
        for (key, _) in group_by.expr() {
            keys.push(below.over_scan(key)?);
        }
        let mut aggregates = Vec::new();
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            if !function.order_bys().is_empty() {
                return Ok(None);
            }
            let mut args = Vec::new();
            for arg in function.expressions() {
                args.push(below.over_scan(&arg)?);
            }
            let filter = filter.as_ref().map(|filter| below.over_scan(filter)).transpose()?;
            aggregates.push(Aggregate { function: Arc::clone(function), args, filter });
        }
        let query = Self { scan: below.scan, keys, aggregates, predicate: below.predicate };
        let volatile = query.expressions().any(is_volatile);
        Ok((!volatile).then_some(query))
    }

    /// Returns every expression of the query.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        let of_aggregates = self.aggregates.iter().flat_map(Aggregate::expressions);
        self.keys.iter().chain(of_aggregates).chain(&self.predicate)
    }
}

/// The operators between an aggregation and its scan, as expressions over the scan's columns.
struct InputOperators {
    scan: Arc<dyn ExecutionPlan>,
    /// The input columns of the aggregation, over the scan's columns.
    columns: Vec<PhysicalExprRef>,
    /// The condition for rows to pass, over the scan's columns.
    predicate: Option<PhysicalExprRef>,
}

impl InputOperators {
    /// Walks down from the input of the aggregation to the scan. `None` if another operator is in
    /// between, or if a limit keeps only some rows.
    ///
    /// Also `None` for a scan that took over a sort. A query may rely on that order of the groups, and a reduction
    /// has another. Such scans are seen only if the rule runs after DataFusion has pushed sorts down.
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
            // A scalar has one row, and no axis to group by.
            let is_scalar = scan.array().grid().rank() == 0;
            if is_scalar || scan.plan().limit().is_some() || scan.plan().reordered().is_some() {
                return Ok(None);
            }
            // At the scan, every column is itself. Each operator on the way back up rewrites them.
            let fields = plan.schema();
            let column = |(at, field): (usize, &Arc<_>)| column(field, at);
            let columns = fields.fields().iter().enumerate().map(column).collect();
            return Ok(Some(Self { scan: Arc::clone(plan), columns, predicate: None }));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let Some(mut below) = Self::of(projection.input())? else { return Ok(None) };
            let over_scan = |projected: &ProjectionExpr| below.over_scan(&projected.expr);
            below.columns = projection.expr().iter().map(over_scan).collect::<Result<_>>()?;
            return Ok(Some(below));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.fetch().is_some() {
                return Ok(None);
            }
            let Some(mut below) = Self::of(filter.input())? else { return Ok(None) };
            if below.predicate.is_some() {
                // The outer filter may fail on rows that the inner one removes.
                return Ok(None);
            }
            below.predicate = Some(below.over_scan(filter.predicate())?);
            if let Some(kept) = filter.projection() {
                below.columns = kept.iter().map(|&at| Arc::clone(&below.columns[at])).collect();
            }
            return Ok(Some(below));
        }
        // These operators pass on rows unchanged, only in other partitions.
        let passes = plan.is::<CooperativeExec>()
            || plan.is::<RepartitionExec>()
                && matches!(plan.output_partitioning(), Partitioning::RoundRobinBatch(_));
        match plan.children().as_slice() {
            [input] if passes => Self::of(input),
            _ => Ok(None),
        }
    }

    /// Rewrites `expr`, which is over the aggregation's input columns, over the scan's columns.
    fn over_scan(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        Arc::clone(expr)
            .transform(|expr| {
                Ok(match expr.downcast_ref::<PhysicalColumn>() {
                    // The traversal goes up the tree, so it does not visit the inserted expression.
                    Some(column) => Transformed::yes(Arc::clone(&self.columns[column.index()])),
                    None => Transformed::no(expr),
                })
            })
            .data()
    }
}

fn column(field: &arrow::datatypes::Field, at: usize) -> PhysicalExprRef {
    Arc::new(PhysicalColumn::new(field.name(), at))
}
