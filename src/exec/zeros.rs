//! Floating-point keys with both zeros.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};

/// Returns a join key of which both zeros are the same number. They are one group, and match each other in joins. But the
/// filter that a join makes of its keys compares bits.
pub(super) fn with_one_zero(key: &PhysicalExprRef, schema: &Schema) -> Result<PhysicalExprRef> {
    let data_type = key.data_type(schema)?;
    if !data_type.is_floating() {
        return Ok(Arc::clone(key));
    }
    let zero = Arc::new(Literal::new(ScalarValue::new_zero(&data_type)?));
    Ok(Arc::new(BinaryExpr::new(Arc::clone(key), Operator::Plus, zero)))
}
