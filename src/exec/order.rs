//! In which order a scan yields its rows, which columns have one value throughout, and which ranges of
//! labels its partitions are.
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
use datafusion::common::{Constraint, Constraints, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{
    AcrossPartitions, ConstExpr, LexOrdering, Partitioning, PhysicalSortExpr, RangePartitioning,
    SplitPoint,
};

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
    let orderings = orderings(array, plan, columns);
    let several = plan.selection().axes().iter().filter(|axis| axis.count() > 1).count();
    // One row for each combination of labels: what is ordered by all of them is ordered by anything else
    // after that.
    let by_all = orderings.iter().filter(|ordering| ordering.len() == several);
    let key = |ordering: &Vec<(usize, SortOptions)>| {
        Constraint::PrimaryKey(ordering.iter().map(|(at, _)| *at).collect())
    };
    known.set_constraints(Constraints::new_unverified(by_all.map(key).collect()));
    known.add_orderings(orderings.into_iter().map(|ordering| {
        let key = |(at, options)| PhysicalSortExpr::new(physical(at), options);
        ordering.into_iter().map(key).collect::<Vec<_>>()
    }));
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
/// place in it. An axis may be there by its labels or by its index, and either may be asked for.
fn orderings(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[Column],
) -> Vec<Vec<(usize, SortOptions)>> {
    /// Each axis may double them.
    const MAX_ORDERINGS: usize = 16;
    let mut orderings: Vec<Vec<(usize, SortOptions)>> = vec![vec![]];
    for (axis, backwards) in plan.order().into_iter().enumerate() {
        if plan.selection().axes()[axis].count() == 1 {
            continue;
        }
        let of_axis = columns.iter().enumerate().filter(|(_, column)| column.axis() == Some(axis));
        let mut keys: Vec<(usize, SortOptions)> = of_axis
            .filter_map(|(at, column)| {
                let descending = descending(array, *column)? != backwards;
                Some((at, SortOptions { descending, nulls_first: false }))
            })
            .collect();
        if keys.is_empty() {
            break;
        }
        keys.truncate(if orderings.len() < MAX_ORDERINGS { keys.len() } else { 1 });
        let with_key = |key: &(usize, SortOptions)| {
            let key = *key;
            orderings.iter().map(move |ordering| [ordering.as_slice(), &[key]].concat())
        };
        orderings = keys.iter().flat_map(with_key).collect();
    }
    orderings.retain(|ordering| !ordering.is_empty());
    orderings
}

/// How to read the leading axes so that rows are in `order`: per axis whether its index descends. `None`
/// if `order` is not one of axes.
pub(super) fn by_axes(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[Column],
    order: &[PhysicalSortExpr],
) -> Option<Vec<bool>> {
    let selection = plan.selection().axes();
    let mut backwards: Vec<bool> = Vec::new();
    for key in order {
        // An axis with one element is in every order.
        while selection.get(backwards.len()).is_some_and(|axis| axis.count() == 1) {
            backwards.push(false);
        }
        if backwards.len() == selection.len() {
            break; // a row for each combination of indices: nothing is left to order
        }
        let column = columns[key.expr.downcast_ref::<PhysicalColumn>()?.index()];
        let axis = column.axis()?;
        if axis > backwards.len() && selection[axis].count() > 1 {
            return None;
        }
        if axis == backwards.len() {
            backwards.push(descending(array, column)? != key.options.descending);
        }
    }
    Some(backwards)
}

/// The ranges of labels that partitions are, where they are such.
pub(super) fn partitioning(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[Column],
    schema: &SchemaRef,
) -> Result<Partitioning> {
    let unknown = Partitioning::UnknownPartitioning(plan.partition_count());
    let key = plan.cut_along().and_then(|axis| {
        let at = columns.iter().position(|column| column.axis() == Some(axis))?;
        Some((axis, at, descending(array, columns[at])?))
    });
    let Some((axis, at, descending)) = key else { return Ok(unknown) };
    let backwards = plan.reordered().is_some_and(|order| order.get(axis) == Some(&true));
    let options = SortOptions { descending: descending != backwards, nulls_first: false };
    let column = Arc::new(PhysicalColumn::new(schema.field(at).name(), at));
    let Some(ordering) = LexOrdering::new([PhysicalSortExpr::new(column, options)]) else {
        return Ok(unknown);
    };
    let Some(labels) = array.labels_of(columns[at]) else { return Ok(unknown) };
    let mut splits = Vec::with_capacity(plan.partition_count() - 1);
    for partition in 1..plan.partition_count() {
        let first = plan.task(plan.tasks(partition).start);
        let selected = first.selection[axis].ranges();
        let at = if backwards { selected.last() } else { selected.first() };
        let Some(range) = at else { return Ok(unknown) };
        let start = array.grid().axis_range(axis, first.coordinates[axis]).start;
        let index = start + if backwards { range.end - 1 } else { range.start };
        let label = labels.slice(index..index + 1).map_err(to_datafusion)?;
        splits.push(SplitPoint::new(vec![ScalarValue::try_from_array(&label, 0)?]));
    }
    Ok(Partitioning::Range(RangePartitioning::try_new(ordering, splits)?))
}

/// Whether the labels of a dimension column descend along their axis; `None` if they are in no order.
fn descending(array: &GridArray, column: Column) -> Option<bool> {
    match array.labels_of(column)?.order() {
        LabelOrder::Ascending => Some(false),
        LabelOrder::Descending => Some(true),
        LabelOrder::Unsorted => None,
    }
}
