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
use crate::exec::rows_because::{Attempt, because, or_reason};
use crate::exec::rules::walk::up;

/// Replaces windows whose frames move along one dimension: rolling means, running sums, `lag`, `row_number` and the like. The other
/// dimensions must be among the keys of `PARTITION BY`, or have one label.
pub(in crate::exec) fn run_on_arrays(
    plan: Arc<dyn ExecutionPlan>,
    partitions: usize,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| or_reason(along_axis(node, partitions, config), node)).data()
}

/// Returns a plan with the rows of a window along an axis.
fn along_axis(
    plan: &Arc<dyn ExecutionPlan>,
    partitions: usize,
    config: &GridfusionConfig,
) -> Attempt<Arc<dyn ExecutionPlan>> {
    let (window, input) = GridWindow::try_new(plan)?;
    let parts = window.parts(partitions, config)?;
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
    match have_same_types(&replaced, plan.as_ref()) {
        true => Ok(Arc::new(replaced)),
        false => Err(because("the types of the functions are others than those of DataFusion")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    async fn rule(query: &str) -> Option<String> {
        rewritten(query, |plan, config| run_on_arrays(plan, 2, config)).await
    }

    #[tokio::test]
    async fn windows_along_a_dimension_run_on_the_array() {
        let query = "SELECT hour, station, sum(value) OVER
            (PARTITION BY station ORDER BY hour ROWS 1 PRECEDING) FROM t";
        insta::assert_snapshot!(rule(query).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[hour@0 as hour, station@1 as station, sum(t.value) PARTITION BY [t.station] ORDER BY [t.hour ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW@3 as sum(t.value) PARTITION BY [t.station] ORDER BY [t.hour ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW]
    ProjectionExec: expr=[hour@0 as hour, station@1 as station, value@2 as value, sum(t.value) PARTITION BY [t.station] ORDER BY [t.hour ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW@3 as sum(t.value) PARTITION BY [t.station] ORDER BY [t.hour ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW]
      GridWindowExec: along=hour, functions=[sum(t.value) PARTITION BY [t.station] ORDER BY [t.hour ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW], dataset=test, chunks=32/32, projection=[hour, station, value]
"#);
        let numbers = "SELECT hour, row_number() OVER (PARTITION BY hour ORDER BY station) FROM t";
        assert!(rule(numbers).await.unwrap().contains("GridWindowExec"));
    }

    #[tokio::test]
    async fn other_windows_stay() {
        // Rows of several stations are in no order along the axis.
        let across = "SELECT sum(value) OVER (ORDER BY hour ROWS 1 PRECEDING) FROM t";
        let by_value = "SELECT lag(value) OVER (PARTITION BY station ORDER BY value) FROM t";
        // The filter leaves out rows that frames would count.
        let filtered = "SELECT lag(value) OVER (PARTITION BY station ORDER BY hour) FROM t
            WHERE value > 3";
        let of_table =
            "SELECT lag(height) OVER (PARTITION BY station ORDER BY height) FROM heights";
        for query in [across, by_value, filtered, of_table, "SELECT value FROM t"] {
            assert_eq!(rule(query).await, None, "{query}");
        }
    }
}
