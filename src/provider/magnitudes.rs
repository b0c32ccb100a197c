//! [`GreatestMagnitudes`]: `max(abs(x))` of arrays, from the least and the greatest `x`.
//!
//! ```text
//!   Aggregate: max(abs(t.value - n.normal))       Projection: greatest(abs(max(…)), abs(min(…)))
//!                                            ──▶    Aggregate: max(t.value - n.normal), min(t.value - n.normal)
//! ```
//!
//! Reductions compute extremes of variables, also below joins. They do not compute magnitudes, for which each cell would be a row.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::functions::core::greatest;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Alias, ScalarFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, ScalarUDF,
};
use datafusion::optimizer::AnalyzerRule;

use super::GridTable;
use crate::exec::own_functions::{is_own_aggregate, own_aggregate, own_scalar};
use crate::exec::{GridfusionConfig, known_aggregate, known_scalar};

/// An analyzer rule that replaces `max(abs(x))` over arrays. It belongs behind the one that brings our versions of `min` and `max`, which
/// have one answer for NaN.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct GreatestMagnitudes;

impl AnalyzerRule for GreatestMagnitudes {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let settings = GridfusionConfig::from_options(options).optimizer;
        if !(settings.enable_all && settings.enable_reduce && reads_array(&plan)?) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(rewritten).data()
    }

    fn name(&self) -> &str {
        "greatest_magnitudes"
    }
}

fn reads_array(plan: &LogicalPlan) -> Result<bool> {
    let mut reads = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            reads |= source_as_provider(&scan.source).is_ok_and(|table| table.is::<GridTable>());
        }
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}

/// Replaces the magnitudes of an aggregation.
fn rewritten(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let has_sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let schema = aggregate.input.schema();
    let found = aggregate.aggr_expr.iter().map(|expr| Extremes::of_magnitude(expr, schema));
    let found: Vec<Option<Extremes>> = found.collect::<Result<_>>()?;
    if has_sets || found.iter().all(Option::is_none) {
        return Ok(Transformed::no(plan));
    }
    let (mut calls, mut results) = (vec![], vec![]);
    for (expr, extremes) in aggregate.aggr_expr.iter().zip(found) {
        results.push(match extremes {
            None => column_of(&mut calls, expr.clone()),
            Some(Extremes { abs, greatest: most, least }) => {
                let ends = [most, least].map(|end| {
                    let end = column_of(&mut calls, end);
                    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&abs), vec![end]))
                });
                let function = own_scalar(&greatest()).unwrap_or_else(greatest);
                Expr::ScalarFunction(ScalarFunction::new_udf(function, ends.to_vec()))
                    .alias(expr.schema_name().to_string())
            }
        });
    }
    let below =
        Aggregate::try_new(Arc::clone(&aggregate.input), aggregate.group_expr.clone(), calls)?;
    let keys = below.schema.columns().into_iter().take(aggregate.group_expr.len());
    let columns = keys.map(Expr::Column).chain(results).collect();
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(below)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// Returns the column of an aggregate, which is added unless it is there.
fn column_of(calls: &mut Vec<Expr>, call: Expr) -> Expr {
    let name = call.schema_name().to_string();
    if !calls.iter().any(|it| it.schema_name().to_string() == name) {
        calls.push(call);
    }
    Expr::Column(Column::new_unqualified(name))
}

/// The extremes from which the greatest magnitude follows.
struct Extremes {
    abs: Arc<ScalarUDF>,
    greatest: Expr,
    least: Expr,
}

impl Extremes {
    /// Returns those of `max(abs(x))`; `None` for other expressions.
    fn of_magnitude(expr: &Expr, schema: &DFSchema) -> Result<Option<Self>> {
        let call = match expr {
            Expr::Alias(Alias { expr, .. }) => expr.as_ref(),
            expr => expr,
        };
        let Expr::AggregateFunction(AggregateFunction { func, params }) = call else {
            return Ok(None);
        };
        let is_max = known_aggregate(func) == Some("max") && is_own_aggregate(func);
        let ([Expr::ScalarFunction(ScalarFunction { func: abs, args })], true) =
            (params.args.as_slice(), is_max && params.order_by.is_empty())
        else {
            return Ok(None);
        };
        let ([x], Some("abs")) = (args.as_slice(), known_scalar(abs)) else { return Ok(None) };
        let data_type = x.get_type(schema)?;
        let Some(min) = own_aggregate(&min_udaf()) else { return Ok(None) };
        if x.is_volatile() || !(data_type.is_floating() || data_type.is_signed_integer()) {
            return Ok(None);
        }
        let of = |func| {
            let mut params = params.clone();
            params.args = vec![x.clone()];
            Expr::AggregateFunction(AggregateFunction { func, params })
        };
        let (greatest, least) = (of(Arc::clone(func)), of(min));
        Ok(Some(Self { abs: Arc::clone(abs), greatest, least }))
    }
}
