//! Chunks that a predicate rules out, by what is known of them before they are read.
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

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column as ColumnName, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::NegativeExpr;
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};

use super::to_datafusion;
use crate::array::{Column, GridArray};
use crate::format::{Bound, Zones};
use crate::grid::{AxisSelection, Selection};
use crate::plan::touched_chunks;

/// What is known of the chunks that a selection touches, as far as some columns go.
#[derive(Debug)]
pub(crate) struct ChunkFacts {
    array: Arc<GridArray>,
    /// The axes by whose chunks facts differ.
    axes: Vec<usize>,
    /// Per such axis the chunk coordinates that the selection touches.
    touched: Vec<Vec<u64>>,
    labels: Vec<LabelFacts>,
    values: Vec<ValueFacts>,
    /// The columns, by name.
    schema: SchemaRef,
}

/// The least and the greatest label of each touched chunk of an axis.
#[derive(Debug)]
struct LabelFacts {
    name: String,
    /// Which of the facts' axes it is.
    place: usize,
    least: ArrayRef,
    greatest: ArrayRef,
    /// Whether a label is NULL, which bounds do not say.
    may_be_null: bool,
}

/// What the writer noted about a value.
#[derive(Debug)]
struct ValueFacts {
    name: String,
    value: usize,
    zones: Arc<dyn Zones>,
}

/// Chunks as places among the touched ones of each axis of some facts.
#[derive(Debug, Clone)]
pub(crate) struct Places(Vec<UInt64Array>);

impl ChunkFacts {
    /// Gathers what is known of `columns`, which are those of `schema`. Axes of which no column says
    /// anything are left out, unless a value is noted for single chunks.
    pub(crate) async fn gather(
        array: &Arc<GridArray>,
        selection: &Selection,
        columns: &[Column],
        schema: SchemaRef,
    ) -> Result<Self> {
        let mut values = Vec::new();
        for (column, field) in columns.iter().zip(schema.fields()) {
            let Some(value) = column.value() else { continue };
            if let Some(zones) = zones(array, selection, value).await {
                values.push(ValueFacts { name: field.name().clone(), value, zones });
            }
        }
        let of_columns = |axis: &usize| columns.iter().any(|column| column.axis() == Some(*axis));
        let axes: Vec<usize> = (0..array.grid().rank())
            .filter(|axis| !values.is_empty() || of_columns(axis))
            .collect();
        let touched: Vec<Vec<u64>> =
            axes.iter().map(|&axis| touched_chunks(array.grid(), selection, axis)).collect();
        let mut labels = Vec::new();
        for (column, field) in columns.iter().zip(schema.fields()) {
            let of_column = axes.iter().position(|&axis| Some(axis) == column.axis());
            let Some(place) = of_column else { continue };
            let of_axis = &selection.axes()[axes[place]];
            let (least, greatest) =
                extremes(array, of_axis, *column, axes[place], &touched[place])?;
            let (name, may_be_null) = (field.name().clone(), field.is_nullable());
            labels.push(LabelFacts { name, place, least, greatest, may_be_null });
        }
        Ok(Self { array: Arc::clone(array), axes, touched, labels, values, schema })
    }

    /// Whether anything is known of a value.
    pub(crate) fn know_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether anything is known at all.
    pub(super) fn know_anything(&self) -> bool {
        !self.labels.is_empty() || self.know_values()
    }

    /// The axes by whose chunks facts differ.
    pub(crate) fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// How many combinations of touched chunks there are along the axes; `None` if too many to count.
    pub(crate) fn combinations(&self) -> Option<usize> {
        self.touched.iter().try_fold(1_usize, |product, chunks| product.checked_mul(chunks.len()))
    }

    /// Every combination of touched chunks, in row-major order.
    pub(crate) fn everywhere(&self) -> Places {
        let combinations = self.combinations().unwrap_or(0);
        let mut inner = combinations;
        let repeated = self.touched.iter().map(|chunks| {
            let mut places = Vec::with_capacity(combinations);
            inner /= chunks.len().max(1);
            while places.len() < combinations {
                (0..chunks.len() as u64).for_each(|at| places.resize(places.len() + inner, at));
            }
            UInt64Array::from(places)
        });
        Places(repeated.collect())
    }

