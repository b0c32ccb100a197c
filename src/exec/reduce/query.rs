//! [`Query`]: an aggregation in terms of its scan's columns, without the operators between the two.
//!
//! ```text
//!   AggregateExec  gby=[month], aggr=[avg(c)]              keys       [date_trunc('month', time)]
//!     ProjectionExec  [date_trunc('month', time), v - 273]  ──▶       aggregates [avg(value - 273)]
//!       FilterExec  v > 0                                             predicate  value > 0
//!         GridScanExec  [time, v]                                     scan       time, value
//! ```

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::exec::GridScanExec;
use crate::exec::columns::over_columns;
use crate::exec::matching::{ScanBelow, ScanCells};
use crate::exec::rows_because::{Attempt, Declined, because};

/// An aggregation over a scan; every expression is over the scan's output columns.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// The scan, which may be replaced.
    pub(super) scan: GridScanExec,
    /// Group keys, in order.
    pub(super) keys: Vec<PhysicalExprRef>,
    pub(super) aggregates: Vec<Aggregate>,
    /// The condition on rows; rows for which it is not true do not count.
    pub(super) predicate: Option<PhysicalExprRef>,
}

/// One aggregate of a query.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Aggregate {
    /// The function, with its names and types.
    pub(in crate::exec) function: Arc<AggregateFunctionExpr>,
    /// The expressions that the function aggregates.
    pub(in crate::exec) args: Vec<PhysicalExprRef>,
    /// `FILTER (WHERE …)`.
    pub(in crate::exec) filter: Option<PhysicalExprRef>,
    /// The order of rows that the function asks for.
    pub(in crate::exec) order_by: Vec<PhysicalSortExpr>,
}

impl Aggregate {
    /// Returns the arguments, the filter and the order.
    pub(in crate::exec) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        let order = self.order_by.iter().map(|order| &order.expr);
        self.args.iter().chain(&self.filter).chain(order)
    }

    /// Rewrites the aggregate, which has no order, for a batch that holds only `columns` of the scan.
    pub(in crate::exec) fn over_columns(&self, columns: &[usize]) -> Result<Self> {
        Ok(Self {
            function: Arc::clone(&self.function),
            args: self.args.iter().map(|arg| over_columns(arg, columns)).collect::<Result<_>>()?,
            filter: self.filter.as_ref().map(|filter| over_columns(filter, columns)).transpose()?,
            order_by: vec![],
        })
    }
}

impl Query {
    /// Translates `aggregate`, which must have no grouping sets and no volatile expressions. The operators below must be ones that
    /// can be taken out.
    ///
    /// Volatile expressions must be evaluated once per row, and a reduction evaluates keys once per label.
    pub(super) fn try_new(aggregate: &AggregateExec) -> Attempt<Self> {
        let group_by = aggregate.group_expr();
        let below = ScanBelow::find(aggregate.input(), ScanCells::Read)?;
        let below = below.ok_or(Declined::NoArray)?;
        if group_by.has_grouping_set() {
            return Err(because("grouping sets are several aggregations of one row"));
        }
        let mut keys = Vec::new();
        for (key, _) in group_by.expr() {
            keys.push(below.over_scan(key)?);
        }
        let mut aggregates = Vec::new();
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            let mut args = Vec::new();
            for arg in function.expressions() {
                args.push(below.over_scan(&arg)?);
            }
            let filter = filter.as_ref().map(|filter| below.over_scan(filter)).transpose()?;
            let mut order_by = Vec::new();
            for order in function.order_bys() {
                order_by.push(PhysicalSortExpr::new(below.over_scan(&order.expr)?, order.options));
            }
            let aggregate = Aggregate { function: Arc::clone(function), args, filter, order_by };
            aggregates.push(aggregate.with_case_as_filter(&below.scan));
        }
        let ScanBelow { scan, operators } = below;
        let query = Self { scan, keys, aggregates, predicate: operators.predicate };
        if query.expressions().any(is_volatile) {
            return Err(because("a function such as random() has another value for each row"));
        }
        Ok(query)
    }

    /// Returns every expression of the query.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        let of_aggregates = self.aggregates.iter().flat_map(Aggregate::expressions);
        self.keys.iter().chain(of_aggregates).chain(&self.predicate)
    }
}
