//! [`ChunkStatistics`]: bounds of labels and values, by which a predicate excludes chunks before they are
//! read.
//!
//! Each chunk has a least and a greatest label per dimension, and a least and a greatest value per
//! variable if the writer stored them. DataFusion's `PruningPredicate` decides for many chunks at once
//! whether the predicate may hold there:
//!
//! ```text
//!   chunk   time          station   value          time > '2024-03-01' AND value > 300 OR station = 'A'
//!   (0, 0)  01-01..01-31  A..C      250..310       may hold
//!   (0, 1)  01-01..01-31  D..F      250..310       cannot
//!   (3, 1)  04-01..04-30  D..F      280..295       cannot
//! ```
//!
//! Labels are bounded per chunk coordinate of their axis, not per chunk: 64 × 64 chunks need 64 + 64
//! pairs. The bounds of some chunks are then taken from these by position:
//!
//! ```text
//!   touched      axis 0: chunks 0 2 3      axis 1: chunks 1 4
//!   least        axis 0: Jan Mar Apr       axis 1: D K
//!   chunks (0, 4), (3, 1)      positions   axis 0: 0 2     axis 1: 1 0
//!                              least       axis 0: Jan Apr axis 1: K D
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{CastExpr, NegativeExpr};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};

use super::containers::ContainerStatistics;
use super::zones::{ReadExtent, worthwhile_zones};
use crate::array::{ColumnSource, GridArray, ValueBounds, failed_to, with_both_zeros};
use crate::format::{ZoneBound, Zones};
use crate::grid::AxisSelection;
use crate::plan::touched_chunks;

/// Statistics of some columns, for the chunks that a selection touches.
#[derive(Debug)]
pub(super) struct ChunkStatistics {
    array: Arc<GridArray>,
    /// The axes along which the statistics differ from chunk to chunk.
    axes: Vec<usize>,
    /// Per such axis, the chunk coordinates that the selection touches.
    touched: Vec<Vec<u64>>,
    labels: Vec<LabelBounds>,
    values: Vec<ValueZones>,
    /// The columns, by name.
    schema: SchemaRef,
}

/// The least and the greatest label of each touched chunk of an axis.
#[derive(Debug)]
struct LabelBounds {
    /// The name of the column.
    name: String,
    /// The position of the axis in `ChunkStatistics::axes`.
    at: usize,
    /// One label per touched chunk, as is `greatest`; NULL if the chunk has no selected label but NULL.
    least: ArrayRef,
    greatest: ArrayRef,
    /// Whether a label may be NULL, which bounds do not show.
    may_be_null: bool,
}

/// The stored chunk statistics of one variable.
#[derive(Debug)]
struct ValueZones {
    /// The name of the column.
    name: String,
    /// The number of the variable.
    value: usize,
    known: KnownBounds,
}

/// Statistics or bounds of the values of one variable, by row-major number of the chunk.
#[derive(Debug)]
enum KnownBounds {
    /// Statistics that the writer stored.
    Stored(Arc<dyn Zones>),
    /// Bounds that the source knows.
    Values(Arc<dyn ValueBounds>),
}

/// A list of chunks: per axis of the statistics, the position of each chunk among the touched ones. All
/// arrays have one entry per chunk of the list.
#[derive(Debug, Clone)]
pub(super) struct ChunkIndices(Vec<UInt64Array>);

impl ChunkStatistics {
    /// Gathers the statistics of `columns`, whose fields are in `schema`. Leaves out axes without a
    /// column, unless there are statistics of a variable, which differ along every axis.
    ///
    /// # Errors
    /// If labels cannot be compared. Zone maps that cannot be read only count as absent.
    pub(super) async fn gather(
        array: &Arc<GridArray>,
        chunks: ReadExtent<'_>,
        columns: &[ColumnSource],
        schema: SchemaRef,
    ) -> Result<Self> {
        let selection = chunks.selection;
        let values = value_zones(array, chunks, columns, &schema).await;
        let of_columns = |axis: &usize| columns.iter().any(|column| column.axis() == Some(*axis));
        let axes: Vec<usize> = (0..array.grid().rank())
            .filter(|axis| !values.is_empty() || of_columns(axis))
            .collect();
        let touched: Vec<Vec<u64>> =
            axes.iter().map(|&axis| touched_chunks(array.grid(), selection, axis)).collect();
        let mut labels = Vec::new();
        for (column, field) in columns.iter().zip(schema.fields()) {
            let of_column = axes.iter().position(|&axis| Some(axis) == column.axis());
            let Some(at) = of_column else { continue };
            let of_axis = &selection.axes()[axes[at]];
            let (least, greatest) = extremes(array, of_axis, *column, axes[at], &touched[at])?;
            let (name, may_be_null) = (field.name().clone(), field.is_nullable());
            labels.push(LabelBounds { name, at, least, greatest, may_be_null });
        }
        Ok(Self { array: Arc::clone(array), axes, touched, labels, values, schema })
    }

