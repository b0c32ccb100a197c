//! [`NearestRule`]: finds the labels of dimensions that `nearest` names.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::utils::NamePreserver;

use super::GridTable;
use crate::array::{ColumnSource, Labels};
use crate::exec::mended::with_names;
use crate::exec::nearest::{NearestLabels, nearest_among, nearest_udf};

/// An analyzer rule that puts the labels of a dimension into `nearest`. It belongs behind DataFusion's `TypeCoercion`, which
/// converts the value.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NearestRule;

impl AnalyzerRule for NearestRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_called = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    is_called |= called(expr).is_some();
                    Ok(if is_called {
                        TreeNodeRecursion::Stop
                    } else {
                        TreeNodeRecursion::Continue
                    })
                })
            })
        })?;
        if !is_called {
            return Ok(plan);
        }
        let in_plan = |plan: LogicalPlan| {
            let inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
            let with_labels = |expr: Expr| expr.transform_up(|expr| with_labels(expr, &inputs));
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| with_names(&names, expr, &with_labels))
        };
        Ok(plan.transform_up_with_subqueries(in_plan)?.data)
    }

    fn name(&self) -> &str {
        "nearest_labels"
    }
}

/// Returns the arguments of a call of `nearest` with a dimension.
fn called(expr: &Expr) -> Option<&[Expr]> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    (*func == nearest_udf()).then_some(args)
}

fn with_labels(expr: Expr, inputs: &[LogicalPlan]) -> Result<Transformed<Expr>> {
    let Some([dimension, rest @ ..]) = called(&expr) else { return Ok(Transformed::no(expr)) };
    let labels = match dimension {
        Expr::Column(column) => inputs.iter().find_map(|input| labels_of_column(input, column)),
        _ => None,
    };
    let Some(labels) = labels else {
        return plan_err!(
            "nearest needs a dimension of an array as its first argument, and {dimension} is none"
        );
    };
    let labels = NearestLabels::from_dimension(&labels)?;
    let func = nearest_among(Arc::new(labels));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: rest.to_vec() })))
}

fn labels_of_column(plan: &LogicalPlan, column: &Column) -> Option<Labels> {
    labels_of(plan, plan.schema().maybe_index_of_column(column)?)
}

/// Returns the labels that a column of a plan shows; `None` for a column that is no dimension of an array.
fn labels_of(plan: &LogicalPlan, at: usize) -> Option<Labels> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let array = provider.downcast_ref::<GridTable>()?.array();
            let at = scan.projection.as_ref().map_or(Some(at), |it| it.get(at).copied())?;
            match *array.columns().get(at)? {
                ColumnSource::File(_) => None,
                column => array.labels_of(column).cloned(),
            }
        }
        LogicalPlan::Projection(it) => labels_of_expr(it.expr.get(at)?, &it.input),
        LogicalPlan::Aggregate(it) => labels_of_expr(it.group_expr.get(at)?, &it.input),
        LogicalPlan::Join(it) => {
            use JoinType::{RightAnti, RightMark, RightSemi};
            let is_right = matches!(it.join_type, RightSemi | RightAnti | RightMark);
            let left = if is_right { 0 } else { it.left.schema().fields().len() };
            match at.checked_sub(left) {
                None => labels_of(&it.left, at),
                Some(at) => labels_of(&it.right, at),
            }
        }
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            let input = plan.inputs().first().copied()?;
            (at < input.schema().fields().len()).then(|| labels_of(input, at))?
        }
        _ => None,
    }
}

fn labels_of_expr(expr: &Expr, input: &LogicalPlan) -> Option<Labels> {
    match expr {
        Expr::Alias(alias) => labels_of_expr(&alias.expr, input),
        Expr::Column(column) => labels_of_column(input, column),
        _ => None,
    }
}
