//! Chunks that a predicate over several dimensions, or over values, rules out.
//!
//! The labels of each chunk lie between a least and a greatest one, and so do its values where the
//! writer noted them. DataFusion's `PruningPredicate` tells for each combination of chunks whether the
//! predicate may hold there.

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
use crate::format::{Bound, Zone, Zones};
use crate::grid::{Selection, ravel, unravel};
use crate::scan::{ChunkMask, Column, GridArray, touched_chunks};

/// More combinations of chunks than this are not examined.
const MAX_COMBINATIONS: usize = 1 << 20;

/// The chunks that may hold a row for `filter`, or `None` if nothing can be said.
pub(super) async fn mask(
    filter: &Expr,
    array: &GridArray,
    selection: &Selection,
    state: &dyn Session,
) -> Result<Option<ChunkMask>> {
    let (columns, schema, predicate) = pushdown::physical(filter, array, state)?;
    let values: Vec<usize> = columns.iter().filter_map(|column| column.value()).collect();
    let zones = Zoned::read(array, selection, &values).await;
    if !values.is_empty() && zones.is_empty() {
        return Ok(None);
    }
    let axes: Vec<usize> = if zones.is_empty() {
        let of_columns = columns.iter().filter_map(|column| column.axis());
        of_columns.collect::<BTreeSet<_>>().into_iter().collect()
    } else {
        (0..array.grid().rank()).collect() // zones are those of single chunks
    };
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
    let mut known = ChunkBounds { combinations, ..ChunkBounds::default() };
    for (column, field) in columns.iter().zip(schema.fields()) {
        let name = field.name().clone();
        if let Some(place) = axes.iter().position(|&axis| Some(axis) == column.axis()) {
            let pair = bounds_of(array, selection, *column, axes[place], &touched[place])?;
            known.bounds.insert(name, spread(&pair, place, &touched)?);
        } else if let Some(of_value) = zones.iter().find(|it| Some(it.value) == column.value()) {
            match of_value.of_chunks(array, &touched) {
                Ok((bounds, nulls)) => {
                    known.bounds.insert(name.clone(), bounds);
                    known.null_counts.insert(name, nulls);
                }
                Err(error) => log::debug!("bounds of \"{name}\" prune nothing: {error}"),
            }
        }
    }
    if !zones.is_empty() {
        known.cells = Some(cells_of_chunks(array, &touched));
    }
    // Pruning is an extra: what fails here may well succeed on rows.
    match predicate.prune(&known) {
        Ok(keep) if keep.iter().all(|&keep| keep) => Ok(None),
        Ok(keep) => Ok(Some(ChunkMask { axes, keep })),
        Err(error) => {
            log::debug!("chunks are not pruned by {filter}: {error}");
            Ok(None)
        }
    }
}

/// What the writer noted about the chunks of a value.
struct Zoned {
    value: usize,
    zones: Arc<dyn Zones>,
}

impl Zoned {
    /// Those of `values` of which something is noted.
    async fn read(array: &GridArray, selection: &Selection, values: &[usize]) -> Vec<Self> {
        let mut read = Vec::new();
        for &value in values {
            let column = array.value(value);
            let bytes = selection.cells().saturating_mul(column.cell_bytes());
            if !column.is_as_stored() {
                continue;
            }
            let zones = array.zones(value, bytes).await;
            read.extend(zones.map(|zones| Self { value, zones }));
        }
        read
    }

    /// Least and greatest value of each chunk of the cross product of `touched`, which is of all axes,
    /// and how many NULLs there are.
    fn of_chunks(
        &self,
        array: &GridArray,
        touched: &[Vec<u64>],
    ) -> crate::Result<((ArrayRef, ArrayRef), ArrayRef)> {
        let zones: Vec<Option<Zone>> = chunks_of(touched)
            .map(|chunk| self.zones.zone(ravel(&chunk, array.grid().chunks_per_axis())))
            .collect();
        let bounds = |pick: fn(&(Bound, Bound)) -> Bound| {
            let bounds = zones.iter().map(|zone| zone.as_ref()?.bounds.as_ref().map(pick));
            array.value(self.value).bounds(bounds)
        };
        let nulls = zones.iter().map(|zone| zone.as_ref().map(|zone| zone.null_count));
        let nulls: ArrayRef = Arc::new(nulls.collect::<UInt64Array>());
        Ok(((bounds(|pair| pair.0)?, bounds(|pair| pair.1)?), nulls))
    }
}

/// The coordinates of every chunk in the cross product of `touched`, in row-major order.
fn chunks_of(touched: &[Vec<u64>]) -> impl Iterator<Item = Vec<u64>> {
    let lens: Vec<u64> = touched.iter().map(|chunks| chunks.len() as u64).collect();
    (0..lens.iter().product()).map(move |place| {
        let at = unravel(place, &lens);
        at.iter().zip(touched).map(|(&at, chunks)| chunks[at as usize]).collect()
    })
}

fn cells_of_chunks(array: &GridArray, touched: &[Vec<u64>]) -> ArrayRef {
    let cells = chunks_of(touched).map(|chunk| array.grid().extents(&chunk).iter().product());
    Arc::new(UInt64Array::from_iter_values(cells))
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

/// What is known of each combination of chunks, by column.
#[derive(Default)]
struct ChunkBounds {
    combinations: usize,
    /// Least and greatest.
    bounds: HashMap<String, (ArrayRef, ArrayRef)>,
    null_counts: HashMap<String, ArrayRef>,
    /// Cells, where chunks are single ones.
    cells: Option<ArrayRef>,
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

    fn null_counts(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.null_counts.get(column.name()).cloned()
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        self.cells.clone()
    }

    fn contained(&self, _: &ColumnName, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