    /// The chunks at these coordinates, which must be touched ones.
    pub(crate) fn places_of<'a>(
        &self,
        chunks: &(impl Iterator<Item = &'a [u64]> + Clone),
    ) -> Result<Places> {
        let mut places = Vec::with_capacity(self.axes.len());
        for (&axis, touched) in self.axes.iter().zip(&self.touched) {
            let of_axis: std::result::Result<Vec<u64>, usize> = chunks
                .clone()
                .map(|chunk| touched.binary_search(&chunk[axis]).map(|at| at as u64))
                .collect();
            match of_axis {
                Ok(of_axis) => places.push(UInt64Array::from(of_axis)),
                Err(_) => return internal_err!("a chunk that the selection does not touch"),
            }
        }
        Ok(Places(places))
    }

    /// The predicate in terms of what can be known, or `None` if it rules out nothing.
    pub(crate) fn predicate(
        &self,
        predicate: Arc<dyn PhysicalExpr>,
    ) -> Option<Arc<PruningPredicate>> {
        if negates_integers(&predicate, &self.schema) {
            return None;
        }
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.schema));
        builder.build(predicate).filter(|predicate| !predicate.always_true())
    }

    /// For which chunks `predicate` may hold; `None` if it may for all.
    pub(crate) fn prune(&self, predicate: &PruningPredicate, places: &Places) -> Option<Vec<bool>> {
        // Pruning is an extra: what fails here may well succeed on rows.
        let kept = self.known(places).and_then(|known| predicate.prune(&known));
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
    /// noted, if the facts are of one column.
    pub(super) fn bounds(
        &self,
        places: &Places,
    ) -> Result<Option<(ArrayRef, ArrayRef, Option<UInt64Array>)>> {
        let mut known = self.known(places)?;
        let [field] = self.schema.fields().as_ref() else { return Ok(None) };
        let nulls = known.null_counts.remove(field.name());
        let bounds = known.bounds.remove(field.name());
        Ok(bounds.map(|(least, greatest)| (least, greatest, nulls)))
    }

    fn known(&self, places: &Places) -> Result<Known> {
        let count = places.0.first().map_or(1, |places| places.len());
        let mut known = Known { chunks: count, ..Known::default() };
        for LabelFacts { name, place, least, greatest, may_be_null } in &self.labels {
            let at = &places.0[*place];
            let bounds = (take(least, at, None)?, take(greatest, at, None)?);
            known.bounds.insert(name.clone(), bounds);
            if !may_be_null {
                known.null_counts.insert(name.clone(), UInt64Array::from(vec![0; count]));
            }
        }
        if self.values.is_empty() {
            return Ok(known);
        }
        let numbers = self.chunk_numbers(places);
        for facts in &self.values {
            let name = facts.name.clone();
            match self.noted(facts, &numbers) {
                Ok((bounds, null_counts)) => {
                    known.bounds.insert(name.clone(), bounds);
                    known.null_counts.insert(name, null_counts);
                }
                Err(error) => log::debug!("bounds of \"{name}\" prune nothing: {error}"),
            }
        }
        known.cells = Some(self.cells(places));
        Ok(known)
    }

    /// What is noted about the chunks of these numbers: least, greatest, and the count of NULLs.
    fn noted(
        &self,
        facts: &ValueFacts,
        numbers: &[u64],
    ) -> crate::Result<((ArrayRef, ArrayRef), UInt64Array)> {
        let mut pairs: Vec<Option<(Bound, Bound)>> = Vec::with_capacity(numbers.len());
        let null_counts = numbers.iter().map(|&number| {
            let zone = facts.zones.zone(number);
            pairs.push(zone.as_ref().and_then(|zone| zone.bounds));
            zone.map(|zone| zone.null_count)
        });
        let null_counts: UInt64Array = null_counts.collect();
        let bounds = |pick: fn((Bound, Bound)) -> Bound| {
            self.array.value(facts.value).bounds(pairs.iter().map(|pair| pair.map(pick)))
        };
        Ok(((bounds(|pair| pair.0)?, bounds(|pair| pair.1)?), null_counts))
    }

    /// The row-major numbers of chunks; the facts must be of all axes.
    fn chunk_numbers(&self, places: &Places) -> Vec<u64> {
        let mut numbers = vec![0; places.0.first().map_or(0, |places| places.len())];
        let of_axes = places.0.iter().zip(&self.touched).zip(self.array.grid().chunks_per_axis());
        for ((places, touched), len) in of_axes {
            for (number, &place) in numbers.iter_mut().zip(places.values()) {
                *number = *number * len + touched[place as usize];
            }
        }
        numbers
    }

    /// The cells of chunks; the facts must be of all axes.
    fn cells(&self, places: &Places) -> ArrayRef {
        let mut cells = vec![1_u64; places.0.first().map_or(0, |places| places.len())];
        for ((places, touched), &axis) in places.0.iter().zip(&self.touched).zip(&self.axes) {
            let extent = |&chunk: &u64| {
                let range = self.array.grid().axis_range(axis, chunk);
                range.end - range.start
            };
            let extents: Vec<u64> = touched.iter().map(extent).collect();
            for (cells, &place) in cells.iter_mut().zip(places.values()) {
                *cells *= extents[place as usize];
            }
        }
        Arc::new(UInt64Array::from(cells))
    }
}

