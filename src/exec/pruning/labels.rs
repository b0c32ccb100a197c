//! Evaluates predicates over labels, which select indices of an axis.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use crate::array::{ColumnSource, GridArray};
use crate::grid::AxisSelection;

/// The number of labels evaluated at once. A long axis never has all its labels in memory twice.
const LABELS_PER_BATCH: u64 = 1 << 16;

/// Returns the indices among `candidates` for which `predicate` is true. The predicate is over `columns`,
/// which belong to one axis and have the fields of `schema`. Candidates are relative to index `start` of
/// that axis.
///
/// If the candidates are 3, 4 and 7, and the predicate is true for the second and the third, the result
/// is 4 and 7.
///
/// # Errors
/// If the predicate fails on a label, or is not a condition.
pub(super) fn select_labels(
    predicate: &PhysicalExprRef,
    array: &GridArray,
    columns: &[ColumnSource],
    schema: &SchemaRef,
    candidates: &AxisSelection,
    start: u64,
) -> Result<AxisSelection> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut done = 0;
    while done < candidates.count() {
        let end = (done + LABELS_PER_BATCH).min(candidates.count());
        let part = candidates.slice(done..end);
        let labels = columns
            .iter()
            .filter_map(|column| array.labels_of(*column))
            .map(|labels| labels.select(&part, start))
            .collect::<crate::Result<Vec<ArrayRef>>>()?;
        let batch = RecordBatch::try_new(SchemaRef::clone(schema), labels)?;
        // Runs of true rows are positions among the candidates of this part.
        for (from, to) in satisfied(predicate, &batch)?.set_slices() {
            ranges.extend_from_slice(part.slice(from as u64..to as u64).ranges());
        }
        done = end;
    }
    Ok(AxisSelection::from_ranges(candidates.len(), ranges))
}

/// Returns the rows of `batch` for which `predicate` is true, neither false nor NULL.
pub(crate) fn satisfied(predicate: &PhysicalExprRef, batch: &RecordBatch) -> Result<BooleanBuffer> {
    let result = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
    let Some(mask) = result.as_boolean_opt() else {
        return plan_err!("{predicate} has type {}, not Boolean", result.data_type());
    };
    Ok(match mask.nulls() {
        Some(valid) => mask.values() & valid.inner(),
        None => mask.values().clone(),
    })
}
