//! [`with_distinct_counts`]: aggregations of `count(DISTINCT …)`, of which DataFusion makes two, as one again.
//!
//! ```text
//!   SELECT lat, count(DISTINCT value), max(value) … GROUP BY lat
//!
//!   AggregateExec  gby=[lat], aggr=[count(alias1), max(alias2)]             gby=[lat]
//!     AggregateExec  gby=[lat, value as alias1], aggr=[max(value)]    ──▶   aggr=[count(DISTINCT value + 0), max(value)]
//! ```
//!
//! The inner aggregation hashes every cell, because its last key is a value. Values that are gathered by group are sorted instead.
//! A key has one zero, and `count(DISTINCT …)` two: adding 0 makes them one.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::scalar::ScalarValue;

use crate::exec::matching::known_aggregate;

/// Returns the first stage of the aggregation of which DataFusion made `outer` and the aggregation below it; `None` if it is not
/// so. The caller has the final stage of `outer`.
pub(super) fn with_distinct_counts(outer: &AggregateExec) -> Result<Option<AggregateExec>> {
    let Some(inner) = inner_stage(outer) else { return Ok(None) };
    let Some(keys) = Keys::try_new(outer, inner) else { return Ok(None) };
    let mut functions = vec![];
    for function in outer.aggr_expr() {
        let Some(function) = keys.merged(function, inner)? else { return Ok(None) };
        functions.push(function);
    }
    let is_distinct = |it: &Arc<AggregateFunctionExpr>| it.is_distinct();
    if !functions.iter().any(is_distinct) {
        return Ok(None);
    }
    let filters = vec![None; functions.len()];
    let (input, schema) = (Arc::clone(inner.input()), inner.input_schema());
    let keys = PhysicalGroupBy::new_single(keys.outer);
    let mode = AggregateMode::Partial;
    AggregateExec::try_new(mode, keys, functions, filters, input, schema).map(Some)
}

/// Returns the first stage of the aggregation below the first stage `outer`.
fn inner_stage(outer: &AggregateExec) -> Option<&AggregateExec> {
    let last = outer.input().downcast_ref::<AggregateExec>()?;
    let inner = last.input().downcast_ref::<AggregateExec>()?;
    let is_whole = |stage: &AggregateExec| {
        !stage.group_expr().has_grouping_set()
            && stage.filter_expr().iter().all(Option::is_none)
            && stage.limit_options().is_none()
    };
    let are_whole = [outer, last, inner].into_iter().all(is_whole);
    let is_last = [AggregateMode::Final, AggregateMode::FinalPartitioned].contains(last.mode());
    let is_first = *inner.mode() == AggregateMode::Partial;
    (are_whole && is_last && is_first).then_some(inner)
}

/// The keys of both aggregations: those of the inner one are those of the outer one, and one more.
struct Keys {
    /// The keys of the outer aggregation, over the input of the inner one, and their names.
    outer: Vec<(PhysicalExprRef, String)>,
    /// The place of the other key.
    distinct: usize,
}

impl Keys {
    fn try_new(outer: &AggregateExec, inner: &AggregateExec) -> Option<Self> {
        let inner = inner.group_expr().expr();
        let (mut keys, mut used) = (vec![], vec![false; inner.len()]);
        for (key, name) in outer.group_expr().expr() {
            let at = key.downcast_ref::<Column>()?.index();
            *used.get_mut(at)? = true;
            keys.push((Arc::clone(&inner[at].0), name.clone()));
        }
        let mut others = (0..inner.len()).filter(|at| !used[*at]);
        let (distinct, more) = (others.next()?, others.next());
        (more.is_none() && !keys.is_empty()).then_some(Self { outer: keys, distinct })
    }

    /// Returns the function of one aggregation for one of the outer aggregation; `None` if there is none.
    fn merged(
        &self,
        outer: &AggregateFunctionExpr,
        inner: &AggregateExec,
    ) -> Result<Option<Arc<AggregateFunctionExpr>>> {
        let is_plain = |it: &AggregateFunctionExpr| {
            !it.is_distinct() && !it.ignore_nulls() && it.order_bys().is_empty()
        };
        let args = outer.expressions();
        let ([arg], true) = (args.as_slice(), is_plain(outer)) else { return Ok(None) };
        let Some(column) = arg.downcast_ref::<Column>() else { return Ok(None) };
        let (schema, keys) = (inner.input_schema(), inner.group_expr().expr());
        let name = known_aggregate(outer.fun());
        let builder = if column.index() == self.distinct && name == Some("count") {
            let value = &keys[self.distinct].0;
            let value = with_one_zero(value, &value.data_type(&schema)?);
            AggregateExprBuilder::new(count_udaf(), vec![value]).distinct()
        } else {
            let of_inner = column.index().checked_sub(keys.len());
            let of_inner = of_inner.and_then(|at| inner.aggr_expr().get(at));
            let Some(of_inner) = of_inner else { return Ok(None) };
            let is_merged = name.is_some_and(|it| ["sum", "min", "max"].contains(&it));
            if !is_merged || !is_plain(of_inner) || outer.fun() != of_inner.fun() {
                return Ok(None);
            }
            AggregateExprBuilder::new(Arc::new(outer.fun().clone()), of_inner.expressions())
        };
        let merged = builder.schema(schema).alias(outer.name()).build()?;
        let same_type = merged.field().data_type() == outer.field().data_type();
        Ok(same_type.then(|| Arc::new(merged)))
    }
}

/// Returns a number that is 0 where `value` is a zero of either sign, and else `value`.
fn with_one_zero(value: &PhysicalExprRef, data_type: &DataType) -> PhysicalExprRef {
    let value = Arc::clone(value);
    match ScalarValue::new_zero(data_type) {
        Ok(zero) if data_type.is_floating() => {
            Arc::new(BinaryExpr::new(value, Operator::Plus, Arc::new(Literal::new(zero))))
        }
        _ => value,
    }
}
