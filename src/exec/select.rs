//! The indices of an axis that a predicate over its labels selects.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::common::plan_err;
use datafusion::error::Result;

use super::columns::Expr;
use super::to_datafusion;
use crate::array::{Column, GridArray};
use crate::grid::AxisSelection;

/// Labels evaluated at once.
const LABELS_PER_BATCH: u64 = 1 << 16;

/// The indices among `candidates` for which `predicate` is true. It is over `columns`, which are of one
/// axis and those of `schema`; the candidates are of the part of that axis that begins at element
/// `start`.
pub(crate) fn select_labels(
    predicate: &Expr,
    array: &GridArray,
    columns: &[Column],
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
            .collect::<crate::Result<Vec<ArrayRef>>>()
            .map_err(to_datafusion)?;
        let batch = RecordBatch::try_new(SchemaRef::clone(schema), labels)?;
        for (from, to) in satisfied(predicate, &batch)?.set_slices() {
            ranges.extend_from_slice(part.slice(from as u64..to as u64).ranges());
        }
        done = end;
    }
    Ok(AxisSelection::from_ranges(candidates.len(), ranges))
}

/// The rows of `batch` for which `predicate` is true, neither false nor NULL.
pub(crate) fn satisfied(predicate: &Expr, batch: &RecordBatch) -> Result<BooleanBuffer> {
    let result = predicate.evaluate(batch)?.into_array(batch.num_rows())?;
    let Some(mask) = result.as_boolean_opt() else {
        return plan_err!("{predicate} is no condition: it is of type {}", result.data_type());
    };
    Ok(match mask.nulls() {
        Some(valid) => mask.values() & valid.inner(),
        None => mask.values().clone(),
    })
}
