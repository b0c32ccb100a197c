//! Expressions of a query that the kernels read as numbers: variables, casts of them, and literals.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, Column as PhysicalColumn, Literal};
use datafusion::physical_plan::ExecutionPlan;

use crate::array::{ColumnSource, ValueColumn};
use crate::exec::GridScanExec;
use crate::exec::matching::{ScanBelow, ScanCells};
use crate::reduce::Number;

/// Returns the source of the scan's column `expr`; `None` if `expr` is not a column.
pub(super) fn column_of(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<ColumnSource> {
    let column = expr.downcast_ref::<PhysicalColumn>()?;
    scan.columns().get(column.index()).copied()
}

/// Returns the number of the variable whose column `expr` is; `None` unless the variable is numeric.
pub(super) fn plain_value(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<usize> {
    let value = column_of(expr, scan)?.value()?;
    scan.array().value(value).as_number().map(|_| value)
}

/// Whether `expr` is a column or a constant without NULLs.
pub(super) fn is_never_null(expr: &PhysicalExprRef, scan: &GridScanExec) -> bool {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return !literal.value().is_null();
    }
    expr.is::<PhysicalColumn>() && matches!(expr.nullable(scan.schema_ref()), Ok(false))
}

/// Returns the variable of `expr`, and the type of `expr`: the variable's own, or a wider one that it is
/// cast to. Such a cast never overflows, and never changes which values are NULL.
///
/// DataFusion adds such casts: `avg(value)` of singles is `avg(CAST(value AS Float64))`. The kernels read
/// stored elements and widen them one by one.
pub(in crate::exec) fn number_of(
    expr: &PhysicalExprRef,
    scan: &GridScanExec,
) -> Option<(usize, DataType)> {
    let type_of = |value: usize| scan.array().value(value).data_type();
    if let Some(value) = plain_value(expr, scan) {
        return type_of(value).is_numeric().then(|| (value, type_of(value)));
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let to = cast.cast_type();
    let value = plain_value(cast.expr(), scan)?;
    let from = type_of(value);
    let widens = match to {
        DataType::Float64 => from.is_numeric(),
        DataType::Float32 => from == DataType::Float16,
        DataType::Int64 => from.is_signed_integer() || is_narrow_unsigned(&from),
        DataType::UInt64 => from.is_unsigned_integer(),
        _ => false,
    };
    widens.then(|| (value, to.clone()))
}

fn is_narrow_unsigned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32)
}

/// Returns the number that `expr` is; `None` unless `expr` is a numeric literal other than NULL.
pub(super) fn number(expr: &PhysicalExprRef) -> Option<Number> {
    let value = expr.downcast_ref::<Literal>()?.value();
    let widest = match value.data_type() {
        float if float.is_floating() => DataType::Float64,
        unsigned if unsigned.is_unsigned_integer() => DataType::UInt64,
        signed if signed.is_signed_integer() => DataType::Int64,
        _ => return None,
    };
    match value.cast_to(&widest).ok()? {
        ScalarValue::Float64(number) => number.map(Number::Float),
        ScalarValue::UInt64(number) => number.map(|number| Number::Integer(number.into())),
        ScalarValue::Int64(number) => number.map(|number| Number::Integer(number.into())),
        _ => None,
    }
}

/// Whether an expression over `plan` is a number of an array that is never NaN.
pub(in crate::exec) fn is_never_nan(
    expr: &PhysicalExprRef,
    plan: &Arc<dyn ExecutionPlan>,
) -> Result<bool> {
    let Some(below) = ScanBelow::find(plan, ScanCells::Read)? else { return Ok(false) };
    let scan = &below.scan;
    let Some((value, _)) = number_of(&below.over_scan(expr)?, scan) else { return Ok(false) };
    let is_never_nan =
        |column: &ValueColumn| column.as_number().is_some_and(|number| !number.may_be_nan());
    Ok(scan.array().forms_of(value).all(is_never_nan))
}
