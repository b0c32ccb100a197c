//! Statistics of a scan's rows for the optimizer, before the scan runs.
//!
//! Row counts are exact, because a plan counts its cells. Minimum, maximum and distinct count of dimension
//! columns are exact while the rows are a whole selection. Under a mask or a limit some selected labels
//! may not occur, so these statistics are declared inexact.
//!
//! DataFusion answers `count(*)`, `min(time)` and `max(time)` from exact statistics without running the
//! scan. So a statistic that is declared exact must be right.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::error::Result;

use crate::array::{ColumnSource, GridArray, LabelOrder, Labels};
use crate::grid::AxisSelection;
use crate::plan::ScanPlan;

/// The greatest number of unsorted labels to examine. The optimizer requests statistics again and again,
/// so examining more labels costs more than it gains.
const MAX_LABELS_TO_EXAMINE: u64 = 1 << 16;

/// Returns the statistics of the output `columns`, of one partition or of all.
pub(super) fn statistics(
    array: &GridArray,
    plan: &ScanPlan,
    columns: &[ColumnSource],
    partition: Option<usize>,
) -> Result<Statistics> {
    let rows = plan.rows(partition);
    let num_rows = exact_count(rows);
    let whole = plan.is_selection() && (partition.is_none() || plan.partition_count() == 1);
    // A plan for many processes has many shares, and no optimizer sees them.
    let is_share = plan.is_share();
    let column_statistics = columns
        .iter()
        .map(|column| match (column.axis(), array.labels_of(*column)) {
            (Some(axis), Some(labels)) if rows > 0 && !is_share => {
                let exact = dimension(labels, &plan.selection().axes()[axis], rows)?;
                Ok(if whole { exact } else { exact.to_inexact() })
            }
            _ => Ok(ColumnStatistics::new_unknown()),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Statistics { num_rows, total_byte_size: byte_size(array, columns, rows), column_statistics })
}

/// Declares a count as exact; as absent if it does not fit.
fn exact_count(count: u64) -> Precision<usize> {
    usize::try_from(count).map_or(Precision::Absent, Precision::Exact)
}

/// Estimates the bytes of `rows` rows. Values of variable length count as views of 16 bytes.
fn byte_size(array: &GridArray, columns: &[ColumnSource], rows: u64) -> Precision<usize> {
    let width = |column: &ColumnSource| {
        let data_type = match (column.value(), array.labels_of(*column)) {
            (Some(value), _) => array.value(value).data_type(),
            (None, Some(labels)) => labels.data_type(),
            (None, None) => return 0,
        };
        data_type.primitive_width().unwrap_or(16) as u64
    };
    let row: u64 = columns.iter().map(width).sum();
    usize::try_from(rows.saturating_mul(row)).map_or(Precision::Absent, Precision::Inexact)
}

/// Returns exact statistics of a dimension column over `rows` rows, in which each selected label occurs
/// equally often.
fn dimension(labels: &Labels, selection: &AxisSelection, rows: u64) -> Result<ColumnStatistics> {
    let unsorted = labels.order() == LabelOrder::Unsorted;
    if unsorted && selection.count() > MAX_LABELS_TO_EXAMINE {
        return Ok(ColumnStatistics::new_unknown());
    }
    let Some((min, max)) = labels.extremes(selection, 0)? else {
        return Ok(ColumnStatistics::new_unknown());
    };
    let (nulls, distinct_count) = if unsorted {
        let labels = labels.select(selection, 0)?;
        // Each selected label occurs once per combination of the other axes.
        let repeats = rows / labels.len() as u64;
        (labels.null_count() as u64 * repeats, distinct(&labels)?)
    } else {
        // Sorted labels are strictly sorted: none is NULL, and none repeats.
        (0, exact_count(selection.count()))
    };
    let bounds = labels.at([Some(min), Some(max)].into_iter())?;
    Ok(ColumnStatistics {
        null_count: exact_count(nulls),
        min_value: Precision::Exact(value(&bounds, 0)?),
        max_value: Precision::Exact(value(&bounds, 1)?),
        distinct_count,
        ..ColumnStatistics::new_unknown()
    })
}

/// Counts the different labels, without NULL. The count of floats is absent, because DataFusion has its
/// own rule for signed zeros.
fn distinct(labels: &ArrayRef) -> Result<Precision<usize>> {
    if labels.data_type().is_floating() {
        return Ok(Precision::Absent);
    }
    let mut seen = HashSet::new();
    for at in (0..labels.len()).filter(|&at| labels.is_valid(at)) {
        seen.insert(value(labels, at)?);
    }
    Ok(Precision::Exact(seen.len()))
}

fn value(labels: &ArrayRef, at: usize) -> Result<ScalarValue> {
    ScalarValue::try_from_array(labels, at)
}
