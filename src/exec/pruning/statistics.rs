//! [`ChunkStatistics`]: what is known of chunks before they are read, and which a predicate rules out.
//!
//! The labels of each chunk lie between a least and a greatest one, and so do its values where the
//! writer noted them. DataFusion's `PruningPredicate` tells for many chunks at once whether the
//! predicate may hold there:
//!
//! ```text
//!   chunk   time          station   value          time > '2024-03-01' AND value > 300 OR station = 'A'
//!   (0, 0)  01-01..01-31  A..C      250..310       may hold
//!   (0, 1)  01-01..01-31  D..F      250..310       cannot
//!   (3, 1)  04-01..04-30  D..F      280..295       cannot
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::NegativeExpr;
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};

use super::containers::ContainerStatistics;
use super::zones::{ChunksToRead, worthwhile_zones};
use crate::array::{ColumnSource, GridArray};
use crate::format::{Bound, Zones};
use crate::grid::AxisSelection;
use crate::plan::touched_chunks;

/// What is known of the chunks that a selection touches, as far as some columns go.
#[derive(Debug)]
pub(super) struct ChunkStatistics {
    array: Arc<GridArray>,
    /// The axes by whose chunks statistics differ.
    axes: Vec<usize>,
    /// Per such axis the chunk coordinates that the selection touches.
    touched: Vec<Vec<u64>>,
    labels: Vec<LabelBounds>,
    values: Vec<ValueZones>,
    /// The columns, by name.
    schema: SchemaRef,
}

/// The least and the greatest label of each touched chunk of an axis.
#[derive(Debug)]
struct LabelBounds {
    name: String,
    /// Which of the statistics' axes it is.
    at: usize,
    least: ArrayRef,
    greatest: ArrayRef,
    /// Whether a label is NULL, which bounds do not say.
    may_be_null: bool,
}

/// What the writer noted about a value.
#[derive(Debug)]
struct ValueZones {
    name: String,
    value: usize,
    zones: Arc<dyn Zones>,
}

/// Chunks, each as its indices among the touched ones of each axis of some statistics.
#[derive(Debug, Clone)]
pub(super) struct ChunkIndices(Vec<UInt64Array>);

