//! Named arguments of gridfusion's table functions: `read_tet('x.tet', index_columns => true)`.
//!
//! DataFusion passes arguments to table functions without their names. So a planner turns each name into an
//! argument before its value, which the functions accept: `read_tet('x.tet', 'index_columns', true)`.
//!
//! DataFusion asks relation planners about every relation of a statement, before its own planner. This one
//! changes the syntax tree of calls of our functions, and passes the plan on to DataFusion. All other
//! relations stay as they are.

use std::mem;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, TableFactor, Value,
};

use super::spatial::SpatialFunction;
use super::table_functions::ArrayFunction;
use crate::exec::GridfusionConfig;

/// A planner that turns the names of named arguments into arguments.
#[derive(Debug)]
pub(super) struct NamedArguments;

impl RelationPlanner for NamedArguments {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let call = match &mut relation {
            TableFactor::Table { name, args: Some(call), .. } => Some((name, &mut call.args)),
            // A function after LATERAL.
            TableFactor::Function { name, args, .. } => Some((name, args)),
            _ => None,
        };
        if let Some((name, args)) = call
            && let Some(name) = normal(name, context)
            && is_ours(&name, context)
        {
            if SpatialFunction::ALL.iter().any(|it| it.name() == name) {
                *args = mem::take(args).into_iter().map(as_text_or_query).collect();
            }
            *args = in_pairs(mem::take(args), context)?;
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

/// Returns the name of a function, normalized as DataFusion does it, so that `READ_TET` is found too.
fn normal(name: &ObjectName, context: &dyn RelationPlannerContext) -> Option<String> {
    let [part] = name.0.as_slice() else { return None };
    part.as_ident().map(|ident| context.normalize_ident(ident.clone()))
}

/// Whether a function is one of gridfusion's: functions of other libraries may treat named arguments
/// otherwise.
fn is_ours(name: &str, context: &dyn RelationPlannerContext) -> bool {
    let config = GridfusionConfig::from_options(context.context_provider().options());
    SpatialFunction::ALL.iter().any(|it| it.name() == name)
        || ArrayFunction::all(&config.formats).iter().any(|it| it.name() == name)
}

/// Returns the arguments without names, each name as a text before its value.
///
/// `f('x.tet', a => 1, b => 2)` becomes `f('x.tet', 'a', 1, 'b', 2)`. After the first name, all arguments
/// need one, because a value without a name would be taken for the name of an option.
fn in_pairs(
    args: Vec<FunctionArg>,
    context: &dyn RelationPlannerContext,
) -> Result<Vec<FunctionArg>> {
    let mut pairs = Vec::with_capacity(args.len());
    let mut after_name = false;
    for arg in args {
        let (name, value) = match arg {
            FunctionArg::Named { name, arg, .. }
            | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (name, arg),
            other if !after_name => {
                pairs.push(other);
                continue;
            }
            other => return plan_err!("{other} has no name, but comes after a named argument"),
        };
        if pairs.is_empty() {
            return plan_err!(
                "the first argument is a path and has no name; found the name '{name}'"
            );
        }
        let text = Value::SingleQuotedString(context.normalize_ident(name));
        let text = FunctionArgExpr::Expr(Expr::value(text));
        pairs.extend([FunctionArg::Unnamed(text), FunctionArg::Unnamed(value)]);
        after_name = true;
    }
    Ok(pairs)
}

/// Makes DataFusion accept names of tables, and queries of several columns in parentheses, as arguments.
///
/// `f(air, (SELECT a, b FROM t))` becomes `f('air', EXISTS (SELECT a, b FROM t))`. The functions take the query out of `EXISTS`,
/// which is the only expression that may hold one of several columns.
fn as_text_or_query(arg: FunctionArg) -> FunctionArg {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return arg };
    let expr = match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
            Expr::value(Value::SingleQuotedString(expr.to_string()))
        }
        Expr::Subquery(subquery) => Expr::Exists { subquery, negated: false },
        other => other,
    };
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}