    /// Whether there are statistics of a variable.
    pub(super) fn know_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether there are statistics of any column.
    pub(super) fn know_anything(&self) -> bool {
        !self.labels.is_empty() || self.know_values()
    }

    /// Returns the axes along which the statistics differ from chunk to chunk.
    pub(super) fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Returns the number of combinations of touched chunks along these axes; `None` if it overflows.
    pub(super) fn combinations(&self) -> Option<usize> {
        self.touched.iter().try_fold(1_usize, |product, chunks| product.checked_mul(chunks.len()))
    }

    /// Returns every combination of touched chunks, in row-major order.
    pub(super) fn all_chunks(&self) -> ChunkIndices {
        let combinations = self.combinations().unwrap_or(0);
        let mut inner = combinations;
        let repeated = self.touched.iter().map(|chunks| {
            let mut indices = Vec::with_capacity(combinations);
            // Each position occurs `inner` times in succession, and the sequence repeats for outer axes.
            inner /= chunks.len().max(1);
            while indices.len() < combinations {
                (0..chunks.len() as u64).for_each(|at| indices.resize(indices.len() + inner, at));
            }
            UInt64Array::from(indices)
        });
        ChunkIndices(repeated.collect())
    }

    /// Finds the chunks at these coordinates, which must be touched ones.
    pub(super) fn indices_of<'a>(
        &self,
        chunks: &(impl Iterator<Item = &'a [u64]> + Clone),
    ) -> Result<ChunkIndices> {
        let mut indices = Vec::with_capacity(self.axes.len());
        for (&axis, touched) in self.axes.iter().zip(&self.touched) {
            let of_axis: std::result::Result<Vec<u64>, usize> = chunks
                .clone()
                .map(|chunk| touched.binary_search(&chunk[axis]).map(|at| at as u64))
                .collect();
            match of_axis {
                Ok(of_axis) => indices.push(UInt64Array::from(of_axis)),
                Err(_) => return internal_err!("the selection does not touch a chunk of the plan"),
            }
        }
        Ok(ChunkIndices(indices))
    }

    /// Translates a predicate into one on bounds; `None` if it cannot exclude a chunk. `value > 300`
    /// becomes "the greatest value is above 300", and parts that bounds do not decide become true.
    pub(super) fn predicate(&self, predicate: PhysicalExprRef) -> Option<Arc<PruningPredicate>> {
        on_bounds(predicate, &self.schema)
    }

    /// Returns for each chunk whether `predicate` may hold there; `None` if it may hold in all chunks.
    pub(super) fn prune(
        &self,
        predicate: &PruningPredicate,
        chunks: &ChunkIndices,
    ) -> Option<Vec<bool>> {
        // Pruning is optional: a predicate that fails on bounds may succeed on rows.
        let kept = self.containers(chunks).and_then(|known| predicate.prune(&known));
        match kept {
            Ok(keep) if keep.iter().all(|&keep| keep) => None,
            Ok(keep) => Some(keep),
            Err(error) => {
                log::debug!("cannot prune chunks by {}: {error}", predicate.orig_expr());
                None
            }
        }
    }

    /// Returns the least and greatest value or label of each chunk, and its number of NULLs where it is
    /// known. `None` if there are no bounds, or the statistics cover several columns.
    pub(super) fn bounds(
        &self,
        chunks: &ChunkIndices,
    ) -> Result<Option<(ArrayRef, ArrayRef, Option<UInt64Array>)>> {
        let mut known = self.containers(chunks)?;
        let [field] = self.schema.fields().as_ref() else { return Ok(None) };
        let nulls = known.null_counts.remove(field.name());
        let bounds = known.bounds.remove(field.name());
        Ok(bounds.map(|(least, greatest)| (least, greatest, nulls)))
    }

