//! [`DerivedExtremes`]: extremes of functions of a variable, from the extremes of the variable itself.
//!
//! ```text
//!   max(value - 273.15)               max(value) - 273.15
//!   max(abs(value - 280))             greatest(abs(max(value) - 280), abs(min(value) - 280))
//!   max(abs(t.value - n.normal))      greatest(abs(max(t.value - n.normal)), abs(min(t.value - n.normal)))
//! ```
//!
//! Reductions compute extremes of variables, also below joins with tables. Of other arguments, each cell is computed. Floats are rounded
//! in order, so the results are those of the query, bit by bit.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::functions::core::greatest;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, Alias, ScalarFunction};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator,
    Projection, ScalarUDF, SubqueryAlias, TableScan,
};
use datafusion::optimizer::AnalyzerRule;

use super::GridTable;
use crate::exec::own_functions::{is_own_aggregate, own_aggregate, own_scalar};
use crate::exec::{GridfusionConfig, known_aggregate, known_scalar};

/// An analyzer rule that replaces `min` and `max` over arrays. It belongs behind the one that brings our versions of these functions,
/// which have one answer for NaN.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct DerivedExtremes;

impl AnalyzerRule for DerivedExtremes {
    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
        let settings = GridfusionConfig::from_options(options).optimizer;
        if !(settings.enable_all && settings.enable_reduce && reads_array(&plan)?) {
            return Ok(plan);
        }
        everywhere(plan).data()
    }

    fn name(&self) -> &str {
        "derived_extremes"
    }
}

