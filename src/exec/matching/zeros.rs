//! Floating-point keys with both zeros.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal};

use super::axis_keys::Over;
use super::axis_labels::number_axis;
use crate::exec::GridScanExec;

/// Returns a join key of which both zeros are the same number. They are one group, and match each other in joins. But the
/// filter that a join makes of its keys compares bits.
pub(in crate::exec) fn with_one_zero(
    key: &PhysicalExprRef,
    schema: &Schema,
) -> Result<PhysicalExprRef> {
    let data_type = key.data_type(schema)?;
    if !data_type.is_floating() {
        return Ok(Arc::clone(key));
    }
    let zero = Arc::new(Literal::new(ScalarValue::new_zero(&data_type)?));
    Ok(Arc::new(BinaryExpr::new(Arc::clone(key), Operator::Plus, zero)))
}

/// Whether a key over one axis of a scan has zeros of both signs. They are one group of an aggregation, and two partitions of
/// a window.
pub(in crate::exec) fn has_both_zeros(key: &PhysicalExprRef, scan: &GridScanExec) -> Result<bool> {
    let Over::Axis(axis) = Over::new(key, scan) else { return Ok(false) };
    if !key.data_type(scan.schema_ref())?.is_floating() {
        return Ok(false);
    }
    let text: PhysicalExprRef = Arc::new(CastExpr::new(Arc::clone(key), DataType::Utf8, None));
    let selected = scan.plan().selection().axes()[axis].count();
    let groups = |keys: &[PhysicalExprRef]| Some(number_axis(scan, axis, keys)?.0.count(selected));
    // The texts of both zeros differ.
    Ok(groups(&[Arc::clone(key)]) != groups(&[Arc::clone(key), text]))
}
