//! [`GridRule`]: a rule of the list, as DataFusion calls it.

use std::fmt;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::operators::{LastPlan, OperatorKind};
use crate::exec::config::GridfusionConfig;
use crate::settings::OptimizerSettings;

/// Rewrites a plan by the settings of its session.
type Rewrite =
    fn(Arc<dyn ExecutionPlan>, &GridfusionConfig, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>;

/// A row of the list.
pub(super) struct Row {
    /// The name in `EXPLAIN VERBOSE`.
    pub(super) name: &'static str,
    /// The rule changes only plans with operators of all these kinds.
    pub(super) looks_for: &'static [OperatorKind],
    /// Whether a session lets the rule run, unless it turns off all of these. `None` for a rule that mends a fault.
    pub(super) switch: Option<fn(&OptimizerSettings) -> bool>,
    pub(super) rewrite: Rewrite,
}

/// A rule of the list.
pub(super) struct GridRule {
    row: &'static Row,
    last: Arc<LastPlan>,
}

impl GridRule {
    /// Makes a rule that shares what is known of the last plan with the other rules of its session.
    pub(super) fn new(row: &'static Row, last: &Arc<LastPlan>) -> Self {
        Self { row, last: Arc::clone(last) }
    }
}

impl fmt::Debug for GridRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)
    }
}

impl PhysicalOptimizerRule for GridRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.last.operators(&plan)?.have_all(self.row.looks_for) {
            return Ok(plan);
        }
        let settings = GridfusionConfig::from_options(options);
        let optimizer = &settings.optimizer;
        match self.row.switch.is_none_or(|is_on| optimizer.enable_all && is_on(optimizer)) {
            true => (self.row.rewrite)(plan, &settings, options),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        self.row.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
