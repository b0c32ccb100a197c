//! [`GridWindowRule`]: replaces windows along a dimension.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::grid_window::{GridWindow, OverScan};
use super::node::GridWindowExec;
use crate::exec::columns::have_same_types;
use crate::exec::config::GridfusionConfig;

/// A physical optimizer rule for windows whose frames move along one dimension: rolling means, running sums, `lag`,
/// `row_number` and the like. The other dimensions must be among the keys of `PARTITION BY`, or have one label.
///
/// It belongs behind [`WindowReduceRule`](crate::exec::WindowReduceRule), where
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) puts it.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::physical_optimizer::PhysicalOptimizerRule;
/// use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
/// use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
/// use gridfusion::exec::GridWindowRule;
///
/// let mut rules = PhysicalOptimizer::new().rules;
/// // Behind that rule, windows are reversed and rows are repartitioned already.
/// let at = rules.iter().position(|it| it.name() == EnsureRequirements::new().name()).unwrap();
/// rules.insert(at, Arc::new(GridWindowRule));
/// ```
#[derive(Debug, Default, Clone, Copy)]
pub struct GridWindowRule;

impl PhysicalOptimizerRule for GridWindowRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let config = GridfusionConfig::of(options);
        if !config.grid_windows {
            return Ok(plan);
        }
        let partitions = options.execution.target_partitions;
        plan.transform_up(|plan| {
            let window = along_axis(&plan, partitions, &config)?;
            Ok(window.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "GridWindow"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a plan with the rows of a window along an axis; `None` for another plan.
fn along_axis(
    plan: &Arc<dyn ExecutionPlan>,
    partitions: usize,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(OverScan { window, input }) = GridWindow::of(plan)? else { return Ok(None) };
    let Some(parts) = window.parts(partitions, config) else {
        log::debug!("a window runs over rows, because its cells take too much memory");
        return Ok(None);
    };
    let scanned = window.scan.columns().len();
    let all: Vec<usize> = (0..window.schema.fields().len()).collect();
    let calls = all[scanned..].iter().map(|&at| -> PhysicalExprRef {
        Arc::new(PhysicalColumn::new(window.schema.field(at).name(), at))
    });
    let columns = input.into_iter().chain(calls);
    let schema = plan.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns: Vec<_> = columns.zip(names).collect();
    let window = Arc::new(GridWindowExec::of(Arc::new(window), parts, all)?);
    let replaced = ProjectionExec::try_new_with_schema_metadata(columns, window, &schema)?;
    Ok(have_same_types(&replaced, plan.as_ref()).then(|| Arc::new(replaced) as _))
}
