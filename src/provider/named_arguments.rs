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
            && is_ours(name, context)
        {
            *args = in_pairs(mem::take(args), context)?;
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

/// Whether a function is one of gridfusion's: functions of other libraries may treat named arguments
/// otherwise. The name is normalized as DataFusion does it, so `READ_TET` is found too.
fn is_ours(name: &ObjectName, context: &dyn RelationPlannerContext) -> bool {
    let [part] = name.0.as_slice() else { return false };
    let Some(name) = part.as_ident().map(|ident| context.normalize_ident(ident.clone())) else {
        return false;
    };
    let config = GridfusionConfig::from_options(context.context_provider().options());
    ArrayFunction::all(&config.formats).iter().any(|it| it.name() == name)
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
