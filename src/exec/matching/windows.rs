//! The functions of a window over rows.

use std::sync::Arc;

use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

/// Returns the functions of a window; `None` for another operator.
pub(in crate::exec) fn window_functions(
    plan: &dyn ExecutionPlan,
) -> Option<&[Arc<dyn WindowExpr>]> {
    let bounded = plan.downcast_ref::<BoundedWindowAggExec>().map(|it| it.window_expr());
    bounded.or_else(|| plan.downcast_ref::<WindowAggExec>().map(|it| it.window_expr()))
}
