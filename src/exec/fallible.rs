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

/// Functions that return a value or NULL for every number, time or text.
const TOTAL: [&str; 30] = [
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "ceil",
    "character_length",
    "coalesce",
    "cos",
    "date_part",
    "date_trunc",
    "degrees",
    "exp",
    "floor",
    "isnan",
    "iszero",
    "ln",
    "log10",
    "log2",
    "lower",
    "nanvl",
    "nullif",
    "radians",
    "round",
    "signum",
    "sin",
    "sqrt",
    "substr",
    "tan",
    "upper",
];

/// Whether `expr`, over columns of `schema`, may return an error for a row. True if in doubt.
pub(super) fn may_fail(expr: &PhysicalExprRef, schema: &Schema) -> bool {
    let fails = expr.exists(|expr| Ok(!is_total(expr, schema)?));
    !matches!(fails, Ok(false))
}

/// Whether an expression returns a value for all values of its inputs.
fn is_total(expr: &PhysicalExprRef, schema: &Schema) -> Result<bool> {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let divides = matches!(binary.op(), Operator::Divide | Operator::Modulo);
        return Ok(!divides || expr.data_type(schema)?.is_floating());
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return Ok(widens(&cast.expr().data_type(schema)?, cast.cast_type()));
    }
    if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return Ok(TOTAL.contains(&function.name()));
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

/// Whether every value of one type has a value of the other.
fn widens(from: &DataType, to: &DataType) -> bool {
    let bytes = |data_type: &DataType| data_type.primitive_width().unwrap_or(0);
    let is_wider = bytes(from) < bytes(to);
    from == to
        || from.is_numeric() && to.is_floating()
        || from.is_signed_integer() && to.is_signed_integer() && is_wider
        || from.is_unsigned_integer() && to.is_integer() && is_wider
        || from.is_temporal() && matches!(to, DataType::Date32 | DataType::Time64(_))
        || matches!(to, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}
