//! The rule `GridWindow`: replaces windows along a dimension.

use std::sync::Arc;

use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::grid_window::GridWindow;
use super::node::GridWindowExec;
use crate::exec::columns::have_same_types;
use crate::exec::config::GridfusionConfig;
use crate::exec::rules::walk::up;

/// Replaces windows whose frames move along one dimension: rolling means, running sums, `lag`, `row_number` and the like. The other
/// dimensions must be among the keys of `PARTITION BY`, or have one label.
pub(in crate::exec) fn run_on_arrays(
    plan: Arc<dyn ExecutionPlan>,
    partitions: usize,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| along_axis(node, partitions, config)).data()
}

/// Returns a plan with the rows of a window along an axis; `None` for another plan.
fn along_axis(
    plan: &Arc<dyn ExecutionPlan>,
    partitions: usize,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((window, input)) = GridWindow::try_new(plan)? else { return Ok(None) };
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
    let window = Arc::new(GridWindowExec::try_new(Arc::new(window), parts, all)?);
    let replaced = ProjectionExec::try_new_with_schema_metadata(columns, window, &schema)?;
    Ok(have_same_types(&replaced, plan.as_ref()).then(|| Arc::new(replaced) as _))
}
