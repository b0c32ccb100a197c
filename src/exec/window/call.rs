//! [`Call`]: a function of a window, with its argument and frames.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::windows::WindowUDFExpr;

use super::frames::{KnownFrames, peers};
use super::function::Function;
use super::shift::picks;
use super::totals::Total;
use super::window_axis::WindowAxis;
use crate::exec::matching::{FunctionMode, known_aggregate, known_window, unfiltered_aggregate};
use crate::exec::order_keys::has_order_keys;

/// A function of a window.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The expression that is evaluated for each cell, over the columns of the scan; `None` if there is none.
    pub(super) argument: Option<PhysicalExprRef>,
    pub(super) function: Function,
    pub(super) field: FieldRef,
}

impl Call {
    /// Takes a function of a window apart. `over_scan` rewrites its arguments over the columns of the scan, which has the
    /// schema `of_scan`. `None` if the function does not run along the axis.
    ///
    /// # Errors
    /// If bounds of frames cannot be computed.
    pub(super) fn try_new(
        expr: &Arc<dyn WindowExpr>,
        axis: &WindowAxis,
        frames: &mut KnownFrames<'_>,
        over_scan: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
        of_scan: &Schema,
    ) -> Result<Option<Self>> {
        let field = expr.field()?;
        if let Some(standard) = expr.as_any().downcast_ref::<StandardWindowExpr>() {
            return Self::from_standard(standard, field, axis, frames, over_scan, of_scan);
        }
        let Some(aggregate) = plain_aggregate(expr) else { return Ok(None) };
        let Some(argument) = aggregate.expressions().into_iter().next() else { return Ok(None) };
        if is_volatile(&argument) {
            return Ok(None);
        }
        let mut frames = || frames.get(expr.get_window_frame());
        let is_constant =
            argument.downcast_ref::<Literal>().is_some_and(|it| !it.value().is_null());
        if known_aggregate(aggregate.fun()) == Some("count") && is_constant {
            let lens = frames()?.all().iter().map(|frame| frame.len() as i64).collect::<Vec<_>>();
            let function = Function::OfAxis(Arc::new(Int64Array::from(lens)));
            return Ok(Some(Self { argument: None, function, field }));
        }
        let argument = over_scan(&argument)?;
        let Some(total) = total(aggregate, &argument.data_type(of_scan)?, field.data_type()) else {
            return Ok(None);
        };
        let function = Function::Total(total, frames()?);
        Ok(Some(Self { argument: Some(argument), function, field }))
    }

    /// Takes `row_number`, `lag` and the like apart.
    fn from_standard(
        expr: &StandardWindowExpr,
        field: FieldRef,
        axis: &WindowAxis,
        frames: &mut KnownFrames<'_>,
        over_scan: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
        of_scan: &Schema,
    ) -> Result<Option<Self>> {
        let function = expr.get_standard_func_expr();
        let Some(udf) = function.as_any().downcast_ref::<WindowUDFExpr>() else { return Ok(None) };
        let (Some(name), Some(reading)) = (known_window(udf.fun()), FunctionMode::try_new(udf))
        else {
            return Ok(None);
        };
        let is_literal = |expr: &PhysicalExprRef| expr.is::<Literal>();
        if udf.args().iter().all(is_literal) && !function.create_evaluator()?.uses_window_frame() {
            let function = Function::OfAxis(of_axis(expr, axis)?);
            return Ok(Some(Self { argument: None, function, field }));
        }
        let [argument, rest @ ..] = udf.args() else { return Ok(None) };
        if is_volatile(argument) || reading.is_reversed || !rest.iter().all(is_literal) {
            return Ok(None);
        }
        let argument = over_scan(argument)?;
        if reading.ignores_nulls {
            let data_type = argument.data_type(of_scan)?;
            let total = known(name, udf, axis.backwards).filter(|_| has_order_keys(&data_type));
            let Some(total) = total else { return Ok(None) };
            let function = Function::Total(total, frames.get(expr.get_window_frame())?);
            return Ok(Some(Self { argument: Some(argument), function, field }));
        }
        let Some(picks) = picks(expr, (name, udf), field.data_type(), axis, frames)? else {
            return Ok(None);
        };
        let argument = Some(argument);
        Ok(Some(Self { argument, function: Function::Pick(Arc::new(picks)), field }))
    }
}

/// Returns the aggregate of a window with one argument, and without `FILTER`, `DISTINCT` and `ORDER BY` of its own.
fn plain_aggregate(expr: &Arc<dyn WindowExpr>) -> Option<&AggregateFunctionExpr> {
    let aggregate = unfiltered_aggregate(expr.as_ref())?;
    let is_plain = !aggregate.is_distinct()
        && aggregate.order_bys().is_empty()
        && aggregate.expressions().len() == 1;
    is_plain.then_some(aggregate)
}

/// Returns how to aggregate; `None` for another function, or other types than DataFusion's own functions have.
fn total(aggregate: &AggregateFunctionExpr, of: &DataType, to: &DataType) -> Option<Total> {
    let is_float = *of == DataType::Float64 && *to == DataType::Float64;
    Some(match known_aggregate(aggregate.fun())? {
        "count" if *to == DataType::Int64 => Total::Count,
        "sum" if is_float => Total::FloatSum,
        "sum" if of == to && matches!(of, DataType::Int64 | DataType::UInt64) => Total::IntegerSum,
        "avg" if is_float => Total::Average,
        "min" if of == to && has_order_keys(of) => Total::Least,
        "max" if of == to && has_order_keys(of) => Total::Greatest,
        "var" if is_float => Total::Variance { is_sample: true, is_root: false },
        "var_pop" if is_float => Total::Variance { is_sample: false, is_root: false },
        "stddev" if is_float => Total::Variance { is_sample: true, is_root: true },
        "stddev_pop" if is_float => Total::Variance { is_sample: false, is_root: true },
        _ => return None,
    })
}

/// Returns how to find the first or last value that is not NULL; `None` for another function.
fn known(name: &str, udf: &WindowUDFExpr, backwards: bool) -> Option<Total> {
    let is_last = match (name, udf.args().len()) {
        ("first_value", 1) => backwards,
        ("last_value", 1) => !backwards,
        _ => return None,
    };
    Some(if is_last { Total::LastKnown } else { Total::FirstKnown })
}

/// Lets DataFusion evaluate a function of the number and rank of rows alone. Returns its value at each position.
fn of_axis(expr: &StandardWindowExpr, axis: &WindowAxis) -> Result<ArrayRef> {
    let function = expr.get_standard_func_expr();
    let mut values = vec![];
    for partition in &axis.partitions {
        let len = partition.len();
        let mut evaluator = function.create_evaluator()?;
        let of_partition = if evaluator.include_rank() {
            evaluator.evaluate_all_with_rank(len, &peers(axis, partition))?
        } else {
            let literal = |expr: &PhysicalExprRef| match expr.downcast_ref::<Literal>() {
                Some(literal) => literal.value().to_array_of_size(len),
                None => ScalarValue::Null.to_array_of_size(len),
            };
            let arguments =
                function.expressions().iter().map(literal).collect::<Result<Vec<_>>>()?;
            evaluator.evaluate_all(&arguments, len)?
        };
        values.push(match axis.backwards {
            false => of_partition,
            true => {
                let reversed = UInt64Array::from_iter_values((0..len as u64).rev());
                take(&of_partition, &reversed, None)?
            }
        });
    }
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    match values.as_slice() {
        [] => ScalarValue::try_from(expr.field()?.data_type())?.to_array_of_size(0),
        values => Ok(concat(values)?),
    }
}
