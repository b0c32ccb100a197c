//! Explains comparisons of a column with a value of the wrong type.
//!
//! The optimizer's error names its own rule and the text. The plan has the column, so the message can name
//! that:
//!
//! ```text
//!   SELECT * FROM t WHERE time > 'May'      time is of type Timestamp(µs), and 'May' is not a time; write …
//! ```
//!
//! The statement is planned again without the optimizer, and its expressions are searched for the first
//! comparison that fails. Only errors that such a comparison may cause (`SIGNS`) are worth this work.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::utils::quote_identifier;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::prelude::SessionContext;

use crate::calendars::Count;
use crate::errors::describe;
use crate::statement::parse;

/// Parts of messages that may come from a comparison with the wrong type.
const SIGNS: [&str; 6] = [
    "Cannot cast string '",
    "Cannot cast value",
    "Error parsing",
    "Parser error",
    "Cannot infer common argument type for comparison operation",
    "There isn't a common type to coerce",
];

/// Returns an error that names the column and its type, if the statement compares a column with the wrong
/// type. The value is a text that does not convert to the column's type, or has a type that cannot be
/// compared with it. Returns other errors unchanged.
pub(crate) async fn with_column(
    error: DataFusionError,
    ctx: &SessionContext,
    text: &str,
) -> DataFusionError {
    let message = describe(&error);
    if !SIGNS.iter().any(|sign| message.contains(sign)) {
        return error;
    }
    match Box::pin(first_wrong_comparison(ctx, text)).await {
        Ok(Some(message)) => DataFusionError::Plan(message),
        _ => error,
    }
}

/// Returns the message for the first wrong comparison in `text`.
async fn first_wrong_comparison(ctx: &SessionContext, text: &str) -> Result<Option<String>> {
    for statement in parse(ctx, text)? {
        let plan = Box::pin(ctx.state().statement_to_plan(statement)).await?;
        // A comparison that always fails explains the error better than one that fails for some rows.
        for check in [is_wrong, may_be_wrong] {
            if let Some(found) = first_in_plan(&plan, check)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn next(found: &Option<String>) -> TreeNodeRecursion {
    if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue }
}

/// Checks one expression without its children. Returns the message for a mistake.
type Check = fn(&Expr, &DFSchema) -> Option<String>;

/// Returns the message for the first mistake that a check finds in a plan and its subqueries.
pub(crate) fn first_in_plan(plan: &LogicalPlan, check: Check) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        found = in_node(node, check)?;
        Ok(next(&found))
    })?;
    Ok(found)
}

fn in_node(node: &LogicalPlan, check: Check) -> Result<Option<String>> {
    // Expressions refer to the columns of the inputs. A scan has none; its filters refer to its own columns.
    let mut schema = DFSchema::empty();
    node.inputs().iter().for_each(|input| schema.merge(input.schema()));
    if let LogicalPlan::TableScan(scan) = node {
        schema.merge(&scan.projected_schema);
    }
    let mut found = None;
    node.apply_expressions(|expr| {
        expr.apply(|expr| {
            found = check(expr, &schema);
            Ok(next(&found))
        })
    })?;
    Ok(found)
}

/// Returns the message for a comparison that is wrong for all rows.
fn is_wrong(expr: &Expr, schema: &DFSchema) -> Option<String> {
    match expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            let (left, right) = (&*binary.left, &*binary.right);
            unconvertible_text(left, right, schema)
                .or_else(|| unconvertible_text(right, left, schema))
                .or_else(|| no_common_type(left, binary.op, right, schema))
        }
        Expr::Between(between) => {
            let (of, low, high) = (&*between.expr, &*between.low, &*between.high);
            [low, high].into_iter().find_map(|bound| {
                unconvertible_text(of, bound, schema)
                    .or_else(|| no_common_type(of, Operator::GtEq, bound, schema))
            })
        }
        Expr::InList(list) => list.list.iter().find_map(|item| {
            unconvertible_text(&list.expr, item, schema)
                .or_else(|| no_common_type(&list.expr, Operator::Eq, item, schema))
        }),
        Expr::Like(like) => {
            let data_type = like.expr.get_type(schema).ok().filter(|it| !it.is_string())?;
            let name = name(&like.expr);
            Some(format!(
                "{name} is of type {data_type}, and LIKE needs text: CAST {name} to VARCHAR"
            ))
        }
        _ => None,
    }
}

