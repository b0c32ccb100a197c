//! The order of rows and the statistics that a sparse scan declares to DataFusion.
//!
//! The order is that of dimensions if all tiles are of one fragment and none is merged. The fragment must lie within one
//! tile extent on every axis but the leading one.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::execution_plan::EmissionType;

use super::plan::SparsePlan;
use crate::array::SparseArray;
use crate::exec::operator::declared;

/// Returns what the scan declares. Its rows are sorted if all of them come from one fragment, and the
/// fragment sorts its cells by coordinates.
pub(super) fn properties(
    array: &SparseArray,
    plan: &SparsePlan,
    projection: &[usize],
    schema: &SchemaRef,
) -> PlanProperties {
    let mut equivalences = EquivalenceProperties::new(Arc::clone(schema));
    let sorted = plan.single_fragment().and_then(|at| array.source().sorted_by(at));
    // The order ends with the first dimension that the query does not select.
    let keys = sorted.unwrap_or_default().into_iter().map_while(|axis| {
        let at = projection.iter().position(|&column| column == axis)?;
        let column = Arc::new(PhysicalColumn::new(schema.field(at).name(), at));
        Some(PhysicalSortExpr::new(column, SortOptions { descending: false, nulls_first: false }))
    });
    if let Some(ordering) = LexOrdering::new(keys) {
        equivalences.add_ordering(ordering);
    }
    let partitioning = Partitioning::UnknownPartitioning(plan.partition_count());
    declared(equivalences, partitioning, EmissionType::Incremental)
}

/// Returns the statistics of the rows, of one partition or of all. DataFusion answers `count(*)`, `min(x)` and
/// `max(x)` from exact ones without running the scan.
pub(super) fn statistics(
    array: &SparseArray,
    plan: &SparsePlan,
    projection: &[usize],
    partition: Option<usize>,
) -> Result<Statistics> {
    let is_whole = partition.is_none() || plan.partition_count() == 1;
    let cells = usize::try_from(plan.cells).unwrap_or(usize::MAX);
    let num_rows = match (is_whole, plan.limit) {
        (true, None) if plan.is_exact => Precision::Exact(cells),
        (true, limit) => Precision::Inexact(limit.unwrap_or(cells).min(cells)),
        (false, _) => Precision::Inexact(cells / plan.partition_count()),
    };
    let columns = projection.iter().map(|&column| match column < array.rank() {
        true if is_whole && plan.cells > 0 => coordinate(array, plan, column),
        _ => Ok(ColumnStatistics::new_unknown()),
    });
    let column_statistics = columns.collect::<Result<_>>()?;
    let width = usize::try_from(array.cell_bytes(projection)).unwrap_or(usize::MAX);
    let bytes = num_rows.get_value().map(|rows| Precision::Inexact(rows.saturating_mul(width)));
    Ok(Statistics { num_rows, total_byte_size: bytes.unwrap_or_default(), column_statistics })
}

/// Returns the statistics of a dimension: its bounds are those of the fragments that are read.
///
/// They are exact if no cell is hidden. Removing duplicates hides no coordinates.
fn coordinate(array: &SparseArray, plan: &SparsePlan, axis: usize) -> Result<ColumnStatistics> {
    let fragments = array.source().fragments();
    let tasks = plan.partitions.iter().flat_map(|tasks| {
        let merged = tasks.merges.iter().flat_map(|merge| &merge.tiles);
        tasks.tiles.iter().chain(merged)
    });
    let mut read: Vec<usize> = tasks.map(|task| task.tile.fragment).collect();
    read.sort_unstable();
    read.dedup();
    let bounds = array.source().fragment_bounds(&read)?;
    let (mut least, mut greatest): (Option<ScalarValue>, Option<ScalarValue>) = (None, None);
    for at in 0..read.len() {
        let low = ScalarValue::try_from_array(&bounds.least[axis], at)?;
        let high = ScalarValue::try_from_array(&bounds.greatest[axis], at)?;
        if low.is_null() || high.is_null() {
            return Ok(ColumnStatistics::new_unknown());
        }
        least = Some(least.filter(|least| *least <= low).unwrap_or(low));
        greatest = Some(greatest.filter(|greatest| *greatest >= high).unwrap_or(high));
    }
    let hides = |&at: &usize| fragments[at].may_be_deleted || fragments[at].may_be_outside;
    let is_everything = plan.filters.dimensions.is_none()
        && plan.filters.values.is_none()
        && plan.limit.is_none()
        && !read.iter().any(hides);
    let known = |value: Option<ScalarValue>| match value {
        Some(value) if is_everything => Precision::Exact(value),
        Some(value) => Precision::Inexact(value),
        None => Precision::Absent,
    };
    Ok(ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: known(least),
        max_value: known(greatest),
        ..ColumnStatistics::new_unknown()
    })
}
