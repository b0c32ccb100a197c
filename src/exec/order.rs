//! The order of a scan's rows, and the label ranges of its partitions, as declared to DataFusion.
//!
//! Chunks come in row-major order of their grid, and the cells of a chunk in row-major order. Rows are
//! sorted by dimensions only where chunks do not lie side by side:
//!
//! ```text
//!   one chunk across:   time 0 0 0 1 1 1 │ 2 2 2 3 3 3       rows are in order of time, station
//!   two chunks across:  time 0 0 1 1 │ 0 0 1 1 │ 2 2 …       they are not: times occur again
//! ```

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{
    LexOrdering, Partitioning, PhysicalSortExpr, RangePartitioning, SplitPoint,
};
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::execution_plan::EmissionType;

use super::operator::declared;
use crate::array::{ColumnSource, GridArray, LabelOrder};
use crate::plan::ScanPlan;

/// Returns what an operator over a scan declares to DataFusion: the order of its rows, and whether its partitions are
/// ranges.
pub(super) fn properties(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    schema: &SchemaRef,
    ordering: &[PhysicalSortExpr],
) -> Result<PlanProperties> {
    Ok(declared(
        equivalences(array, plan, columns, schema, ordering),
        partitioning(array, plan, columns, schema)?,
        EmissionType::Incremental,
    ))
}

/// Returns the orders of the rows of `plan` in terms of `columns`: the pushed-down `ordering`, or else the
/// orders by axes.
///
/// A dimension with one label is part of orders, and not declared a constant. DataFusion would treat the
/// column as constant above an outer join too, where it may be NULL.
pub(super) fn equivalences(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    schema: &SchemaRef,
    ordering: &[PhysicalSortExpr],
) -> EquivalenceProperties {
    let mut known = EquivalenceProperties::new(Arc::clone(schema));
    if !ordering.is_empty() {
        // Declares no other order: DataFusion does not find one beside another with the same first keys.
        known.add_ordering(ordering.to_vec());
        return known;
    }
    let orderings = orderings(array, plan, columns).into_iter();
    known.add_orderings(orderings.filter(|ordering| !ordering.is_empty()).map(|ordering| {
        let key = |(at, options): (usize, SortOptions)| {
            let column = PhysicalColumn::new(schema.field(at).name(), at);
            PhysicalSortExpr::new(Arc::new(column), options)
        };
        ordering.into_iter().map(key).collect::<Vec<_>>()
    }));
    known
}

/// Returns the orders of the rows, each as columns with sort options. An axis with one label may stand
/// anywhere in an order. So one order has the axis in its place, and another leaves it out. (An order
/// that begins with the axis would be true too, but when DataFusion projects orders, it loses those that
/// contain each other's first key.)
///
/// An array over `time, station, level` with one station selected has two orders: `time, station, level`,
/// and `time, level`. The same hold for index columns. A column that the scan does not show ends an
/// order.
fn orderings(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
) -> Vec<Vec<(usize, SortOptions)>> {
    let is_single = |axis: usize| plan.selection().axes()[axis].count() == 1;
    let order = plan.order();
    let mut orderings = Vec::new();
    // A query may sort by labels or by indices.
    for of_axis in [ColumnSource::Label as fn(usize) -> ColumnSource, ColumnSource::Index] {
        let key = |axis: usize| {
            let at = columns.iter().position(|column| *column == of_axis(axis))?;
            // Labels that descend along the axis ascend in rows that are read backwards.
            let descending = match (is_single(axis), order.get(axis)) {
                (true, _) => false,
                (false, Some(backwards)) => descending(array, of_axis(axis))? != *backwards,
                (false, None) => return None,
            };
            Some((at, SortOptions { descending, nulls_first: false }))
        };
        let axes = 0..plan.grid().rank();
        let others = axes.clone().filter(|axis| !is_single(*axis)).map_while(key).collect();
        let in_place = axes.map(|axis| (key(axis), is_single(axis)));
        let in_place = in_place.take_while(|(key, is_single)| key.is_some() || *is_single);
        orderings.extend([in_place.filter_map(|(key, _)| key).collect(), others]);
    }
    orderings
}

