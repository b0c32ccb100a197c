//! Whether an expression may fail on some rows.
//!
//! A plan that evaluates an expression on more rows than the query does must not fail where the query would not:
//!
//! ```text
//!   sum(100 / t.value) … JOIN s ON t.station = s.station      a station without a match may have the value 0
//! ```

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column as PhysicalColumn, InListExpr, IsNotNullExpr,
    IsNullExpr, LikeExpr, Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExprRef, ScalarFunctionExpr};

use super::known_function::known_scalar;

/// Functions of DataFusion that return a value or NULL for every number, time or text. `sqrt` is none: it fails on negative numbers, as
/// `date_trunc` on times outside the years 1678 to 2261. A function of the session may fail, whatever its name is.
const TOTAL: [&str; 23] = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "character_length",
    "coalesce",
    "cos",
    "date_part",
    "degrees",
    "exp",
    "isnan",
    "iszero",
    "ln",
    "log10",
    "log2",
    "lower",
    "nanvl",
    "nullif",
    "radians",
    "signum",
    "sin",
    "tan",
    "upper",
];

/// Functions that return a value for every float, but not for every integer or decimal, because these may overflow.
const TOTAL_OF_FLOATS: [&str; 4] = ["abs", "ceil", "floor", "round"];

/// Whether `expr`, over columns of `schema`, may return an error for a row. True if in doubt.
pub(in crate::exec) fn may_fail(expr: &PhysicalExprRef, schema: &Schema) -> bool {
    let fails = expr.exists(|expr| Ok(!is_total(expr, schema)?));
    !matches!(fails, Ok(false))
}

/// Whether an expression returns a value for all values of its inputs.
fn is_total(expr: &PhysicalExprRef, schema: &Schema) -> Result<bool> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return Ok(is_total_operator(*binary.op(), &expr.data_type(schema)?));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return Ok(widens(&cast.expr().data_type(schema)?, cast.cast_type()));
    }
    if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        let is_of_floats = expr.data_type(schema)?.is_floating();
        let Some(name) = known_scalar(function.fun()) else { return Ok(false) };
        return Ok(TOTAL.contains(&name) || is_of_floats && TOTAL_OF_FLOATS.contains(&name));
    }
    Ok(expr.is::<PhysicalColumn>()
        || expr.is::<Literal>()
        || expr.is::<CaseExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<LikeExpr>()
        || expr.is::<NegativeExpr>()
        || expr.is::<NotExpr>()
        || expr.is::<TryCastExpr>())
}

/// Whether an operator with results of this type has one for all values. Integers wrap around, unless they are divided by 0.
/// Decimals, times and intervals may overflow.
fn is_total_operator(operator: Operator, data_type: &DataType) -> bool {
    use Operator::{
        And, Divide, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo,
        Multiply, NotEq, Or, Plus,
    };
    match operator {
        Plus | Minus | Multiply => data_type.is_floating() || data_type.is_integer(),
        Divide | Modulo => data_type.is_floating(),
        And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => true,
        _ => false,
    }
}

/// Whether every value of one type has a value of the other.
fn widens(from: &DataType, to: &DataType) -> bool {
    let bytes = |data_type: &DataType| data_type.primitive_width().unwrap_or(0);
    let is_wider = bytes(from) < bytes(to);
    from == to
        || from.is_numeric() && to.is_floating()
        || from.is_signed_integer() && to.is_signed_integer() && is_wider
        || from.is_unsigned_integer() && to.is_integer() && is_wider
        || from.is_numeric() && matches!(to, DataType::Utf8 | DataType::Utf8View)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, TimeUnit};
    use datafusion::common::config::ConfigOptions;
    use datafusion::functions::math::{cos, round, sqrt};
    use datafusion::logical_expr::ScalarUDF;
    use datafusion::physical_expr::expressions::{binary, cast, col, is_null, lit};

    use super::*;

    #[test]
    fn only_expressions_without_errors_are_total() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            field("f", DataType::Float32),
            field("i", DataType::Int32),
            field("t", DataType::Timestamp(TimeUnit::Second, None)),
        ]);
        let column = |name: &str| col(name, &schema).unwrap();
        let of = |a: PhysicalExprRef, operator, b: PhysicalExprRef| {
            binary(a, operator, b, &schema).unwrap()
        };
        let to = |name: &str, data_type: DataType| cast(column(name), &schema, data_type).unwrap();
        let call = |function: Arc<ScalarUDF>, name: &str| -> PhysicalExprRef {
            let options = Arc::new(ConfigOptions::default());
            let arguments = vec![column(name)];
            Arc::new(ScalarFunctionExpr::try_new(function, arguments, &schema, options).unwrap())
        };
        let total = [
            of(column("f"), Operator::Divide, column("f")),
            of(column("i"), Operator::Multiply, column("i")),
            of(column("i"), Operator::Gt, lit(3_i32)),
            to("i", DataType::Float64),
            to("i", DataType::Int64),
            is_null(column("t")).unwrap(),
            call(cos(), "f"),
            call(round(), "f"),
        ];
        for expr in total {
            assert!(!may_fail(&expr, &schema), "{expr}");
        }
        let partial = [
            of(column("i"), Operator::Divide, column("i")),
            of(lit(100_i32), Operator::Modulo, column("i")),
            of(of(lit(1_i32), Operator::Divide, column("i")), Operator::Gt, lit(0_i32)),
            to("f", DataType::Int32),
            to("i", DataType::Int16),
            to("t", DataType::Utf8),
            call(sqrt(), "f"),
            call(round(), "i"),
            Arc::new(NotExpr::new(of(to("f", DataType::Int8), Operator::Eq, lit(1_i8)))),
        ];
        for expr in partial {
            assert!(may_fail(&expr, &schema), "{expr}");
        }
    }
}
