//! The functions of this crate in place of those of DataFusion: in the registry of a session, and in queries.
//!
//! SQL finds functions in the registry. A query that Rust builds names DataFusion's functions directly, so a rule replaces
//! these. Neither touches a function that the session registered itself, whatever its name is.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use super::functions::{OwnAggregate, OwnScalar};
use super::longest_run::longest_run_udaf;
use super::matching::{known_aggregate, known_scalar};
use super::mode::mode_udaf;
use super::weighted_avg::weighted_avg_udaf;

/// Returns the aggregate functions that DataFusion lacks, and that physical plans have.
pub(crate) fn added_aggregates() -> [Arc<AggregateUDF>; 3] {
    [weighted_avg_udaf(), mode_udaf(), longest_run_udaf()]
}

/// Returns our version of an aggregate function; `None` if there is none, or if the function is not DataFusion's own.
pub(crate) fn own_aggregate(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    known_aggregate(function).filter(|_| !is_own_aggregate(function))?;
    OwnAggregate::over(function).map(|own| Arc::new(AggregateUDF::from(own)))
}

/// Returns our version of a scalar function; `None` if there is none, or if the function is not DataFusion's own.
pub(crate) fn own_scalar(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    known_scalar(function).filter(|_| !is_own_scalar(function))?;
    OwnScalar::over(function).map(|own| Arc::new(ScalarUDF::from(own)))
}

/// Whether a function is our version of one of DataFusion.
pub(crate) fn is_own_aggregate(function: &AggregateUDF) -> bool {
    function.inner().is::<OwnAggregate>()
}

/// Whether a function is our version of one of DataFusion.
pub(crate) fn is_own_scalar(function: &ScalarUDF) -> bool {
    function.inner().is::<OwnScalar>()
}

/// Returns our version of the aggregate function of DataFusion with this name.
#[cfg(feature = "codec")]
pub(crate) fn own_aggregate_named(name: &str) -> Option<Arc<AggregateUDF>> {
    own_aggregate(
        datafusion::functions_aggregate::all_default_aggregate_functions()
            .iter()
            .find(|it| it.name() == name)?,
    )
}

/// Returns our version of the scalar function of DataFusion with this name.
pub(crate) fn own_scalar_named(name: &str) -> Option<Arc<ScalarUDF>> {
    own_scalar(datafusion::functions::all_default_functions().iter().find(|it| it.name() == name)?)
}

/// An analyzer rule that replaces functions of DataFusion in a query by our versions of them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct OwnFunctionsRule;

impl AnalyzerRule for OwnFunctionsRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let in_plan = |plan: LogicalPlan| plan.map_expressions(|expr| expr.transform_up(replaced));
        let plan = plan.transform_up_with_subqueries(in_plan)?.data;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| check(expr, node).map(|()| TreeNodeRecursion::Continue))
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "gridfusion_functions"
    }
}

/// Refuses a function of ours over values that it does not take.
fn check(expr: &Expr, node: &LogicalPlan) -> Result<()> {
    let Expr::ScalarFunction(call) = expr else { return Ok(()) };
    let Some(own) = call.func.inner().downcast_ref::<OwnScalar>() else { return Ok(()) };
    let schema = merge_schema(&node.inputs());
    let types: Result<Vec<_>> = call.args.iter().map(|arg| arg.get_type(&schema)).collect();
    types.map_or(Ok(()), |types| own.check(&types))
}

/// Replaces the function of an expression.
fn replaced(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let own = own_aggregate(&func);
            let is_replaced = own.is_some();
            let func = own.unwrap_or(func);
            let expr = Expr::AggregateFunction(AggregateFunction { func, params });
            Transformed::new_transformed(expr, is_replaced)
        }
        Expr::WindowFunction(mut window) => {
            let own = match &window.fun {
                WindowFunctionDefinition::AggregateUDF(function) => own_aggregate(function),
                WindowFunctionDefinition::WindowUDF(_) => None,
            };
            let is_replaced = own.is_some();
            if let Some(own) = own {
                window.fun = WindowFunctionDefinition::AggregateUDF(own);
            }
            Transformed::new_transformed(Expr::WindowFunction(window), is_replaced)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let own = own_scalar(&func);
            let is_replaced = own.is_some();
            let func = own.unwrap_or(func);
            let expr = Expr::ScalarFunction(ScalarFunction { func, args });
            Transformed::new_transformed(expr, is_replaced)
        }
        other => Transformed::no(other),
    })
}