/// Whether an integer is negated. DataFusion prunes by `-x < a` as by `x > -a`, which is not the same for
/// the least integer: it is its own negative.
fn negates_integers(predicate: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let negates = predicate.exists(|expr| {
        let Some(negated) = expr.downcast_ref::<NegativeExpr>() else { return Ok(false) };
        Ok(negated.arg().data_type(schema)?.is_signed_integer())
    });
    !matches!(negates, Ok(false))
}

/// What is noted about the chunks of `value`, if it can be compared with what SQL sees and reading it is
/// worthwhile for `selection`.
async fn zones(array: &GridArray, selection: &Selection, value: usize) -> Option<Arc<dyn Zones>> {
    let column = array.value(value);
    if !column.is_as_stored() {
        return None;
    }
    // Of chunks that are cut, all is read.
    let grid = array.grid();
    let touched = |axis: usize| {
        let extents = touched_chunks(grid, selection, axis).into_iter().map(|chunk| {
            let range = grid.axis_range(axis, chunk);
            range.end - range.start
        });
        extents.sum::<u64>()
    };
    let cells = (0..grid.rank()).map(touched).fold(1, u64::saturating_mul);
    array.zones(value, selection, cells.saturating_mul(column.cell_bytes())).await
}

/// The least and greatest label of each touched chunk of `axis`.
fn extremes(
    array: &GridArray,
    selection: &AxisSelection,
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
            labels.extremes(&selection.within(range.clone()), range.start)
        })
        .collect::<crate::Result<Vec<_>>>()
        .map_err(to_datafusion)?;
    let least = labels.at(extremes.iter().map(|pair| pair.map(|(least, _)| least)));
    let greatest = labels.at(extremes.iter().map(|pair| pair.map(|(_, greatest)| greatest)));
    Ok((least.map_err(to_datafusion)?, greatest.map_err(to_datafusion)?))
}

/// What is known of each of some chunks, by column.
#[derive(Default)]
struct Known {
    chunks: usize,
    /// Least and greatest.
    bounds: HashMap<String, (ArrayRef, ArrayRef)>,
    null_counts: HashMap<String, UInt64Array>,
    /// Cells, where facts are of single chunks.
    cells: Option<ArrayRef>,
}

impl PruningStatistics for Known {
    fn min_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(least, _)| Arc::clone(least))
    }

    fn max_values(&self, column: &ColumnName) -> Option<ArrayRef> {
        self.bounds.get(column.name()).map(|(_, greatest)| Arc::clone(greatest))
    }

    fn num_containers(&self) -> usize {
        self.chunks
    }

    fn null_counts(&self, column: &ColumnName) -> Option<ArrayRef> {
        let counts = self.null_counts.get(column.name())?;
        Some(Arc::new(counts.clone()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        self.cells.clone()
    }

    fn contained(&self, _: &ColumnName, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