    /// Returns the statistics of these chunks, for DataFusion's pruning.
    fn containers(&self, chunks: &ChunkIndices) -> Result<ContainerStatistics> {
        let count = chunks.len();
        let mut known = ContainerStatistics { chunks: count, ..ContainerStatistics::default() };
        for LabelBounds { name, at, least, greatest, may_be_null } in &self.labels {
            let indices = &chunks.0[*at];
            let bounds = (take(least, indices, None)?, take(greatest, indices, None)?);
            known.bounds.insert(name.clone(), bounds);
            // Where labels may be NULL, their number is not known.
            if !may_be_null {
                known.null_counts.insert(name.clone(), UInt64Array::from(vec![0; count]));
            }
        }
        if self.values.is_empty() {
            return Ok(known);
        }
        let numbers = self.chunk_numbers(chunks);
        for of_value in &self.values {
            let name = of_value.name.clone();
            match self.stored_statistics(of_value, &numbers) {
                Ok((bounds, null_counts)) => {
                    known.bounds.insert(name.clone(), bounds);
                    known.null_counts.insert(name, null_counts);
                }
                Err(error) => log::debug!("cannot prune by the bounds of \"{name}\": {error}"),
            }
        }
        known.cells = Some(self.cells(chunks));
        Ok(known)
    }

    /// Returns the stored statistics of the chunks `numbers`: least and greatest values, and NULL counts.
    fn stored_statistics(
        &self,
        of_value: &ValueZones,
        numbers: &[u64],
    ) -> crate::Result<((ArrayRef, ArrayRef), UInt64Array)> {
        let column = self.array.value(of_value.value);
        let zones = match &of_value.known {
            KnownBounds::Stored(zones) => zones,
            KnownBounds::Values(bounds) => {
                let (least, greatest) = bounds.bounds(numbers)?;
                let in_type = |it: ArrayRef| {
                    cast(&it, &column.data_type()).map_err(failed_to("widen bounds"))
                };
                let bounds = with_both_zeros((in_type(least)?, in_type(greatest)?));
                // Where values may be NULL, their number is not known.
                return Ok((bounds, UInt64Array::new_null(numbers.len())));
            }
        };
        let mut pairs: Vec<Option<(ZoneBound, ZoneBound)>> = Vec::with_capacity(numbers.len());
        let null_counts = numbers.iter().map(|&number| {
            let zone = zones.zone(number);
            pairs.push(zone.as_ref().and_then(|zone| zone.bounds));
            zone.map(|zone| zone.null_count)
        });
        let null_counts: UInt64Array = null_counts.collect();
        let bounds = |pick: fn((ZoneBound, ZoneBound)) -> ZoneBound| {
            column.bounds(pairs.iter().map(|pair| pair.map(pick)))
        };
        Ok(((bounds(|pair| pair.0)?, bounds(|pair| pair.1)?), null_counts))
    }

    /// Returns the row-major numbers of chunks; the statistics must cover all axes.
    fn chunk_numbers(&self, chunks: &ChunkIndices) -> Vec<u64> {
        let mut numbers = vec![0; chunks.len()];
        let of_axes = chunks.0.iter().zip(&self.touched).zip(self.array.grid().chunks_per_axis());
        for ((indices, touched), len) in of_axes {
            for (number, &at) in numbers.iter_mut().zip(indices.values()) {
                // Horner's scheme: after the last axis, the number is the row-major one.
                *number = *number * len + touched[at as usize];
            }
        }
        numbers
    }

    /// Returns the number of cells of each chunk; the statistics must cover all axes.
    fn cells(&self, chunks: &ChunkIndices) -> ArrayRef {
        let mut cells = vec![1_u64; chunks.len()];
        for ((indices, touched), &axis) in chunks.0.iter().zip(&self.touched).zip(&self.axes) {
            let extent = |&chunk: &u64| {
                let range = self.array.grid().axis_range(axis, chunk);
                range.end - range.start
            };
            let extents: Vec<u64> = touched.iter().map(extent).collect();
            for (cells, &at) in cells.iter_mut().zip(indices.values()) {
                *cells *= extents[at as usize];
            }
        }
        Arc::new(UInt64Array::from(cells))
    }
}

