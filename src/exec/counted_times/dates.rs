//! [`CountedDatesRule`]: dates of other calendars as text, beside the numbers that count them, and functions of such numbers.

use std::fmt::Display;

use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_datafusion_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, Join, LogicalPlan, Operator, TryCast, Union, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::Counted;
use super::function::{What, call, named, number_of_time, text};
use super::passed::passed;
use crate::core::array::CountedTimes;
use crate::exec::matching::known_scalar;
use crate::exec::mended::with_names;

/// An analyzer rule that replaces such dates by their numbers, and functions of times by ours. It belongs before DataFusion's
/// `TypeCoercion`, which would read a number in the text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CountedDatesRule;

impl AnalyzerRule for CountedDatesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_counted(&plan)? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(in_node).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "counted_dates"
    }
}

/// Whether a column of a plan counts time. Few tables have such numbers, so most plans are done here.
pub(super) fn has_counted(plan: &LogicalPlan) -> Result<bool> {
    let mut is_counted = false;
    plan.apply_with_subqueries(|node| {
        let mut fields = node.schema().fields().iter();
        is_counted |= fields.any(|field| CountedTimes::from_field(field).is_some());
        Ok(if is_counted { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_counted)
}

fn in_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match &node {
        LogicalPlan::Join(join) => check_keys(join)?,
        LogicalPlan::Union(union) => check_union(union)?,
        _ => {}
    }
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let counted = |expr: Expr| expr.transform_up(|expr| counted(expr, &schema));
    let rewritten = node.map_expressions(|expr| with_names(&names, expr, &counted))?;
    // Results of functions have other metadata now.
    rewritten.map_data(LogicalPlan::recompute_schema)
}

/// Replaces the dates in a comparison, and a function.
fn counted(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(comparison) if is_comparison(comparison.op) => {
            compared(comparison, schema)
        }
        Expr::BinaryExpr(concatenation) if concatenation.op == Operator::StringConcat => {
            Ok(concatenated(concatenation, schema))
        }
        Expr::Between(between) => in_range(between, schema),
        Expr::InList(list) => in_list(list, schema),
        Expr::InSubquery(subquery) => in_subquery(subquery, schema),
        Expr::ScalarFunction(function) => match of_time(&function, schema)? {
            Some(date) => Ok(Transformed::yes(date)),
            None => passed(Expr::ScalarFunction(function), schema),
        },
        Expr::Case(_) | Expr::WindowFunction(_) => passed(expr, schema),
        Expr::Cast(Cast { expr, field }) => {
            let (expr, is_replaced) = as_number(expr, &field, schema);
            Ok(Transformed::new_transformed(Expr::Cast(Cast { expr, field }), is_replaced))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let (expr, is_replaced) = as_number(expr, &field, schema);
            Ok(Transformed::new_transformed(Expr::TryCast(TryCast { expr, field }), is_replaced))
        }
        Expr::Negative(number) => match Counted::from_expr(&number, schema) {
            Some(counted) => plan_err!(
                "{number} is a time, of {}; 0 - CAST({number} AS DOUBLE) is a number",
                counted.shown()
            ),
            None => Ok(Transformed::no(Expr::Negative(number))),
        },
        expr => Ok(Transformed::no(expr)),
    }
}

fn compared(mut comparison: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, right, .. } = &mut comparison;
    let (of_right, of_left) = (number(left, right, schema)?, number(right, left, schema)?);
    let is_replaced = of_right.is_some() || of_left.is_some();
    if let Some(number) = of_right {
        **right = number;
    }
    if let Some(number) = of_left {
        **left = number;
    }
    Ok(Transformed::new_transformed(Expr::BinaryExpr(comparison), is_replaced))
}

fn concatenated(mut concatenation: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let mut is_replaced = false;
    for side in [&mut concatenation.left, &mut concatenation.right] {
        if let Some(counted) = Counted::from_expr(side, schema) {
            **side = call("text", "", side.as_ref().clone(), &counted);
            is_replaced = true;
        }
    }
    Transformed::new_transformed(Expr::BinaryExpr(concatenation), is_replaced)
}

fn in_range(mut between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_replaced = false;
    for bound in [&mut between.low, &mut between.high] {
        if let Some(number) = number(&between.expr, bound, schema)? {
            (**bound, is_replaced) = (number, true);
        }
    }
    Ok(Transformed::new_transformed(Expr::Between(between), is_replaced))
}

