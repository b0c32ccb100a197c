//! [`MendedEnd`]: rewrites what DataFusion's optimizer makes and then executes wrongly.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::before::in_expressions;
use super::{doubled_keys, key_columns, nth_value, zeros_in_lists};

/// The last optimizer rule. The optimizer turns chains of `OR` into lists, and `array_agg(…)[n]` into `nth_value`. It also makes sort
/// keys equal, or turns them into keys whose order DataFusion cannot derive.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct MendedEnd;

impl OptimizerRule for MendedEnd {
    fn name(&self) -> &'static str {
        "gridfusion_mended_end"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        in_expressions(plan, |expr, schema| {
            zeros_in_lists::rewrite(expr, schema)?
                .transform_data(|expr| Ok(doubled_keys::of_aggregate(expr)))?
                .transform_data(|expr| Ok(nth_value::rewrite(expr)))
        })?
        .transform_data(key_columns::rewrite)
    }
}
