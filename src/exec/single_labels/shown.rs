//! Labels beside doubles in functions: `nullif(lat, 50.1)`, `array_has([50.1, 50.2], lat)`, `CASE … THEN lat ELSE 50.1 END`.
//!
//! There, DataFusion makes doubles of all arguments, and 50.099998474… of the label 50.1. Here it becomes the double 50.1, as which it
//! is shown. The result has the same type.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, cast};

use super::columns::Columns;
use crate::exec::matching::known_scalar;

/// Functions of which the arguments are compared with each other, or one is the result.
const OF_EQUALS: [&str; 6] = ["nullif", "coalesce", "nvl", "nvl2", "greatest", "least"];

/// Casts doubles, halves and decimals to singles; leaves all else to DataFusion, which compares integers and text with
/// singles in singles.
pub(super) fn single(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if !is_cast(&expr.get_type(schema)?) {
        return Ok(expr);
    }
    match &expr {
        Expr::Literal(value, metadata) => {
            Ok(Expr::Literal(value.cast_to(&DataType::Float32)?, metadata.clone()))
        }
        _ => expr.cast_to(&DataType::Float32, schema),
    }
}

/// Whether a type is cast to singles.
pub(super) fn is_cast(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float64) || data_type.is_decimal()
}

/// Returns a label as the double of its decimal.
pub(super) fn shown(label: Expr) -> Expr {
    cast(cast(label, DataType::Utf8), DataType::Float64)
}

/// Whether numbers of a type make doubles of singles that stand beside them.
pub(super) fn makes_doubles(data_type: &DataType) -> bool {
    *data_type == DataType::Float64 || data_type.is_decimal()
}

/// Shows the labels among the arguments of a function, if it compares them with doubles.
pub(super) fn in_function(
    function: ScalarFunction,
    columns: &Columns,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, mut args } = function;
    let is_label = |expr: &Expr| columns.is_label(expr, schema);
    let is_list = |expr: &Expr, of: fn(&DataType) -> bool| match expr.get_type(schema) {
        Ok(DataType::List(field) | DataType::LargeList(field)) => of(field.data_type()),
        Ok(DataType::FixedSizeList(field, _)) => of(field.data_type()),
        _ => false,
    };
    let is_double = |expr: &Expr| expr.get_type(schema).is_ok_and(|it| makes_doubles(&it));
    let has_doubles = args.iter().any(|arg| is_list(arg, makes_doubles))
        || known_scalar(&func).is_some_and(|name| OF_EQUALS.contains(&name))
            && args.iter().any(is_double);
    let of_labels =
        |arg: &Expr| is_list(arg, |it| *it == DataType::Float32) && columns.is_of_labels(arg);
    let before = ScalarFunction { func: Arc::clone(&func), args: args.clone() };
    let mut is_other = false;
    if has_doubles {
        for arg in args.iter_mut().filter(|arg| is_label(arg)) {
            *arg = shown(std::mem::take(arg));
            is_other = true;
        }
    } else if args.iter().any(of_labels) {
        // A list of labels is compared in singles.
        for arg in args.iter_mut().filter(|arg| is_double(arg)) {
            *arg = single(std::mem::take(arg), schema)?;
            is_other = true;
        }
    }
    let before = Expr::ScalarFunction(before);
    if !is_other {
        return Ok(Transformed::no(before));
    }
    let after = Expr::ScalarFunction(ScalarFunction { func, args });
    let of = before.get_type(schema)?;
    Ok(match after.get_type(schema)? == of {
        true => Transformed::yes(after),
        false if of.is_numeric() => Transformed::yes(cast(after, of)),
        false => Transformed::no(before),
    })
}

/// Shows the labels among the results of `CASE`, if others are doubles.
pub(super) fn in_results(
    mut case: Case,
    columns: &Columns,
    schema: &DFSchema,
) -> Transformed<Case> {
    let results = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let is_double = |expr: &Expr| expr.get_type(schema).is_ok_and(|it| makes_doubles(&it));
    let is_label = |expr: &Expr| columns.is_label(expr, schema);
    if !results().any(|it| is_double(it)) || !results().any(|it| is_label(it)) {
        return Transformed::no(case);
    }
    let thens = case.when_then_expr.iter_mut().map(|(_, then)| then);
    for result in thens.chain(&mut case.else_expr) {
        if is_label(result) {
            **result = shown(std::mem::take(&mut **result));
        }
    }
    Transformed::yes(case)
}
