//! In which order a scan yields its rows, and which ranges of labels its partitions are.
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
use datafusion::physical_expr::{
    LexOrdering, Partitioning, PhysicalSortExpr, RangePartitioning, SplitPoint,
};

use crate::array::{ColumnSource, GridArray, LabelOrder};
use crate::plan::ScanPlan;

/// The order of the rows that `plan` yields, as `columns` show them: the `ordering` that was pushed down or,
/// if
/// none was, that of the axes.
///
/// A dimension with one label is not declared a constant, but part of orders: DataFusion takes a constant
/// for one above an outer join too, where it may be NULL.
pub(super) fn equivalences(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    schema: &SchemaRef,
    ordering: &[PhysicalSortExpr],
) -> EquivalenceProperties {
    let mut known = EquivalenceProperties::new(Arc::clone(schema));
    if !ordering.is_empty() {
        // And nothing else: DataFusion does not find an order beside another one that begins alike.
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

/// The columns by which rows are in order, and how. An axis with one label could be anywhere in an order; it
/// is declared in its place and not at all. (Before all others too would be true, but DataFusion loses
/// orders that name each other's first key when it projects them.)
fn orderings(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
) -> Vec<Vec<(usize, SortOptions)>> {
    let is_single = |axis: usize| plan.selection().axes()[axis].count() == 1;
    let order = plan.order();
    let mut orderings = Vec::new();
    // By labels, and by indices: either may be asked for.
    for of_axis in [ColumnSource::Label as fn(usize) -> ColumnSource, ColumnSource::Index] {
        let key = |axis: usize| {
            let at = columns.iter().position(|column| *column == of_axis(axis))?;
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

/// How to read the leading axes so that rows are in `order`: per axis whether its index descends. `None`
/// if `order` is not one of axes, each once and from the first on.
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
            break; // a row for each combination of indices: nothing is left to order
        }
        let column = columns[key.expr.downcast_ref::<PhysicalColumn>()?.index()];
        let axis = column.axis()?;
        // An axis with one element is in every order.
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

/// The ranges of labels that partitions are, where they are such.
pub(super) fn partitioning(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    schema: &SchemaRef,
) -> Result<Partitioning> {
    let unknown = Partitioning::UnknownPartitioning(plan.partition_count());
    let key = plan.cut_along().and_then(|axis| {
        // Whichever order columns are in, the same one.
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
        // Tasks may come from the last index to the first.
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

/// Whether the labels of a dimension column descend along their axis; `None` if they are in no order.
fn descending(array: &GridArray, column: ColumnSource) -> Option<bool> {
    match array.labels_of(column)?.order() {
        LabelOrder::Ascending => Some(false),
        LabelOrder::Descending => Some(true),
        LabelOrder::Unsorted => None,
    }
}