fn reads_array(plan: &LogicalPlan) -> Result<bool> {
    let mut reads = false;
    plan.apply_with_subqueries(|node| {
        reads |= matches!(node, LogicalPlan::TableScan(scan) if is_array(scan));
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}

fn is_array(scan: &TableScan) -> bool {
    source_as_provider(&scan.source).is_ok_and(|table| table.is::<GridTable>())
}

/// Replaces extremes in all of a plan. A subquery that refers to rows outside stays: DataFusion wants its aggregation in certain places.
fn everywhere(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let in_subquery = |plan: LogicalPlan| match &plan {
        LogicalPlan::Subquery(subquery) if subquery.outer_ref_columns.is_empty() => {
            everywhere(plan)
        }
        _ => Ok(Transformed::no(plan)),
    };
    plan.transform_up(|node| node.map_subqueries(in_subquery)?.transform_data(rewritten))
}

/// Replaces the extremes of an aggregation.
fn rewritten(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let has_sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let derived = aggregate.aggr_expr.iter().map(|expr| Derived::of(expr, &aggregate.input));
    let derived: Vec<Option<Derived>> = derived.collect::<Result<_>>()?;
    if has_sets || derived.iter().all(Option::is_none) {
        return Ok(Transformed::no(plan));
    }
    let (mut calls, mut results) = (vec![], vec![]);
    for (expr, derived) in aggregate.aggr_expr.iter().zip(derived) {
        results.push(match derived {
            None => column_of(&mut calls, expr.clone()),
            Some(derived) => derived.result(&mut calls)?.alias(expr.schema_name().to_string()),
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

/// How an extreme follows from others.
struct Derived {
    /// The function `f(x)`, whose value at the extremes of `x` counts.
    function: Expr,
    /// The extremes of `x`.
    ends: Vec<AggregateFunction>,
    /// `abs`, if the greatest magnitude of the values is asked for.
    abs: Option<Arc<ScalarUDF>>,
}

impl Derived {
    /// Returns how an aggregate over an input follows from others; `None` if it does not, or computing it is as fast.
    fn of(expr: &Expr, input: &LogicalPlan) -> Result<Option<Self>> {
        let call = match expr {
            Expr::Alias(Alias { expr, .. }) => expr.as_ref(),
            expr => expr,
        };
        let Expr::AggregateFunction(call) = call else { return Ok(None) };
        if expr.is_volatile() {
            return Ok(None);
        }
        let name = known_aggregate(&call.func).filter(|_| is_own_aggregate(&call.func));
        let ([arg], Some("min" | "max"), Some(min)) =
            (call.params.args.as_slice(), name, own_aggregate(&min_udaf()))
        else {
            return Ok(None);
        };
        let of = |func: &Arc<AggregateUDF>, x: &Expr| {
            let mut call = AggregateFunction { func: Arc::clone(func), ..call.clone() };
            call.params.args = vec![x.clone()];
            call
        };
        let schema = input.schema();
        let magnitude = magnitude(arg).filter(|_| name == Some("max"));
        let Some((abs, function)) = magnitude else {
            let variable = monotone(arg, schema)?.filter(|it| it.ascends && it.x != *arg);
            return Ok(variable.map(|Monotone { x, .. }| Self {
                function: arg.clone(),
                ends: vec![of(&call.func, &x)],
                abs: None,
            }));
        };
        let x = match monotone(function, schema)? {
            Some(Monotone { x, .. }) => x,
            None if joins_table(function, schema, input)? => function.clone(),
            None => return Ok(None),
        };
        let ends = vec![of(&call.func, &x), of(&min, &x)];
        Ok(Some(Self { function: function.clone(), ends, abs: Some(Arc::clone(abs)) }))
    }

    /// Returns the extreme over the columns of `calls`, to which those are added that it needs.
    fn result(self, calls: &mut Vec<Expr>) -> Result<Expr> {
        let at_end = |end: AggregateFunction| {
            let x = end.params.args[0].clone();
            let column = column_of(calls, Expr::AggregateFunction(end));
            let replace = |expr: Expr| match expr == x {
                true => Ok(Transformed::new(column.clone(), true, TreeNodeRecursion::Jump)),
                false => Ok(Transformed::no(expr)),
            };
            let value = self.function.clone().transform_down(replace).data()?;
            Ok(match &self.abs {
                Some(abs) => {
                    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(abs), vec![value]))
                }
                None => value,
            })
        };
        let mut values = self.ends.into_iter().map(at_end).collect::<Result<Vec<_>>>()?;
        if self.abs.is_none() {
            return Ok(values.remove(0));
        }
        let greatest = own_scalar(&greatest()).unwrap_or_else(greatest);
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(greatest, values)))
    }
}

/// Returns `abs` and its argument.
fn magnitude(expr: &Expr) -> Option<(&Arc<ScalarUDF>, &Expr)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    match args.as_slice() {
        [x] if known_scalar(func) == Some("abs") => Some((func, x)),
        _ => None,
    }
}

/// A function of a column that keeps the order of its numbers or reverses it, and has NaN only for NaN.
struct Monotone {
    x: Expr,
    ascends: bool,
}

/// Takes a function of floats apart: sums, products and quotients with finite numbers, casts of numbers, and the column itself.
fn monotone(expr: &Expr, schema: &DFSchema) -> Result<Option<Monotone>> {
    let data_type = expr.get_type(schema)?;
    if let Expr::Column(_) = expr {
        let is_number = data_type.is_floating() || data_type.is_signed_integer();
        return Ok(is_number.then(|| Monotone { x: expr.clone(), ascends: true }));
    }
    if !data_type.is_floating() {
        return Ok(None);
    }
    let of = |expr: &Expr, keeps: bool| {
        let inner = monotone(expr, schema)?;
        Ok(inner.map(|it| Monotone { ascends: it.ascends == keeps, ..it }))
    };
    match expr {
        Expr::Cast(Cast { expr, .. }) => of(expr, true),
        Expr::Negative(expr) => of(expr, false),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (number(left), op, number(right)) {
                (None, Operator::Plus | Operator::Minus, Some(_)) => of(left, true),
                (Some(_), Operator::Plus, None) => of(right, true),
                (Some(_), Operator::Minus, None) => of(right, false),
                (None, Operator::Multiply | Operator::Divide, Some(factor)) if factor != 0.0 => {
                    of(left, factor > 0.0)
                }
                (Some(factor), Operator::Multiply, None) if factor != 0.0 => {
                    of(right, factor > 0.0)
                }
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Returns a finite number that is part of a query.
fn number(expr: &Expr) -> Option<f64> {
    let value = match expr {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            Expr::Literal(value, _) => value.cast_to(field.data_type()).ok()?,
            _ => return None,
        },
        _ => return None,
    };
    let number = match value {
        ScalarValue::Float64(number) => number?,
        ScalarValue::Float32(number) => number?.into(),
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Whether an expression has columns of an array and of a table, so that the array may be reduced before the join.
fn joins_table(expr: &Expr, schema: &DFSchema, input: &LogicalPlan) -> Result<bool> {
    let data_type = expr.get_type(schema)?;
    if !data_type.is_floating() {
        return Ok(false);
    }
    let columns = expr.column_refs();
    let mut relations: Vec<&TableReference> =
        columns.iter().filter_map(|it| it.relation.as_ref()).collect();
    relations.sort();
    relations.dedup();
    let mut arrays = 0;
    input.apply(|node| {
        let (scan, name) = match node {
            LogicalPlan::TableScan(scan) => (Some(scan), &scan.table_name),
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                match input.as_ref() {
                    LogicalPlan::TableScan(scan) => (Some(scan), alias),
                    _ => (None, alias),
                }
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        arrays += usize::from(scan.is_some_and(is_array) && relations.contains(&name));
        // Tables of a subquery have names of their own.
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(arrays > 0 && arrays < relations.len())
}
