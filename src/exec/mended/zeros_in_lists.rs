//! Zeros of both signs. `=` takes them as equal. `IN` lists, `CASE x WHEN …` and the optimizer compare bits.
//!
//! | expression | becomes |
//! |---|---|
//! | `x IN (-2.0, -0.0)` | `x IN (-2.0, -0.0, 0.0)` |
//! | `x IN (y, 0.0)` | `x = y OR x = 0.0` |
//! | `CASE x WHEN 0.0 THEN a …` | `CASE x WHEN 0.0 THEN a WHEN -0.0 THEN a …` |
//! | `x = -0.0` | `x = 0.0` |

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, lit, not};

use super::constants::constant;

/// Makes an expression find zeros of both signs.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InList(list) if is_float(&list.expr, schema) => in_list(list),
        Expr::Case(case) if case.expr.as_ref().is_some_and(|it| is_float(it, schema)) => {
            in_case(case)
        }
        Expr::BinaryExpr(binary) if binary.op.supports_propagation() => in_comparison(binary),
        expr => Transformed::no(expr),
    })
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| data_type.is_floating())
}

fn in_list(mut list: InList) -> Transformed<Expr> {
    if list.list.iter().any(|item| constant(item).is_none()) {
        return any_equal(list);
    }
    let missing = other_zeros(list.list.iter());
    let is_more = !missing.is_empty();
    list.list.extend(missing.into_iter().map(|(_, zero)| lit(zero)));
    Transformed::new_transformed(Expr::InList(list), is_more)
}

/// Compares with the items of a list one by one, because some are no constants.
fn any_equal(list: InList) -> Transformed<Expr> {
    if list.expr.is_volatile() {
        return Transformed::no(Expr::InList(list));
    }
    let (left, negated) = (*list.expr, list.negated);
    let equal = list.list.into_iter().map(|item| left.clone().eq(item)).reduce(Expr::or);
    let equal = equal.unwrap_or_else(|| lit(false));
    Transformed::yes(if negated { not(equal) } else { equal })
}

fn in_case(mut case: Case) -> Transformed<Expr> {
    let missing = other_zeros(case.when_then_expr.iter().map(|(when, _)| when.as_ref()));
    let is_more = !missing.is_empty();
    for (behind, (at, zero)) in missing.into_iter().enumerate() {
        let at = at + behind;
        let then = case.when_then_expr[at].1.clone();
        case.when_then_expr.insert(at + 1, (Box::new(lit(zero)), then));
    }
    Transformed::new_transformed(Expr::Case(case), is_more)
}

/// Returns the zeros that a list lacks because it has them with the other sign, each with the place of that one.
fn other_zeros<'a>(items: impl Iterator<Item = &'a Expr>) -> Vec<(usize, ScalarValue)> {
    let zeros: Vec<(usize, ScalarValue)> = items
        .enumerate()
        .filter_map(|(at, item)| constant(item).filter(is_zero).map(|zero| (at, zero)))
        .collect();
    let mut missing: Vec<(usize, ScalarValue)> = Vec::new();
    for (at, zero) in &zeros {
        let Ok(other) = zero.arithmetic_negate() else { continue };
        let is_other = |(_, zero): &(usize, ScalarValue)| *zero == other;
        if !zeros.iter().any(is_other) && !missing.iter().any(is_other) {
            missing.push((*at, other));
        }
    }
    missing
}

fn is_zero(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float16(Some(value)) => f32::from(*value) == 0.0,
        ScalarValue::Float32(Some(value)) => *value == 0.0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        _ => false,
    }
}

/// Removes the sign of a zero, because the optimizer takes `x = 0.0 AND x = -0.0` as impossible.
fn in_comparison(mut binary: BinaryExpr) -> Transformed<Expr> {
    let mut is_other = false;
    for side in [&mut binary.left, &mut binary.right] {
        let zero = constant(side).filter(is_zero).and_then(|zero| zero.arithmetic_negate().ok());
        if let Some(positive) = zero.filter(|zero| !zero.to_string().starts_with('-')) {
            **side = lit(positive);
            is_other = true;
        }
    }
    Transformed::new_transformed(Expr::BinaryExpr(binary), is_other)
}
