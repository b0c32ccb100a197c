//! In which order a scan yields its rows, and which columns have one value throughout.
//!
//! Chunks come in row-major order of their grid, and the cells of a chunk in row-major order. Taken
//! together that is an order of rows by dimensions only where no chunk boundary gets in the way:
//!
//! ```text
//!   one chunk across:   time 0 0 0 1 1 1 │ 2 2 2 3 3 3       rows are in order of time, station
//!   two chunks across:  time 0 0 1 1 │ 0 0 1 1 │ 2 2 …       they are not: times come back
//! ```

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{AcrossPartitions, ConstExpr, PhysicalSortExpr};

use super::to_datafusion;
use crate::scan::{Column, GridArray, LabelOrder, ScanPlan};

/// What is known of the rows that `plan` yields, as `columns` show them.
pub(super) fn equivalences(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[Column],
    schema: &SchemaRef,
) -> Result<EquivalenceProperties> {
    let mut known = EquivalenceProperties::new(Arc::clone(schema));
    let physical = |at: usize| Arc::new(PhysicalColumn::new(schema.field(at).name(), at));
    for (at, column) in columns.iter().enumerate() {
        if let Some(value) = constant(array, plan, *column)? {
            let expr = ConstExpr::new(physical(at), AcrossPartitions::Uniform(Some(value)));
            known.add_constants([expr])?;
        }
    }
    // By labels, and by indices: either may be asked for.
    for of_axis in [Column::Label as fn(usize) -> Column, Column::Index] {
        let ordering = ordered(array, plan, of_axis).into_iter().map_while(|(column, options)| {
            let at = columns.iter().position(|it| *it == column)?;
            Some(PhysicalSortExpr::new(physical(at), options))
        });
        let ordering: Vec<PhysicalSortExpr> = ordering.collect();
        if !ordering.is_empty() {
            known.add_ordering(ordering);
        }
    }
    Ok(known)
}

/// The only value of a dimension column, if it has only one.
fn constant(array: &GridArray, plan: &ScanPlan, column: Column) -> Result<Option<ScalarValue>> {
    let (Some(axis), Some(labels)) = (column.axis(), array.labels_of(column)) else {
        return Ok(None);
    };
    let selection = &plan.selection().axes()[axis];
    if selection.count() != 1 {
        return Ok(None);
    }
    let label = labels.select(selection, 0).map_err(to_datafusion)?;
    ScalarValue::try_from_array(&label, 0).map(Some)
}

/// The columns of leading axes by which rows are in order, and how; an axis with one element needs no
/// place in it.
fn ordered(
    array: &GridArray,
    plan: &ScanPlan,
    of_axis: fn(usize) -> Column,
) -> Vec<(Column, SortOptions)> {
    let mut ordering = Vec::new();
    for axis in 0..plan.ordered_axes() {
        if plan.selection().axes()[axis].count() == 1 {
            continue;
        }
        let column = of_axis(axis);
        let descending = match array.labels_of(column).map(|labels| labels.order()) {
            Some(LabelOrder::Ascending) => false,
            Some(LabelOrder::Descending) => true,
            Some(LabelOrder::Unsorted) | None => break,
        };
        ordering.push((column, SortOptions { descending, nulls_first: false }));
    }
    ordering
}
