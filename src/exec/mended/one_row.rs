//! How many rows a correlated subquery has, if that does not depend on the rows that it correlates.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, GroupingSet, Limit, LogicalPlan, LogicalPlanBuilder,
};

/// The rows of a subquery.
pub(super) enum Rows {
    /// No row.
    None,
    /// One row, whatever rows the tables have.
    One,
    /// At least one row.
    Some,
    /// One row if a condition on it is met.
    OneIf(Box<Condition>),
    /// As many as tables have, without the first ones.
    Behind,
    /// As many as tables have.
    OfTables,
}

/// A condition on the only row of a plan: `HAVING` without `GROUP BY`.
pub(super) struct Condition {
    /// The condition as a column of the only row.
    pub(super) holds: LogicalPlan,
    /// The subquery without the condition.
    pub(super) always: LogicalPlan,
}

/// Returns how many rows a plan has.
pub(super) fn rows(plan: &LogicalPlan) -> Result<Rows> {
    Ok(match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            let inputs = plan.inputs();
            let Some(&input) = inputs.first() else { return Ok(Rows::OfTables) };
            match rows(input)? {
                Rows::OneIf(condition) => {
                    let always = with_input(plan, &condition.always)?;
                    Rows::OneIf(Box::new(Condition { always, ..*condition }))
                }
                rows => rows,
            }
        }
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate),
        LogicalPlan::Filter(filter) => match rows(&filter.input)? {
            Rows::One => {
                let condition = filter.predicate.clone().alias("holds");
                let holds = LogicalPlanBuilder::from(filter.input.as_ref().clone());
                let holds = holds.project([condition])?.build()?;
                let always = filter.input.as_ref().clone();
                Rows::OneIf(Box::new(Condition { holds, always }))
            }
            Rows::None => Rows::None,
            _ => Rows::OfTables,
        },
        LogicalPlan::Limit(limit) => of_limit(limit, rows(&limit.input)?),
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Rows::One,
        LogicalPlan::EmptyRelation(_) => Rows::None,
        LogicalPlan::Values(values) if values.values.len() == 1 => Rows::One,
        _ => Rows::OfTables,
    })
}

fn of_aggregate(aggregate: &Aggregate) -> Rows {
    let has_whole = |expr: &Expr| match expr {
        Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_)) => true,
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
        _ => false,
    };
    match aggregate.group_expr.as_slice() {
        [] => Rows::One,
        [only] if has_whole(only) => Rows::Some,
        _ => Rows::OfTables,
    }
}

fn of_limit(limit: &Limit, rows: Rows) -> Rows {
    let number = |expr: &Option<Box<Expr>>, default| match expr.as_deref() {
        None => default,
        Some(Expr::Literal(ScalarValue::Int64(Some(number)), _)) => Some(*number),
        Some(_) => None,
    };
    let skip = number(&limit.skip, Some(0));
    match (skip, number(&limit.fetch, Some(i64::MAX))) {
        (_, Some(0)) => Rows::None,
        (Some(0), Some(_)) => rows,
        (Some(0), None) => Rows::OfTables,
        (Some(_), Some(_)) if matches!(rows, Rows::None | Rows::One) => Rows::None,
        (_, _) => Rows::Behind,
    }
}

/// Puts another plan below a node of one input.
fn with_input(plan: &LogicalPlan, input: &LogicalPlan) -> Result<LogicalPlan> {
    let replaced = plan.clone().map_children(|_| Ok(Transformed::yes(input.clone())))?;
    Ok(replaced.data)
}