impl ChunkStatistics {
    /// Gathers what is known of `columns`, which are those of `schema`. Axes of which no column says
    /// anything are left out, unless a value is noted for single chunks.
    pub(super) async fn gather(
        array: &Arc<GridArray>,
        chunks: ChunksToRead<'_>,
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

    /// Whether anything is known of a value.
    pub(super) fn know_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether anything is known at all.
    pub(super) fn know_anything(&self) -> bool {
        !self.labels.is_empty() || self.know_values()
    }

    /// The axes by whose chunks statistics differ.
    pub(super) fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// How many combinations of touched chunks there are along the axes; `None` if too many to count.
    pub(super) fn combinations(&self) -> Option<usize> {
        self.touched.iter().try_fold(1_usize, |product, chunks| product.checked_mul(chunks.len()))
    }

    /// Every combination of touched chunks, in row-major order.
    pub(super) fn all_chunks(&self) -> ChunkIndices {
        let combinations = self.combinations().unwrap_or(0);
        let mut inner = combinations;
        let repeated = self.touched.iter().map(|chunks| {
            let mut indices = Vec::with_capacity(combinations);
            inner /= chunks.len().max(1);
            while indices.len() < combinations {
                (0..chunks.len() as u64).for_each(|at| indices.resize(indices.len() + inner, at));
            }
            UInt64Array::from(indices)
        });
        ChunkIndices(repeated.collect())
    }

    /// The chunks at these coordinates, which must be touched ones.
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
                Err(_) => return internal_err!("a chunk that the selection does not touch"),
            }
        }
        Ok(ChunkIndices(indices))
    }

    /// The predicate in terms of what can be known, or `None` if it rules out nothing.
    pub(super) fn predicate(&self, predicate: PhysicalExprRef) -> Option<Arc<PruningPredicate>> {
        if negates_integers(&predicate, &self.schema) {
            return None;
        }
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.schema));
        builder.build(predicate).filter(|predicate| !predicate.always_true())
    }

    /// For which chunks `predicate` may hold; `None` if it may for all.
    pub(super) fn prune(
        &self,
        predicate: &PruningPredicate,
        chunks: &ChunkIndices,
    ) -> Option<Vec<bool>> {
        // Pruning is an extra: what fails here may well succeed on rows.
        let kept = self.containers(chunks).and_then(|known| predicate.prune(&known));
        match kept {
            Ok(keep) if keep.iter().all(|&keep| keep) => None,
            Ok(keep) => Some(keep),
            Err(error) => {
                log::debug!("no chunk is pruned by {}: {error}", predicate.orig_expr());
                None
            }
        }
    }

    /// The least and greatest value or label of each chunk, and how many NULLs it has where that is
    /// noted, if the statistics are of one column.
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

    fn containers(&self, chunks: &ChunkIndices) -> Result<ContainerStatistics> {
        let count = chunks.len();
        let mut known = ContainerStatistics { chunks: count, ..ContainerStatistics::default() };
        for LabelBounds { name, at, least, greatest, may_be_null } in &self.labels {
            let indices = &chunks.0[*at];
            let bounds = (take(least, indices, None)?, take(greatest, indices, None)?);
            known.bounds.insert(name.clone(), bounds);
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
            match self.noted(of_value, &numbers) {
                Ok((bounds, null_counts)) => {
                    known.bounds.insert(name.clone(), bounds);
                    known.null_counts.insert(name, null_counts);
                }
                Err(error) => log::debug!("bounds of \"{name}\" prune nothing: {error}"),
            }
        }
        known.cells = Some(self.cells(chunks));
        Ok(known)
    }

    /// What is noted about the chunks of these numbers: least, greatest, and the count of NULLs.
    fn noted(
        &self,
        of_value: &ValueZones,
        numbers: &[u64],
    ) -> crate::Result<((ArrayRef, ArrayRef), UInt64Array)> {
        let mut pairs: Vec<Option<(Bound, Bound)>> = Vec::with_capacity(numbers.len());
        let null_counts = numbers.iter().map(|&number| {
            let zone = of_value.zones.zone(number);
            pairs.push(zone.as_ref().and_then(|zone| zone.bounds));
            zone.map(|zone| zone.null_count)
        });
        let null_counts: UInt64Array = null_counts.collect();
        let bounds = |pick: fn((Bound, Bound)) -> Bound| {
            self.array.value(of_value.value).bounds(pairs.iter().map(|pair| pair.map(pick)))
        };
        Ok(((bounds(|pair| pair.0)?, bounds(|pair| pair.1)?), null_counts))
    }

    /// The row-major numbers of chunks; the statistics must be of all axes.
    fn chunk_numbers(&self, chunks: &ChunkIndices) -> Vec<u64> {
        let mut numbers = vec![0; chunks.len()];
        let of_axes = chunks.0.iter().zip(&self.touched).zip(self.array.grid().chunks_per_axis());
        for ((indices, touched), len) in of_axes {
            for (number, &at) in numbers.iter_mut().zip(indices.values()) {
                *number = *number * len + touched[at as usize];
            }
        }
        numbers
    }

    /// The cells of chunks; the statistics must be of all axes.
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
    /// How many chunks; one, of all the array, if statistics differ along no axis.
    fn len(&self) -> usize {
        self.0.first().map_or(1, |indices| indices.len())
    }
}

/// Reads the zone maps of the value columns among `columns`.
async fn value_zones(
    array: &GridArray,
    chunks: ChunksToRead<'_>,
    columns: &[ColumnSource],
    schema: &SchemaRef,
) -> Vec<ValueZones> {
    let mut values = Vec::new();
    for (column, field) in columns.iter().zip(schema.fields()) {
        // What is noted of elements is not comparable with what a column computes from them.
        let as_stored = |value: &usize| array.value(*value).is_as_stored();
        let Some(value) = column.value().filter(as_stored) else { continue };
        if let Some(zones) = worthwhile_zones(array, value, chunks).await {
            values.push(ValueZones { name: field.name().clone(), value, zones });
        }
    }
    values
}

/// Whether an integer is negated. DataFusion prunes by `-x < a` as by `x > -a`, which is not the same for
/// the least integer: it is its own negative.
fn negates_integers(predicate: &PhysicalExprRef, schema: &SchemaRef) -> bool {
    let negates = predicate.exists(|expr| {
        let Some(negated) = expr.downcast_ref::<NegativeExpr>() else { return Ok(false) };
        Ok(negated.arg().data_type(schema)?.is_signed_integer())
    });
    !matches!(negates, Ok(false))
}

/// The least and greatest label of each touched chunk of `axis`.
fn extremes(
    array: &GridArray,
    selection: &AxisSelection,
    column: ColumnSource,
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
            labels.extremes(&selection.within(range.clone()), range.start)
        })
        .collect::<crate::Result<Vec<_>>>()?;
    let least = labels.at(extremes.iter().map(|pair| pair.map(|(least, _)| least)));
    let greatest = labels.at(extremes.iter().map(|pair| pair.map(|(_, greatest)| greatest)));
    Ok((least?, greatest?))
}