/// Returns the message for a comparison of text with another type. It fails unless every text converts.
fn may_be_wrong(expr: &Expr, schema: &DFSchema) -> Option<String> {
    let mixed = |text: &Expr, other: &Expr| {
        let (text_type, other_type) = (text.get_type(schema).ok()?, other.get_type(schema).ok()?);
        let is_mixed = text_type.is_string() && !other_type.is_string() && !other_type.is_null();
        is_mixed.then(|| {
            let (text, other) = (name(text), name(other));
            format!(
                "{text} is of type {text_type} and {other} of type {other_type}, and not every text converts to {other_type}: \
                 write '{other}', or CAST({other} AS VARCHAR)"
            )
        })
    };
    match expr {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            mixed(&binary.left, &binary.right).or_else(|| mixed(&binary.right, &binary.left))
        }
        Expr::Between(between) => {
            mixed(&between.expr, &between.low).or_else(|| mixed(&between.expr, &between.high))
        }
        Expr::InList(list) => list.list.iter().find_map(|item| mixed(&list.expr, item)),
        _ => None,
    }
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Returns the message for a constant text that does not convert to the type of an expression.
fn unconvertible_text(expr: &Expr, constant: &Expr, schema: &DFSchema) -> Option<String> {
    let Expr::Literal(value, _) = constant else { return None };
    let text = value.try_as_str().flatten()?;
    let data_type = expr.get_type(schema).ok().filter(|it| !it.is_string() && !it.is_null())?;
    if ScalarValue::from(text).cast_to(&data_type).is_ok() {
        return None;
    }
    let name = name(expr);
    if let Some(count) = count(expr, schema) {
        return Some(count.message(&name, Some(text)));
    }
    let (what, instance) = match &data_type {
        DataType::Timestamp(..) => ("a time", "; write '2024-01-31' or '2024-01-31 12:00:00'"),
        DataType::Date32 | DataType::Date64 => ("a date", "; write '2024-01-31'"),
        DataType::Time32(_) | DataType::Time64(_) => ("a time of day", "; write '12:00:00'"),
        DataType::Boolean => ("a truth value", "; write true or false"),
        it if it.is_numeric() => ("a number", ""),
        _ => return Some(format!("{name} is of type {data_type}, and '{text}' does not convert")),
    };
    Some(format!("{name} is of type {data_type}, and '{text}' is not {what}{instance}"))
}

/// Returns the message for two expressions whose types cannot be compared.
fn no_common_type(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<String> {
    let (left_type, right_type) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if BinaryTypeCoercer::new(&left_type, &op, &right_type).get_input_types().is_ok() {
        return None;
    }
    let (of_left, of_right) = (count(left, schema), count(right, schema));
    let (left, right) = (name(left), name(right));
    match (
        of_left.filter(|_| right_type.is_temporal()),
        of_right.filter(|_| left_type.is_temporal()),
    ) {
        (Some(count), _) => return Some(count.message(&left, Some(&right))),
        (_, Some(count)) => return Some(count.message(&right, Some(&left))),
        (None, None) => {}
    }
    Some(format!(
        "{left} is of type {left_type} and {right} of type {right_type}, which cannot be compared: CAST one of them"
    ))
}

/// Returns the times that an expression counts in numbers, because SQL lacks their calendar.
fn count(expr: &Expr, schema: &DFSchema) -> Option<Count> {
    let (_, field) = expr.to_field(schema).ok()?;
    Count::from_field(&field)
}

/// Returns an expression as users write it.
fn name(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => quote_identifier(&column.name).into_owned(),
        Expr::Literal(value, _) if matches!(value.data_type(), DataType::Interval(_)) => {
            "an interval".to_owned()
        }
        Expr::Literal(value, _) => value.to_string(),
        expr => expr.human_display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_column_is_named() {
        let ctx = SessionContext::new();
        let sql = "CREATE TABLE t AS SELECT now()::TIMESTAMP AS time, 1.5::DOUBLE AS lat, \
                   'a' AS name, current_date() AS day, true AS ok, 1 AS \"N\"";
        ctx.sql(sql).await.unwrap();
        for (condition, expected) in [
            (
                "time = 'foo'",
                "time is of type Timestamp(ns), and 'foo' is not a time; write '2024-",
            ),
            ("t.lat > 'north'", "lat is of type Float64, and 'north' is not a number"),
            ("'north' < lat", "lat is of type Float64, and 'north' is not a number"),
            ("\"N\" IN (1, 'x')", "\"N\" is of type Int64, and 'x' is not a number"),
            (
                "day BETWEEN '2024-01-01' AND 'soon'",
                "day is of type Date32, and 'soon' is not a date",
            ),
            ("ok = 'perhaps'", "ok is of type Boolean, and 'perhaps' is not a truth value"),
            ("time = 5.5", "time is of type Timestamp(ns) and 5.5 of type Float64"),
            (
                "name = 5",
                "name is of type Utf8 and 5 of type Int64, and not every text converts to Int64: write '5'",
            ),
            ("time > INTERVAL '1 day'", "time is of type Timestamp(ns) and an interval of type "),
            ("name = 'x' AND time > lat", "time is of type Timestamp(ns) and lat of type Float64"),
            ("lat IN (SELECT lat FROM t WHERE day < 'x')", "day is of type Date32, and 'x' is not"),
        ] {
            let sql = format!("SELECT * FROM t WHERE {condition}");
            let error = async { ctx.sql(&sql).await?.collect().await }.await.unwrap_err();
            let error = with_column(error, &ctx, &sql).await;
            let message = describe(&error);
            assert!(message.starts_with(expected), "{condition}: {message}");
        }
    }

    #[tokio::test]
    async fn other_errors_stay_as_they_are() {
        let ctx = SessionContext::new();
        for sql in ["SELECT nothing", "SELECT CAST('x' AS INT)", "SELECT arrow_cast(1, 'Odd')"] {
            let error = async { ctx.sql(sql).await?.collect().await }.await.unwrap_err();
            let before = describe(&error);
            assert_eq!(describe(&with_column(error, &ctx, sql).await), before);
        }
    }
}
