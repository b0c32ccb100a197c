//! Optimizer rules that wait until a prepared statement is executed.
//!
//! `PREPARE` runs the optimizer on a plan that the analyzer has not seen. `EXECUTE` then runs the analyzer on the optimized plan, in
//! which rules of the analyzer find nothing to mend any more. So `PREPARE` keeps the plan as it is.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule that changes no plan of a statement that is only prepared.
#[derive(Debug)]
pub(crate) struct WhenExecuted(pub(crate) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for WhenExecuted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // A session has functions. `PREPARE` gives neither functions nor a time.
        let is_prepared_only =
            config.query_execution_start_time().is_none() && config.function_registry().is_none();
        match is_prepared_only {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}
