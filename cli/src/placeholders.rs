//! Checks the placeholders of a statement against the values for them.
//!
//! ```text
//!   WHERE a > ? AND b = '?'      [1]      ──▶     WHERE a > $1 AND b = '?'
//!   WHERE a > $1 OR b > $1       [1]              stays
//!   WHERE a > $least             least: 1         WHERE a > $1      [1]
//! ```
//!
//! The planner puts the values into the plan, so no text of a value is ever read as SQL.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::{ParamValues, ToDFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{LogicalPlan, WriteOp};
use datafusion::prelude::SessionContext;

use crate::statement;

/// Returns a statement whose placeholders are numbers, and the values of the numbers.
///
/// # Errors
/// If a placeholder has no value, or a value has no placeholder.
pub(crate) fn numbered(
    ctx: &SessionContext,
    sql: &str,
    values: &ParamValues,
) -> Result<(String, ParamValues)> {
    let found = statement::placeholders(ctx, sql)?;
    match values {
        ParamValues::List(list) => {
            let (text, count) = by_place(sql, &found)?;
            if count != list.len() {
                return plan_err!(
                    "the statement has {count} placeholder{}, and {} value{} given",
                    if count == 1 { "" } else { "s" },
                    list.len(),
                    if list.len() == 1 { " is" } else { "s are" }
                );
            }
            Ok((text, values.clone()))
        }
        ParamValues::Map(map) => {
            let names: BTreeSet<&str> =
                found.iter().map(|(_, it)| it.strip_prefix('$').unwrap_or(it)).collect();
            let given: BTreeSet<&str> = map.keys().map(String::as_str).collect();
            if names.contains("?") {
                return plan_err!("the statement has ?, whose values are a list, not names");
            }
            if let Some(name) = names.difference(&given).next() {
                return plan_err!("the placeholder ${name} has no value");
            }
            if let Some(name) = given.difference(&names).next() {
                return plan_err!("the statement has no placeholder ${name}");
            }
            let number =
                |name: &str| names.iter().take_while(|it| format!("${it}") != name).count();
            let numbers = found.iter().map(|(_, name)| number(name) + 1);
            let text = with_numbers(sql, &found, numbers)?;
            Ok((text, ParamValues::List(names.iter().map(|name| map[*name].clone()).collect())))
        }
    }
}

/// Returns the statement with numbers in place of `?`, and the number of values that it needs.
fn by_place(sql: &str, found: &[(usize, String)]) -> Result<(String, usize)> {
    match found.iter().filter(|(_, it)| it == "?").count() {
        0 => {
            let mut most = 0;
            for (_, name) in found {
                match name.get(1..).and_then(|it| it.parse().ok()) {
                    Some(number) => most = most.max(number),
                    None => return plan_err!("the placeholder {name} needs a value with a name"),
                }
            }
            Ok((sql.to_owned(), most))
        }
        marks if marks < found.len() => {
            plan_err!("the statement has ? and other placeholders; use one kind of them")
        }
        marks => Ok((with_numbers(sql, found, 1..)?, marks)),
    }
}

/// Puts a number in the place of each placeholder.
fn with_numbers(
    sql: &str,
    found: &[(usize, String)],
    numbers: impl IntoIterator<Item = usize>,
) -> Result<String> {
    let mut text = String::new();
    let mut start = 0;
    for ((at, name), number) in found.iter().zip(numbers) {
        if !sql[*at..].starts_with(name.as_str()) {
            return plan_err!("the place of {name} is not known; leave out comments before it");
        }
        text.push_str(&format!("{}${number}", &sql[start..*at]));
        start = at + name.len();
    }
    Ok(text + &sql[start..])
}

/// Returns a plan with values in place of its placeholders.
///
/// # Errors
/// If a value does not suit its place.
pub(crate) fn bound(plan: LogicalPlan, values: &ParamValues) -> Result<LogicalPlan> {
    let mut plan = plan.replace_params_with_values(values)?;
    // The planner took the placeholders for values of the types of the table.
    if let LogicalPlan::Dml(insert) = &mut plan
        && matches!(insert.op, WriteOp::Insert(_))
    {
        let table = insert.target.schema().to_dfschema()?;
        let rows = LogicalPlan::clone(&insert.input);
        insert.input = Arc::new(coerce_plan_expr_for_schema(rows, &table)?);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    fn list(sql: &str, count: usize) -> Result<String> {
        let values = vec![ScalarValue::Null; count];
        numbered(&SessionContext::new(), sql, &values.into()).map(|(text, _)| text)
    }

    #[test]
    fn marks_get_numbers_outside_of_quotes() {
        let sql = "SELECT '?', \"ä?\", ? -- ?\n WHERE a>?AND b=/*?*/?";
        let expected = "SELECT '?', \"ä?\", $1 -- ?\n WHERE a>$2AND b=/*?*/$3";
        assert_eq!(list(sql, 3).unwrap(), expected);
        assert_eq!(list("SELECT $2, $1, $2", 2).unwrap(), "SELECT $2, $1, $2");
        assert_eq!(list("SELECT 1", 0).unwrap(), "SELECT 1");
        for (sql, count) in
            [("SELECT ?", 0), ("SELECT 1", 1), ("SELECT ?, $1", 2), ("SELECT $a", 1)]
        {
            assert!(list(sql, count).is_err(), "{sql}");
        }
    }

    #[test]
    fn names_have_exactly_the_values_that_are_given() {
        let named = |sql: &str, names: &[&str]| {
            let values: Vec<_> = names.iter().map(|it| (*it, ScalarValue::Null)).collect();
            numbered(&SessionContext::new(), sql, &values.into()).map(|(text, _)| text)
        };
        let text = named("SELECT $b, $a, '$b', $bc, $b", &["bc", "b", "a"]).unwrap();
        assert_eq!(text, "SELECT $2, $1, '$b', $3, $2");
        for (sql, names) in [("SELECT $a", &["b"][..]), ("SELECT 1", &["a"]), ("SELECT ?", &["a"])]
        {
            assert!(named(sql, names).is_err(), "{sql}");
        }
    }
}
