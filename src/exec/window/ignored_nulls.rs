//! `IGNORE NULLS` of window functions, which DataFusion 55 neither shows nor puts into its messages.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{
    BoundedWindowAggExec, WindowAggExec, create_udwf_window_expr,
};

use crate::error::Error;
use crate::exec::matching::{FunctionMode, standard_function, window_functions};

/// Returns, for each function of a window, whether it has `IGNORE NULLS`. Empty for another plan.
///
/// # Errors
/// `Unsupported` if this version of DataFusion shows it in another way.
pub(crate) fn ignored_nulls(window: &dyn ExecutionPlan) -> Result<Vec<bool>> {
    let ignores = |function: &Arc<dyn WindowExpr>| {
        let Some(function) = standard_function(function.as_ref()) else { return Ok(false) };
        let reading = FunctionMode::try_new(function).ok_or_else(|| {
            Error::unsupported("the plan has a window function whose NULLS clause is unknown")
        })?;
        Ok(reading.ignores_nulls)
    };
    window_functions(window).unwrap_or_default().iter().map(ignores).collect()
}

/// Returns a window whose functions have lost their `IGNORE NULLS` on the way, with them.
///
/// # Errors
/// `Corrupt` if `ignored` is not that of such a window.
pub(crate) fn with_ignored_nulls(
    window: Arc<dyn ExecutionPlan>,
    ignored: &[bool],
) -> Result<Arc<dyn ExecutionPlan>> {
    if !ignored.contains(&true) {
        return Ok(window);
    }
    let functions = window_functions(window.as_ref()).unwrap_or_default();
    let corrupt = || Error::corrupt_region("plan", "IGNORE NULLS of other functions");
    let [input] = window.children()[..] else { return Err(corrupt().into()) };
    if functions.len() != ignored.len() {
        return Err(corrupt().into());
    }
    let schema = input.schema();
    let with = |(expr, ignored): (&Arc<dyn WindowExpr>, &bool)| -> Result<Arc<dyn WindowExpr>> {
        if !ignored {
            return Ok(Arc::clone(expr));
        }
        let function = standard_function(expr.as_ref()).ok_or_else(corrupt)?;
        let (fun, name) = (function.fun(), expr.name().to_owned());
        let function = create_udwf_window_expr(fun, function.args(), &schema, name, true)?;
        let frame = Arc::clone(expr.get_window_frame());
        let (partition_by, order_by) = (expr.partition_by(), expr.order_by());
        Ok(Arc::new(StandardWindowExpr::new(function, partition_by, order_by, frame)))
    };
    let functions = functions.iter().zip(ignored).map(with).collect::<Result<Vec<_>>>()?;
    let input = Arc::clone(input);
    if let Some(bounded) = window.downcast_ref::<BoundedWindowAggExec>() {
        let mode = bounded.input_order_mode.clone();
        let can_repartition = !bounded.partition_keys().is_empty();
        let window = BoundedWindowAggExec::try_new(functions, input, mode, can_repartition)?;
        return Ok(Arc::new(window));
    }
    let can_repartition = window
        .downcast_ref::<WindowAggExec>()
        .is_some_and(|window| !window.partition_keys().is_empty());
    Ok(Arc::new(WindowAggExec::try_new(functions, input, can_repartition)?))
}
