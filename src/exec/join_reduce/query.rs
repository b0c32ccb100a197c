//! [`JoinQuery`]: an aggregation above a lookup, in terms of the columns of both sides.
//!
//! ```text
//!   AggregateExec  gby=[region, month]                     keys       [region], [date_trunc('month', time)]
//!     ProjectionExec  [region, date_trunc(time), v * w] ──▶ aggregates [sum(value * weight)]
//!       FilterExec  v > limit                              predicate  value > limit
//!         GridLookupExec  [time, value, region, weight]    columns    time, value │ region, weight
//! ```

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::exec::GridLookupExec;
use crate::exec::columns::{columns_of, move_columns, replace_columns};
use crate::exec::lookup::ReturnedRows;
use crate::exec::matching::InputOperators;
use crate::exec::reduce::Aggregate;

/// A group key.
#[derive(Debug, Clone)]
pub(super) enum JoinKey {
    /// An expression over the columns of the other side, or a constant.
    Built(PhysicalExprRef),
    /// An expression over the columns of the scan.
    Scanned(PhysicalExprRef),
}

/// An aggregation above a lookup. Expressions are over the columns of the scan, and behind them those of the other side.
#[derive(Debug, Clone)]
pub(super) struct JoinQuery {
    pub(super) lookup: GridLookupExec,
    pub(super) keys: Vec<JoinKey>,
    pub(super) aggregates: Vec<Aggregate>,
    /// The condition on pairs, besides that of the lookup on cells.
    pub(super) predicate: Option<PhysicalExprRef>,
}

impl JoinQuery {
    /// Translates an aggregation. `None` if it is not above a lookup that returns each match, or has a key over both sides.
    pub(super) fn try_new(aggregate: &AggregateExec) -> Result<Option<Self>> {
        if aggregate.group_expr().has_grouping_set() || aggregate.limit_options().is_some() {
            return Ok(None);
        }
        let below = InputOperators::above(aggregate.input(), &|it| it.is::<GridLookupExec>())?;
        let Some(below) = below else { return Ok(None) };
        let Some(lookup) = below.input.downcast_ref::<GridLookupExec>() else { return Ok(None) };
        let joined = lookup.joined();
        if joined.lookup.kept != ReturnedRows::Matches || !joined.filters.is_empty() {
            return Ok(None);
        }
        let (scanned, schema) = (joined.lookup.scan.columns().len(), &joined.lookup.schema);
        let over_join = |expr: &PhysicalExprRef| {
            replace_columns(&below.over_input(expr)?, &|column| {
                let at = *joined.projection.get(column.index())?;
                Some(Arc::new(PhysicalColumn::new(schema.field(at).name(), at)))
            })
        };
        let mut keys = vec![];
        for (key, _) in aggregate.group_expr().expr() {
            let key = over_join(key)?;
            let columns = columns_of([&key]);
            keys.push(match columns.iter().filter(|column| **column < scanned).count() {
                0 => JoinKey::Built(move_columns(&key, &|at| at.checked_sub(scanned))?),
                of_scan if of_scan == columns.len() => JoinKey::Scanned(key),
                _ => return Ok(None),
            });
        }
        let mut aggregates = vec![];
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            if !function.order_bys().is_empty() {
                return Ok(None);
            }
            let args = function.expressions();
            aggregates.push(Aggregate {
                function: Arc::clone(function),
                args: args.iter().map(over_join).collect::<Result<_>>()?,
                filter: filter.as_ref().map(over_join).transpose()?,
                order_by: vec![],
            });
        }
        // Below is over the columns of the lookup.
        let predicate = match &below.predicate {
            Some(predicate) => Some(replace_columns(predicate, &|column| {
                let at = *joined.projection.get(column.index())?;
                Some(Arc::new(PhysicalColumn::new(schema.field(at).name(), at)))
            })?),
            None => None,
        };
        let query = Self { lookup: lookup.clone(), keys, aggregates, predicate };
        let is_repeatable = !query.expressions().any(is_volatile);
        Ok(is_repeatable.then_some(query))
    }

    /// Returns every expression of the query.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        let keys = self.keys.iter().map(|key| match key {
            JoinKey::Built(key) | JoinKey::Scanned(key) => key,
        });
        let of_aggregates = self.aggregates.iter().flat_map(Aggregate::expressions);
        keys.chain(of_aggregates).chain(&self.predicate)
    }
}