impl ChunkIndices {
    /// Returns the number of chunks. Statistics without axes count the whole array as one chunk.
    fn len(&self) -> usize {
        self.0.first().map_or(1, |indices| indices.len())
    }
}

/// Reads the zone maps of the variables among `columns`, if they are worth reading.
async fn value_zones(
    array: &GridArray,
    chunks: ReadExtent<'_>,
    columns: &[ColumnSource],
    schema: &SchemaRef,
) -> Vec<ValueZones> {
    let mut values = Vec::new();
    for (column, field) in columns.iter().zip(schema.fields()) {
        if let Some(value) = column.value()
            && let Some(bounds) = array.value_bounds(value, chunks.selection).await
        {
            let (name, known) = (field.name().clone(), KnownBounds::Values(bounds));
            values.push(ValueZones { name, value, known });
            continue;
        }
        // Zone maps hold stored elements, which do not compare with values computed from elements.
        let as_stored = |value: &usize| array.value(*value).is_as_stored();
        let Some(value) = column.value().filter(as_stored) else { continue };
        if let Some(zones) = worthwhile_zones(array, value, chunks).await {
            let (name, known) = (field.name().clone(), KnownBounds::Stored(zones));
            values.push(ValueZones { name, value, known });
        }
    }
    values
}

/// Translates a predicate on rows of `schema` into one on bounds; `None` if it cannot exclude anything.
pub(crate) fn on_bounds(
    predicate: PhysicalExprRef,
    schema: &SchemaRef,
) -> Option<Arc<PruningPredicate>> {
    if negates_integers(&predicate, schema) || casts_go_round(&predicate, schema) {
        return None;
    }
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
    builder.build(predicate).filter(|predicate| !predicate.always_true())
}

/// Whether `predicate` negates an integer, or may do so. DataFusion prunes by `-x < a` as by `x > -a`. The
/// two differ for the least integer, which is its own negative.
fn negates_integers(predicate: &PhysicalExprRef, schema: &SchemaRef) -> bool {
    let negates = predicate.exists(|expr| {
        let Some(negated) = expr.downcast_ref::<NegativeExpr>() else { return Ok(false) };
        Ok(negated.arg().data_type(schema)?.is_signed_integer())
    });
    !matches!(negates, Ok(false))
}

/// Whether `predicate` casts times to times of day, or from one time zone to another. DataFusion compares the casts of the
/// bounds, as if all casts of times kept the order. But the time of day restarts each day.
fn casts_go_round(predicate: &PhysicalExprRef, schema: &SchemaRef) -> bool {
    let goes_round = predicate.exists(|expr| {
        let Some(cast) = expr.downcast_ref::<CastExpr>() else { return Ok(false) };
        let is_linear = |data_type: &DataType| {
            use DataType::{Date32, Date64, Timestamp};
            !data_type.is_temporal() || matches!(data_type, Timestamp(_, None) | Date32 | Date64)
        };
        let from = cast.expr().data_type(schema)?;
        Ok(from.is_temporal() && !(is_linear(&from) && is_linear(cast.cast_type())))
    });
    !matches!(goes_round, Ok(false))
}

/// Returns the least and the greatest selected label of each touched chunk of `axis`.
fn extremes(
    array: &GridArray,
    selection: &AxisSelection,
    column: ColumnSource,
    axis: usize,
    touched: &[u64],
) -> Result<(ArrayRef, ArrayRef)> {
    let Some(labels) = array.labels_of(column) else {
        return internal_err!("a variable has no labels");
    };
    let extremes = touched
        .iter()
        .map(|&chunk| {
            let range = array.grid().axis_range(axis, chunk);
            labels.extremes(&selection.within(range.clone()), range.start)
        })
        .collect::<crate::Result<Vec<_>>>()?;
    let least = labels.at(extremes.iter().map(|pair| pair.map(|(least, _)| least)));
    let greatest = labels.at(extremes.iter().map(|pair| pair.map(|(_, greatest)| greatest)));
    Ok((least?, greatest?))
}
