//! [`SingleLabelPlanner`]: arithmetic of labels and literals in singles.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::columns::Columns;

/// Gives a literal beside a label of single precision the precision of the label, as NumPy and DuckDB do.
///
/// So `lat + 0.5` is 50.6, and not 50.599998474…. This is done when SQL is planned, because the result has another type.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SingleLabelPlanner;

impl ExprPlanner for SingleLabelPlanner {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
        if matches!(expr.op, Plus | Minus | Multiply | Divide | Modulo) {
            let (of_left, of_right) = (single_literal(&expr.left), single_literal(&expr.right));
            if of_left.is_some() != of_right.is_some() {
                let columns = Columns::from_schema(schema);
                match (of_left, of_right) {
                    (Some(left), _) if columns.is_label(&expr.right, schema) => expr.left = left,
                    (_, Some(right)) if columns.is_label(&expr.left, schema) => expr.right = right,
                    _ => {}
                }
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Returns a literal as a single; `None` for other expressions, and for numbers beyond singles.
fn single_literal(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Negative(literal) => Some(Expr::Negative(Box::new(single_literal(literal)?))),
        Expr::Literal(value, metadata) => {
            let data_type = value.data_type();
            if data_type != DataType::Float64 && !data_type.is_decimal() {
                return None;
            }
            let single = value.cast_to(&DataType::Float32).ok()?;
            let ScalarValue::Float32(Some(number)) = single else { return None };
            let is_zero = value == &ScalarValue::new_zero(&data_type).ok()?;
            (number.is_normal() || is_zero).then(|| Expr::Literal(single, metadata.clone()))
        }
        _ => None,
    }
}
