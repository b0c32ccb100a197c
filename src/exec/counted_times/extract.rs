//! [`ExtractPlanner`]: `EXTRACT(year FROM time)` as `date_part('year', time)`.

use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};

use crate::exec::own_functions::own_scalar_named;

/// Plans `EXTRACT` with our version of `date_part`, which takes numbers that count time. DataFusion's planner does not look up the
/// function in the session.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ExtractPlanner;

impl ExprPlanner for ExtractPlanner {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(match own_scalar_named("date_part") {
            Some(date_part) => PlannerResult::Planned(date_part.call(args)),
            None => PlannerResult::Original(args),
        })
    }
}
