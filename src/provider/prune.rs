//! Chunks that a predicate over several dimensions rules out.
//!
//! The labels of each chunk lie between a least and a greatest one, so DataFusion's
//! `PruningPredicate` can tell for each combination of chunks whether the predicate may hold there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::take;
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column as ColumnName, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use super::pushdown;
use crate::exec::to_datafusion;
use crate::grid::{Selection, unravel};
use crate::scan::{ChunkMask, Column, GridArray, touched_chunks};

/// More combinations of chunks than this are not examined.
const MAX_COMBINATIONS: usize = 1 << 20;

/// The chunks that may hold a row for `filter`, or `None` if nothing can be said.
pub(super) fn mask(
    filter: &Expr,
    array: &GridArray,
    selection: &Selection,
    state: &dyn Session,
) -> Result<Option<ChunkMask>> {
    let (columns, schema, predicate) = pushdown::physical(filter, array, state)?;
    let axes: Vec<usize> = columns
        .iter()
        .filter_map(|column| column.axis())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let touched: Vec<Vec<u64>> =
        axes.iter().map(|&axis| touched_chunks(array.grid(), selection, axis)).collect();
    let combinations =
        touched.iter().try_fold(1_usize, |product, chunks| product.checked_mul(chunks.len()));
    let Some(combinations) = combinations.filter(|&count| count <= MAX_COMBINATIONS) else {
        return Ok(None);
    };
    let Some(predicate) =
        PruningPredicateBuilder::new().with_file_schema(Arc::clone(&schema)).build(predicate)
    else {
        return Ok(None);
    };
    let mut bounds = HashMap::new();
    for (column, field) in columns.iter().zip(schema.fields()) {
        let Some(place) = axes.iter().position(|&axis| Some(axis) == column.axis()) else {
            continue;
        };
        let pair = bounds_of(array, selection, *column, axes[place], &touched[place])?;
        bounds.insert(field.name().clone(), spread(&pair, place, &touched)?);
    }
    // Pruning is an extra: what fails here may well succeed on rows.
    match predicate.prune(&ChunkBounds { combinations, bounds }) {
        Ok(keep) => Ok(Some(ChunkMask { axes, keep })),
        Err(error) => {
            log::debug!("chunks are not pruned by {filter}: {error}");
            Ok(None)
        }
    }
}

/// The least and greatest label of each touched chunk of `axis`.
fn bounds_of(
    array: &GridArray,
    selection: &Selection,
    column: Column,
    axis: usize,
    touched: &[u64],
) -> Result<(ArrayRef, ArrayRef)> {
    let Some(labels) = array.labels_of(column) else {
        return internal_err!("the value has no labels");
    };
    let extremes = touched
        .iter()
        .map(|&chunk| {
            let range = array.grid().axis_range(axis, chunk);
            labels.extremes(&selection.axes()[axis].within(range.clone()), range.start)
        })
        .collect::<crate::Result<Vec<_>>>()
        .map_err(to_datafusion)?;
    let least = labels.at(extremes.iter().map(|pair| pair.map(|(least, _)| least)));
    let greatest = labels.at(extremes.iter().map(|pair| pair.map(|(_, greatest)| greatest)));
    Ok((least.map_err(to_datafusion)?, greatest.map_err(to_datafusion)?))
}

/// Repeats bounds of one axis for every combination of chunks.
fn spread(
    bounds: &(ArrayRef, ArrayRef),
    place: usize,
    touched: &[Vec<u64>],
) -> Result<(ArrayRef, ArrayRef)> {
    let lens: Vec<u64> = touched.iter().map(|chunks| chunks.len() as u64).collect();
    let combinations: u64 = lens.iter().product();
    let at: UInt64Array =
        (0..combinations).map(|number| Some(unravel(number, &lens)[place])).collect();
    Ok((take(&bounds.0, &at, None)?, take(&bounds.1, &at, None)?))
}

/// Label bounds by column, one element per combination of chunks.
struct ChunkBounds {
    combinations: usize,
    bounds: HashMap<String, (ArrayRef, ArrayRef)>,
}

impl PruningStatistics for ChunkBounds {
    fn min_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(least, _)| Arc::clone(least))
    }

    fn max_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(_, greatest)| Arc::clone(greatest))
    }

    fn num_containers(&self) -> usize {
        self.combinations
    }

    fn null_counts(&self, _: &ColumnName) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _: &ColumnName, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