/// Returns the directions of the leading axes that give rows in `order`: per axis, whether its index
/// descends. `None` unless `order` names axes with sorted labels in sequence, from the first on.
///
/// For an array over `time, station` whose labels ascend, `ORDER BY time DESC, station` gives
/// `[true, false]`. `ORDER BY station` gives `None`, unless one time is selected: then it gives
/// `[false, false]`.
pub(super) fn by_axes(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    order: &[PhysicalSortExpr],
) -> Option<Vec<bool>> {
    let selection = plan.selection().axes();
    let mut backwards: Vec<bool> = Vec::new();
    for key in order {
        if selection[backwards.len()..].iter().all(|axis| axis.count() == 1) {
            break; // the keys so far identify each row: later keys change nothing
        }
        let column = columns[key.expr.downcast_ref::<PhysicalColumn>()?.index()];
        let axis = column.axis()?;
        // An axis with one selected index fits into any order.
        while backwards.len() < axis && selection[backwards.len()].count() == 1 {
            backwards.push(false);
        }
        if axis != backwards.len() {
            return None;
        }
        let turns = match selection[axis].count() {
            1 if key.options.descending => return None,
            1 => false,
            _ => descending(array, column)? != key.options.descending,
        };
        backwards.push(turns);
    }
    Some(backwards)
}

/// Returns the partitioning by ranges of labels; an unknown one if partitions are not such ranges.
///
/// DataFusion describes ranges by the keys between them: `n` partitions have `n - 1` split points. Each
/// is the first label of the partition behind it.
fn partitioning(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    schema: &SchemaRef,
) -> Result<Partitioning> {
    let unknown = Partitioning::UnknownPartitioning(plan.partition_count());
    let key = plan.cut_along().and_then(|axis| {
        // Prefers labels to indices, so that the result does not depend on the order of columns.
        let of_axis = [ColumnSource::Label(axis), ColumnSource::Index(axis)];
        of_axis.iter().find_map(|column| {
            let at = columns.iter().position(|it| it == column)?;
            Some((axis, at, descending(array, *column)?))
        })
    });
    let Some((axis, at, descending)) = key else { return Ok(unknown) };
    let options = SortOptions { descending, nulls_first: false };
    let column = Arc::new(PhysicalColumn::new(schema.field(at).name(), at));
    let Some(ordering) = LexOrdering::new([PhysicalSortExpr::new(column, options)]) else {
        return Ok(unknown);
    };
    let Some(labels) = array.labels_of(columns[at]) else { return Ok(unknown) };
    let mut splits = Vec::with_capacity(plan.partition_count() - 1);
    for partition in 1..plan.partition_count() {
        // Tasks may run from the last index to the first.
        let tasks = plan.tasks(partition);
        let ends = tasks.ends().into_iter().flatten().map(|task| plan.task(task));
        let first = ends.min_by_key(|task| task.coordinates[axis]);
        let Some((task, range)) =
            first.as_ref().and_then(|task| Some((task, task.selection[axis].ranges().first()?)))
        else {
            return Ok(unknown);
        };
        let index = array.grid().axis_range(axis, task.coordinates[axis]).start + range.start;
        let label = labels.slice(index..index + 1)?;
        splits.push(SplitPoint::new(vec![ScalarValue::try_from_array(&label, 0)?]));
    }
    Ok(Partitioning::Range(RangePartitioning::try_new(ordering, splits)?))
}

/// Whether the labels of a dimension column descend along their axis; `None` if they are not sorted.
fn descending(array: &GridArray, column: ColumnSource) -> Option<bool> {
    match array.labels_of(column)?.order() {
        LabelOrder::Ascending => Some(false),
        LabelOrder::Descending => Some(true),
        LabelOrder::Unsorted => None,
    }
}
