//! [`MendedLogic`]: rewrites what DataFusion plans wrongly, before its optimizer sees it.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::{
    changed_rows, copies, distinct_from, doubled_keys, empty_subquery, exists, in_null, intervals,
    key_columns, shift, time_of_day, zeros_in_lists,
};

/// An analyzer rule for constructs that DataFusion plans wrongly. It belongs behind the coercion of types.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct MendedLogic;

impl AnalyzerRule for MendedLogic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            changed_rows::check(&plan)?;
            copies::rewrite(plan)?
                .transform_data(|plan| Ok(doubled_keys::of_distinct_on(plan)))?
                .transform_data(|plan| in_expressions(plan, before_optimizer))?
                .transform_data(in_null::rewrite)?
                .transform_data(key_columns::rewrite)
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "gridfusion_mended"
    }
}

/// Applies a rewrite to all expressions of one plan node, whose names stay.
pub(super) fn in_expressions(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        let table = scan.table_name.clone();
        schema.merge(&DFSchema::try_from_qualified_schema(table, &scan.source.schema())?);
    }
    let has_keys = matches!(plan, LogicalPlan::Sort(_) | LogicalPlan::Join(_));
    let names = NamePreserver::new(&plan);
    let whole = |expr: Expr| {
        let inside = expr.transform_up(|expr| rewrite(expr, &schema))?;
        match has_keys {
            true => inside.transform_data(|key| intervals::as_key(key, &schema)),
            false => Ok(inside),
        }
    };
    let rewritten = plan.map_expressions(|expr| with_names(&names, expr, &whole))?;
    match rewritten.transformed {
        true => rewritten.map_data(LogicalPlan::recompute_schema),
        false => Ok(rewritten),
    }
}

/// Applies a rewrite to an expression whose name stays. The keys of grouping sets have names of their own.
pub(crate) fn with_names(
    names: &NamePreserver,
    expr: Expr,
    rewrite: &impl Fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    if matches!(expr, Expr::GroupingSet(_)) {
        return expr.map_children(|key| with_names(names, key, rewrite));
    }
    let name = names.save(&expr);
    Ok(rewrite(expr)?.update_data(|expr| name.restore(expr)))
}

/// The rewrites of an expression whose children are rewritten already.
fn before_optimizer(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    distinct_from::check(&expr)?;
    exists::rewrite(expr)?
        .transform_data(empty_subquery::rewrite)?
        .transform_data(|expr| intervals::rewrite(expr, schema))?
        .transform_data(|expr| time_of_day::rewrite(expr, schema))?
        .transform_data(|expr| zeros_in_lists::rewrite(expr, schema))?
        .transform_data(|expr| Ok(shift::rewrite(expr)))?
        .transform_data(|expr| Ok(doubled_keys::of_aggregate(expr)))
}
