//! Expressions that pass times on, such as `CASE`, `coalesce` and `greatest`.
//!
//! ```text
//!   coalesce(a, b, '2001-02-30')     gridfusion_date('time', '', coalesce(a, b, 54419), 'days since 1850-01-01', '360_day')
//! ```
//!
//! DataFusion gives their results no metadata; the function does. Beside numbers that are no times, the results are numbers.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::Counted;
use super::dates::number;
use super::function::call;
use crate::core::array::CountedTimes;
use crate::exec::matching::known_scalar;

/// Marks the result of an expression that passes times on, and replaces the dates beside them by numbers.
///
/// # Errors
/// If the times count in different ways.
pub(super) fn passed(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let counted = match of_list(&expr, schema) {
        None => one_count(values(&mut expr), schema)?,
        of_list => of_list,
    };
    let Some(counted) = counted else { return Ok(Transformed::no(expr)) };
    // Window functions keep metadata, and are no arguments of others.
    Ok(Transformed::yes(match expr {
        Expr::WindowFunction(_) => expr,
        expr => call("time", "", expr, &counted),
    }))
}

/// Returns the values of which an expression returns one.
fn values(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Case(case) => {
            let of_when = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            of_when.chain(case.else_expr.as_deref_mut()).collect()
        }
        Expr::ScalarFunction(function) => match known_scalar(&function.func) {
            Some("coalesce" | "nvl" | "nullif" | "greatest" | "least") => {
                function.args.iter_mut().collect()
            }
            Some("nvl2") => function.args.iter_mut().skip(1).collect(),
            _ => vec![],
        },
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, params } = window.as_mut();
            match fun.name() {
                // The value, the distance, and what stands for rows that are not there.
                "lag" | "lead" => params.args.iter_mut().step_by(2).collect(),
                _ => vec![],
            }
        }
        _ => vec![],
    }
}

/// Returns what the numbers of a list mean, of which an expression takes one.
fn of_list(expr: &Expr, schema: &DFSchema) -> Option<Counted> {
    let Expr::ScalarFunction(function) = expr else { return None };
    let list = function.args.first().filter(|_| function.func.name() == "array_element")?;
    let (_, field) = list.to_field(schema).ok()?;
    Some(Counted { times: CountedTimes::from_lists(&field)?, field })
}

/// Returns what the numbers of all values mean; `None` if one of them is no time.
fn one_count(mut values: Vec<&mut Expr>, schema: &DFSchema) -> Result<Option<Counted>> {
    let counts: Vec<_> = values.iter().map(|it| Counted::from_expr(it, schema)).collect();
    let Some(first) = counts.iter().position(Option::is_some) else { return Ok(None) };
    let times = values[first].clone();
    let mut are_times = true;
    for (value, counted) in values.iter_mut().zip(&counts) {
        let is_null = value.as_literal().is_some_and(|it| it.is_null());
        match number(&times, value, schema)? {
            Some(number) => **value = number,
            None => are_times &= is_null || counted.is_some(),
        }
    }
    Ok(counts.into_iter().nth(first).flatten().filter(|_| are_times))
}
