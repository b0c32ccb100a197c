//! [`CountedDatesRule`]: dates of other calendars as text, beside the numbers that count them.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, plan_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::{column, count};
use crate::core::array::CountedTimes;
use crate::exec::mended::with_names;

/// An analyzer rule that replaces such dates by their numbers. It belongs before DataFusion's `TypeCoercion`, which would read a
/// number in the text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CountedDatesRule;

impl AnalyzerRule for CountedDatesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_counted = false;
        plan.apply_with_subqueries(|node| {
            is_counted |= node.schema().fields().iter().any(|field| count(field).is_some());
            Ok(if is_counted { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_counted {
            return Ok(plan);
        }
        let in_node = |node: LogicalPlan| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let counted = |expr: Expr| expr.transform_up(|expr| counted(expr, &schema));
            node.map_expressions(|expr| with_names(&names, expr, &counted))
        };
        plan.transform_up_with_subqueries(in_node).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "counted_dates"
    }
}

/// Replaces the dates in a comparison.
fn counted(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) if is_comparison(op) => {
            let of_right = number(&left, &right, schema)?;
            let of_left = number(&right, &left, schema)?;
            let is_replaced = of_right.is_some() || of_left.is_some();
            if let Some(number) = of_right {
                *right = number;
            }
            if let Some(number) = of_left {
                *left = number;
            }
            let expr = Expr::BinaryExpr(BinaryExpr { left, op, right });
            Transformed::new_transformed(expr, is_replaced)
        }
        Expr::Between(mut between) => {
            let low = number(&between.expr, &between.low, schema)?;
            let high = number(&between.expr, &between.high, schema)?;
            let is_replaced = low.is_some() || high.is_some();
            if let Some(number) = low {
                *between.low = number;
            }
            if let Some(number) = high {
                *between.high = number;
            }
            Transformed::new_transformed(Expr::Between(between), is_replaced)
        }
        Expr::InList(mut list) => {
            let mut is_replaced = false;
            for item in &mut list.list {
                if let Some(number) = number(&list.expr, item, schema)? {
                    (*item, is_replaced) = (number, true);
                }
            }
            Transformed::new_transformed(Expr::InList(list), is_replaced)
        }
        expr => Transformed::no(expr),
    })
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Returns the number that stands for `text`, a constant beside numbers that count time. `None` for other expressions, and for
/// text that is a number.
///
/// # Errors
/// If the calendar has no such date.
fn number(times: &Expr, text: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (Some(column), Expr::Literal(text, _)) = (column(times), text) else { return Ok(None) };
    let Some(text) = text.try_as_str().flatten().filter(|it| it.parse::<f64>().is_err()) else {
        return Ok(None);
    };
    let (_, field) = column.to_field(schema)?;
    let Some((units, calendar)) = count(&field) else { return Ok(None) };
    let Some(counted) = CountedTimes::from_attributes(units, calendar) else { return Ok(None) };
    let number = counted.number(text).map_err(|why| {
        plan_datafusion_err!("{column} counts {units} in the calendar {calendar}: {why}")
    })?;
    let is_whole = field.data_type().is_integer() && number.fract() == 0.0;
    Ok(Some(if is_whole { lit(number as i64) } else { lit(number) }))
}
