//! [`refuse_timestamps`]: numbers that count time in a calendar that SQL lacks make no timestamps, however a query computes with them.
//!
//! ```text
//!   SELECT to_timestamp(m + 1) FROM (SELECT max(time) AS m …)
//!                       │  a column of numbers          │  counts days in the calendar 360_day
//!                       └────── comes from ─────────────┘
//! ```
//!
//! Metadata ends at arithmetic. So each column of each operator has the origin of its numbers, from the leaves upwards.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, WindowFunction};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};

use super::function::{called, named};
use crate::core::array::{Calendar, CountedTimes};
use crate::exec::matching::known_scalar;

/// Units and calendar.
type Count = (String, String);

/// Refuses expressions that make timestamps of such numbers: DataFusion would count from 1970.
///
/// # Errors
/// The count of the numbers.
pub(super) fn refuse_timestamps(plan: &LogicalPlan) -> Result<()> {
    // Few tables have such numbers, so most plans are done here.
    let mut counts = false;
    plan.apply_with_subqueries(|node| {
        counts |= node.schema().fields().iter().any(|field| count(field).is_some());
        Ok(if counts { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if counts { origins(plan).map(|_| ()) } else { Ok(()) }
}

/// Returns what the numbers of each column of a plan count, or come from.
fn origins(plan: &LogicalPlan) -> Result<Vec<Option<Count>>> {
    let inputs = plan.inputs();
    let origins = inputs.iter().map(|input| Ok((input.schema().as_ref(), origins(input)?)));
    let inputs = Inputs(origins.collect::<Result<_>>()?);
    plan.apply_expressions(|expr| {
        expr.apply(|expr| inputs.check(expr).map(|()| TreeNodeRecursion::Continue))
    })?;
    let of_fields = |from: usize| {
        let fields = plan.schema().iter().skip(from);
        fields.map(|(relation, field)| {
            count(field)
                .or_else(|| inputs.origin_of_column(&Column::new(relation.cloned(), field.name())))
        })
    };
    let of_exprs = |exprs: &[Expr]| -> Result<Vec<_>> {
        exprs.iter().map(|expr| inputs.origin(expr)).collect()
    };
    match plan {
        LogicalPlan::Projection(projection) => of_exprs(&projection.expr),
        LogicalPlan::Aggregate(aggregate) => {
            let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
            let mut all: Vec<_> =
                keys.into_iter().map(|key| inputs.origin(key)).collect::<Result<_>>()?;
            let columns = plan.schema().fields().len();
            // Grouping sets have one column more.
            all.resize(columns.saturating_sub(aggregate.aggr_expr.len()), None);
            all.extend(of_exprs(&aggregate.aggr_expr)?);
            Ok(all)
        }
        LogicalPlan::Window(window) => {
            let columns = window.input.schema().fields().len();
            let mut all: Vec<_> = of_fields(0).take(columns).collect();
            all.extend(of_exprs(&window.window_expr)?);
            Ok(all)
        }
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Union(_) | LogicalPlan::RecursiveQuery(_) => {
            let columns = plan.schema().fields().len();
            Ok((0..columns).map(|at| inputs.origin_at(at)).collect())
        }
        _ => Ok(of_fields(0).collect()),
    }
}

/// The columns below an operator, with what their numbers count.
struct Inputs<'a>(Vec<(&'a DFSchema, Vec<Option<Count>>)>);

impl Inputs<'_> {
    fn origin_of_column(&self, column: &Column) -> Option<Count> {
        self.0.iter().find_map(|(schema, origins)| {
            origins.get(schema.maybe_index_of_column(column)?).cloned().flatten()
        })
    }

    fn origin_at(&self, at: usize) -> Option<Count> {
        self.0.iter().find_map(|(_, origins)| origins.get(at).cloned().flatten())
    }

    fn schema_of(&self, expr: &Expr) -> DFSchema {
        let mut all = DFSchema::empty();
        if expr.any_column_refs() {
            self.0.iter().for_each(|(schema, _)| all.merge(schema));
        }
        all
    }

    fn data_type(&self, expr: &Expr) -> Result<DataType> {
        match expr {
            Expr::Column(column) => {
                let found = self.0.iter().find_map(|(schema, _)| {
                    Some(schema.field(schema.maybe_index_of_column(column)?).data_type().clone())
                });
                Ok(found.unwrap_or(DataType::Null))
            }
            expr => expr.get_type(&self.schema_of(expr)),
        }
    }

    /// Returns what the numbers of an expression count, or those that it computes with.
    fn origin(&self, expr: &Expr) -> Result<Option<Count>> {
        let first = |exprs: &[&Expr]| -> Result<Option<Count>> {
            for expr in exprs {
                if let Some(found) = self.origin(expr)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        match expr {
            Expr::Column(column) => return Ok(self.origin_of_column(column)),
            Expr::OuterReferenceColumn(field, _) => return Ok(count(field)),
            Expr::ScalarSubquery(query) => {
                return Ok(origins(&query.subquery)?.into_iter().next().flatten());
            }
            Expr::Alias(alias) => return self.origin(&alias.expr),
            Expr::Literal(..) => return Ok(None),
            _ => {}
        }
        if !self.data_type(expr)?.is_numeric() {
            return Ok(None);
        }
        match expr {
            Expr::AggregateFunction(AggregateFunction { func, params }) => match func.name() {
                "count" | "approx_distinct" => Ok(None),
                _ => first(&params.args.iter().collect::<Vec<_>>()),
            },
            Expr::WindowFunction(window) => {
                let WindowFunction { fun, params } = window.as_ref();
                match fun.name() {
                    "count" => Ok(None),
                    _ => first(&params.args.iter().collect::<Vec<_>>()),
                }
            }
            expr if matches!(called(expr), Some(("part" | "text", _))) => Ok(None),
            expr => {
                let mut children = vec![];
                expr.apply_children(|child| {
                    children.push(child.clone());
                    Ok(TreeNodeRecursion::Continue)
                })?;
                first(&children.iter().collect::<Vec<_>>())
            }
        }
    }

    /// Refuses an expression that makes a time of a number.
    fn check(&self, expr: &Expr) -> Result<()> {
        let (number, what) = match expr {
            Expr::Cast(Cast { expr: number, field })
            | Expr::TryCast(TryCast { expr: number, field }) => {
                (&**number, format!("a cast to {}", field.data_type()))
            }
            Expr::ScalarFunction(ScalarFunction { func, args })
                if known_scalar(func).is_some() && !args.is_empty() =>
            {
                (&args[0], func.name().to_owned())
            }
            _ => return Ok(()),
        };
        if !is_time(&self.data_type(expr)?) || !self.data_type(number)?.is_numeric() {
            return Ok(());
        }
        let Some((units, calendar)) = self.origin(number)? else { return Ok(()) };
        let is_column = matches!(without_casts(number), Expr::Column(_));
        let of = if is_column { "is" } else { "comes from" };
        plan_err!(
            "{} {of} a number of {units} in the calendar {calendar}, and {what} would count from 1970; \
             see docs/time.md#other-calendars",
            named(without_casts(number))
        )
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

/// Returns a number without its casts to other numbers.
fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_casts(&alias.expr),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })
            if field.data_type().is_numeric() =>
        {
            without_casts(expr)
        }
        expr => match called(expr) {
            Some(("number" | "time", number)) => without_casts(number),
            _ => expr,
        },
    }
}

/// Returns the units and the calendar of numbers that count time, unless the calendar is that of SQL.
fn count(field: &Field) -> Option<Count> {
    let (units, calendar) = (field.metadata().get("units")?, field.metadata().get("calendar"));
    let calendar = calendar.map_or("", String::as_str);
    let is_shared =
        matches!(Calendar::from_name(calendar), Some(Calendar::Mixed | Calendar::Proleptic));
    let counts = field.data_type().is_numeric() && units.contains(" since ");
    let is_other = counts && !is_shared || CountedTimes::from_field(field).is_some();
    is_other.then(|| (units.clone(), calendar.to_owned()))
}