fn in_list(mut list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_replaced = false;
    for item in &mut list.list {
        if let Some(number) = number(&list.expr, item, schema)? {
            (*item, is_replaced) = (number, true);
        }
    }
    Ok(Transformed::new_transformed(Expr::InList(list), is_replaced))
}

fn in_subquery(subquery: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rows = subquery.subquery.subquery.schema();
    let of_rows = rows.fields().first().and_then(Counted::from_field);
    if let (Some(of_times), Some(of_rows)) = (Counted::from_expr(&subquery.expr, schema), of_rows) {
        check_same(&subquery.expr, &of_times, of_rows.field.name(), &of_rows)?;
    }
    Ok(Transformed::no(Expr::InSubquery(subquery)))
}

/// Returns what is cast: a number, if it is a time cast to numbers. DataFusion would keep the metadata.
fn as_number(expr: Box<Expr>, to: &Field, schema: &DFSchema) -> (Box<Expr>, bool) {
    let counted = Counted::from_expr(&expr, schema).filter(|_| to.data_type().is_numeric());
    match counted {
        Some(counted) => (Box::new(call("number", "", *expr, &counted)), true),
        None => (expr, false),
    }
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Returns the number that stands for `text`, a constant beside numbers that count time. `None` for other expressions, and for
/// text that is a number of the file; four digits are a year.
///
/// # Errors
/// If the calendar has no such date. If `text` counts time in another way.
pub(super) fn number(times: &Expr, text: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(counted) = Counted::from_expr(times, schema) else { return Ok(None) };
    let Expr::Literal(text, _) = text else {
        if let Some(other) = Counted::from_expr(text, schema) {
            check_same(named(times), &counted, named(text), &other)?;
        }
        return Ok(None);
    };
    let is_year = |it: &str| it.len() == 4 && it.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = |it: &&str| is_year(it) || it.parse::<f64>().is_err();
    let Some(text) = text.try_as_str().flatten().filter(is_date) else { return Ok(None) };
    let number = counted.times.number(text).map_err(|why| {
        plan_datafusion_err!("{} counts {}: {why}", named(times), counted.shown())
    })?;
    let is_whole = counted.field.data_type().is_integer() && number.fract() == 0.0;
    Ok(Some(if is_whole { lit(number as i64) } else { lit(number) }))
}

/// Refuses to put numbers side by side that stand for different times.
fn check_same(a: impl Display, of_a: &Counted, b: impl Display, of_b: &Counted) -> Result<()> {
    if of_a.times == of_b.times {
        return Ok(());
    }
    plan_err!(
        "{a} counts {}, and {b} counts {}, so that equal numbers are different times; compare parts of the dates, or their texts",
        of_a.shown(),
        of_b.shown()
    )
}

fn check_keys(join: &Join) -> Result<()> {
    for (left, right) in &join.on {
        let of_left = Counted::from_expr(left, join.left.schema());
        let of_right = Counted::from_expr(right, join.right.schema());
        if let (Some(of_left), Some(of_right)) = (of_left, of_right) {
            check_same(left, &of_left, right, &of_right)?;
        }
    }
    Ok(())
}

fn check_union(union: &Union) -> Result<()> {
    let Some((first, others)) = union.inputs.split_first() else { return Ok(()) };
    for other in others {
        for (a, b) in first.schema().fields().iter().zip(other.schema().fields()) {
            if let (Some(of_a), Some(of_b)) = (Counted::from_field(a), Counted::from_field(b)) {
                check_same(a.name(), &of_a, b.name(), &of_b)?;
            }
        }
    }
    Ok(())
}

/// Returns what a function of a time is for a number that counts time; `None` for other functions and arguments.
fn of_time(function: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(name @ ("date_part" | "date_trunc" | "to_char")) = known_scalar(&function.func) else {
        return Ok(None);
    };
    let at = number_of_time(name);
    let [_, _] = function.args.as_slice() else { return Ok(None) };
    let (number, detail) = (&function.args[at], &function.args[1 - at]);
    let Some(counted) = Counted::from_expr(number, schema) else { return Ok(None) };
    let detail = detail.as_literal();
    let what = What::from_call(name, detail, counted.times.calendar().name())?;
    Ok(Some(call(what.name(), text(detail), number.clone(), &counted)))
}
