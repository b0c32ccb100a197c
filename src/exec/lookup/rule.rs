//! The rule `GridLookup`: replaces hash joins by lookups.

use std::sync::Arc;

use datafusion::common::JoinSide;
use datafusion::common::tree_node::TransformedResult;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::grid_lookup::GridLookup;
use super::node::GridLookupExec;
use crate::exec::columns::{have_same_types, output_columns, replace_columns};
use crate::exec::config::GridfusionConfig;
use crate::exec::rules::walk::up;

/// Replaces hash joins with an array on one side, if each key of the array is over one dimension. The rows of the other side are
/// put into a table by label, where cells look them up.
pub(in crate::exec) fn look_up_rows(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    up(plan, |node| looked_up(node, config)).data()
}

/// Returns a plan with the rows of a join that looks them up; `None` for another plan.
fn looked_up(
    plan: &Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let Some((lookup, below)) = GridLookup::try_new(plan)? else { return Ok(None) };
    let partitions = lookup.scan.plan().partition_count() as u64;
    let bytes = lookup.places().saturating_mul(size_of::<u32>() as u64).saturating_mul(partitions);
    let side = lookup.side;
    let Some(input) = lookup.other().cloned() else { return Ok(None) };
    if bytes > config.optimizer.reduce_memory as u64 {
        return Ok(None);
    }
    let scanned = lookup.scan.columns().len();
    let lookup = Arc::new(lookup);
    let node = GridLookupExec::whole(&lookup, input)?;
    // The columns of each side, over those of the operator.
    let of_side = |column_side: JoinSide, at: usize| -> Option<PhysicalExprRef> {
        if column_side == side {
            return below.columns.get(at).cloned();
        }
        let field = lookup.schema.fields().get(scanned + at)?;
        Some(Arc::new(PhysicalColumn::new(field.name(), scanned + at)))
    };
    let mut joined: Arc<dyn ExecutionPlan> = Arc::new(node);
    if let Some(filter) = join.filter() {
        let condition = replace_columns(filter.expression(), &|column| {
            let column = filter.column_indices().get(column.index())?;
            of_side(column.side, column.index)
        })?;
        joined = Arc::new(FilterExec::try_new(condition, joined)?);
    }
    let columns: Option<Vec<PhysicalExprRef>> =
        output_columns(join).into_iter().map(|(side, at)| of_side(side, at)).collect();
    let Some(columns) = columns else { return Ok(None) };
    let schema = join.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns: Vec<_> = columns.into_iter().zip(names).collect();
    let replaced = ProjectionExec::try_new_with_schema_metadata(columns, joined, &schema)?;
    Ok(have_same_types(&replaced, join).then(|| Arc::new(replaced) as _))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    #[tokio::test]
    async fn rows_of_tables_are_looked_up() {
        let query = "SELECT t.hour, h.height FROM t JOIN heights h
            ON t.station = h.station AND t.value > h.height";
        insta::assert_snapshot!(rewritten(query, look_up_rows).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[hour@0 as hour, height@4 as height]
    ProjectionExec: expr=[hour@2 as hour, station@3 as station, value@4 as value, station@0 as station, height@1 as height]
      ProjectionExec: expr=[station@3 as station, height@4 as height, hour@0 as hour, station@1 as station, value@2 as value]
        FilterExec: CAST(value@2 AS Float64) > height@4
          GridLookupExec: join_type=Inner, on=[(station@0, station@1)], dataset=test, chunks=32/32, projection=[hour, station, value, station, height]
            DataSourceExec: partitions=1, partition_sizes=[1]
"#);
    }

    #[tokio::test]
    async fn other_joins_stay() {
        let on_value = "SELECT hour, height FROM t JOIN heights h ON t.value = h.height";
        // These return rows of the table that no cell has.
        let outer = "SELECT hour, height FROM heights h LEFT JOIN t ON t.station = h.station";
        let without = "SELECT height FROM heights h WHERE station NOT IN (SELECT station FROM t)";
        let crossed = "SELECT hour, height FROM t JOIN heights h ON t.value > h.height";
        let tables = "SELECT a.height FROM heights a JOIN heights b ON a.station = b.station";
        for query in [on_value, outer, without, crossed, tables] {
            assert_eq!(rewritten(query, look_up_rows).await, None, "{query}");
        }
    }

    #[tokio::test]
    async fn large_tables_of_labels_stay_joins() {
        let query = "SELECT hour, height FROM t JOIN heights h ON t.station = h.station";
        let looked_up = |bytes: usize| {
            rewritten(query, move |plan, config| {
                let mut config = config.clone();
                config.optimizer.reduce_memory = bytes;
                look_up_rows(plan, &config)
            })
        };
        // Four stations in two partitions, with a row number of 4 bytes each.
        assert!(looked_up(32).await.is_some());
        assert_eq!(looked_up(31).await, None);
    }
}
