//! The columns of a query that are dimensions: labels of an array, or keys of the topmost `GROUP BY`.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::Aggregate;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::array::{ColumnSource, LabelOrder};
use crate::exec::{GridReduceExec, GridScanExec};

/// A column that is a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DimensionColumn {
    pub(super) column: usize,
    /// The order of its labels.
    pub(super) order: SortOptions,
}

/// Where a column of a plan comes from: a number by which dimensions are sorted, and the order of labels.
type Origin = (usize, SortOptions);

const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

/// Returns the dimensions of a plan: the columns with these names, or else the labels of the array that is read, or else the keys of
/// the topmost aggregation.
///
/// # Errors
/// If a name is no column, or no column is a dimension.
pub(super) fn dimension_columns(
    plan: &Arc<dyn ExecutionPlan>,
    names: Option<&[String]>,
) -> Result<Vec<DimensionColumn>> {
    let schema = plan.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    let origin = |column: usize| origin(plan.as_ref(), column);
    if let Some(names) = names {
        let named = names.iter().map(|name| {
            let Some(column) = columns.iter().position(|it| it == name) else {
                return plan_err!("there is no column '{name}' among {}", columns.join(", "));
            };
            let order = origin(column).map_or(ASCENDING, |(_, order)| order);
            Ok(DimensionColumn { column, order })
        });
        return named.collect();
    }
    let found = (0..columns.len()).filter_map(|column| {
        let (number, order) = origin(column)?;
        Some((number, DimensionColumn { column, order }))
    });
    let mut found: Vec<(usize, DimensionColumn)> = found.collect();
    found.sort_by_key(|(number, _)| *number);
    if found.is_empty() {
        return plan_err!(
            "the columns {} have no dimension of an array and no key of GROUP BY; name the dimensions: OPTIONS (dimensions 'time, lat')",
            columns.join(", ")
        );
    }
    if found.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return plan_err!(
            "two of the columns {} are the same dimension; name the dimensions: OPTIONS (dimensions 'time, lat')",
            columns.join(", ")
        );
    }
    Ok(found.into_iter().map(|(_, dimension)| dimension).collect())
}

fn origin(plan: &dyn ExecutionPlan, column: usize) -> Option<Origin> {
    if let Some(scan) = plan.downcast_ref::<GridScanExec>() {
        let ColumnSource::Label(axis) = *scan.columns().get(column)? else { return None };
        let descending = scan.array().dims()[axis].labels().order() == LabelOrder::Descending;
        return Some((axis, SortOptions { descending, ..ASCENDING }));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return key(aggregate, column);
    }
    if let Some(reduction) = plan.downcast_ref::<GridReduceExec>() {
        return key(reduction.rows(), column);
    }
    let input = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        index(projection.expr().get(column)?.expr.as_ref())?
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        filter.projection().as_ref().map_or(Some(column), |kept| kept.get(column).copied())?
    } else if keeps_columns(plan) || is_window(plan) {
        // A window adds columns behind those of its input.
        column
    } else {
        return None;
    };
    match plan.children()[..] {
        [below] if input < below.schema().fields().len() => origin(below.as_ref(), input),
        _ => None,
    }
}

fn is_window(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

/// Returns the number of a key, unless there are grouping sets: their keys are NULL in some rows.
fn key(aggregate: &AggregateExec, column: usize) -> Option<Origin> {
    let groups = aggregate.group_expr();
    // The final stage has the number of the grouping set as a key.
    let has_sets = groups.expr().iter().any(|(_, name)| name == Aggregate::INTERNAL_GROUPING_ID);
    let is_key = column < groups.expr().len();
    (is_key && !has_sets && !groups.has_grouping_set()).then_some((column, ASCENDING))
}

fn index(expr: &dyn PhysicalExpr) -> Option<usize> {
    expr.downcast_ref::<PhysicalColumn>().map(PhysicalColumn::index)
}

fn keeps_columns(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
}
