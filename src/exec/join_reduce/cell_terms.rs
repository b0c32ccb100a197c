//! [`TermValues`]: the values of the cell terms of a chunk.
//!
//! ```text
//!   value                    read from the tile, without a column
//!   value + 1, if u > 0      evaluated once for the chunk, if no cell can fail and many of its cells have a match
//!   100 / value              evaluated for cells with a match that fulfil the condition
//! ```

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, UInt64Array,
};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::cell_tiles::CellTile;
use super::join_part::JoinPart;
use super::products::{CellTerm, ProductPlan};
use crate::exec::chunks::OpenChunk;
use crate::exec::columns::over_columns;
use crate::exec::matching::may_fail;
use crate::exec::reduce::number_of;
use crate::reduce::{CellLanes, CellReader, LANES, TileCells, cell_reader};

/// How the values of each cell term are found.
pub(super) struct TermReaders {
    /// The variable of each term that is one, and its reader.
    readers: Vec<Option<(usize, Box<dyn CellReader>)>>,
}

/// The values of a cell term in a chunk.
pub(super) enum TermValues<'a> {
    /// 1 for each cell.
    Ones,
    /// The cells of a variable.
    Tile(Box<dyn TileCells + 'a>),
    /// The values of all selected cells; NULL for cells that do not count.
    Evaluated(Float64Array),
    /// They are evaluated for a few cells at a time.
    Gathered { term: &'a CellTerm, columns: &'a [ArrayRef] },
}

/// Some positions of a chunk, besides its cells.
pub(super) struct Positions<'a> {
    pub(super) selected: &'a [usize],
    pub(super) stored: &'a [usize],
}

impl TermReaders {
    pub(super) fn new(part: &JoinPart<'_>, plan: &ProductPlan) -> Self {
        let scan = &part.reduction.lookup.scan;
        let reader = |term: &CellTerm| {
            let value = term.value.as_ref().filter(|_| term.filter.is_none())?;
            let (value, _) = number_of(value, scan)?;
            let mut forms = scan.array().forms_of(value);
            let (only, None) = (forms.next()?, forms.next()) else { return None };
            Some((value, cell_reader(only.as_number()?)?))
        };
        Self { readers: plan.cells.iter().map(reader).collect() }
    }

    /// Returns per row term whether its products are only added, and are of ones and of variables that take blocks of cells.
    pub(super) fn in_place(&self, plan: &ProductPlan) -> Vec<bool> {
        let takes_blocks = |cell: usize| match (&plan.cells[cell], &self.readers[cell]) {
            (CellTerm { value: None, filter: None }, _) => true,
            (_, reader) => reader.as_ref().is_some_and(|(_, reader)| reader.takes_blocks()),
        };
        let products = || plan.products.iter().zip(&plan.requested);
        let of_row = |row: usize| {
            products().filter(|((_, it), _)| *it == row).all(|((cell, _), requested)| {
                takes_blocks(*cell) && !(requested.min || requested.max || requested.spread)
            })
        };
        (0..plan.rows.len()).map(of_row).collect()
    }

    /// Whether some term is evaluated over columns.
    pub(super) fn need_columns(&self, plan: &ProductPlan) -> bool {
        plan.cells.iter().zip(&self.readers).any(|(term, reader)| {
            reader.is_none() && (term.value.is_some() || term.filter.is_some())
        })
    }
}

/// Returns the values of each term in a chunk. `is_dense` tells whether many of its cells have a match.
pub(super) fn of_chunk<'a>(
    part: &JoinPart<'_>,
    plan: &'a ProductPlan,
    readers: &'a mut TermReaders,
    open: &'a OpenChunk,
    columns: &'a [ArrayRef],
    is_dense: bool,
) -> Result<Vec<TermValues<'a>>> {
    let terms = plan.cells.iter().zip(&mut readers.readers);
    let values = terms.map(|(term, reader)| match (term, reader) {
        (CellTerm { value: None, filter: None }, _) => Ok(TermValues::Ones),
        (_, Some((value, reader))) => {
            let of = open.tile(*value)?;
            Ok(TermValues::Tile(reader.open(&of.tile, of.may_hold_nulls)))
        }
        (term, None) if is_dense && !fails(part, term) => {
            Ok(TermValues::Evaluated(evaluate(part, term, columns.to_vec())?))
        }
        (term, None) => Ok(TermValues::Gathered { term, columns }),
    });
    values.collect()
}

/// Whether a term may be an error for a cell.
fn fails(part: &JoinPart<'_>, term: &CellTerm) -> bool {
    let schema = part.reduction.lookup.scan.schema_ref();
    [&term.value, &term.filter].into_iter().flatten().any(|it| may_fail(it, schema))
}

/// Evaluates a term over the columns that are read. NULL for rows that do not count.
fn evaluate(part: &JoinPart<'_>, term: &CellTerm, columns: Vec<ArrayRef>) -> Result<Float64Array> {
    let rows = columns.first().map_or(0, |it| it.len());
    let batch = part.batch(columns, rows)?;
    let passes = term.filter.as_ref().map(|filter| part.passing(filter, &batch)).transpose()?;
    // A condition keeps the value from being evaluated where it could fail.
    let counted = match &passes {
        Some(passes) => filter_record_batch(&batch, &BooleanArray::new(passes.clone(), None))?,
        None => batch,
    };
    let values = match &term.value {
        Some(value) => doubles(part, value, &counted)?,
        None => Float64Array::from(vec![1.0; counted.num_rows()]),
    };
    let Some(passes) = passes.filter(|_| values.len() < rows) else { return Ok(values) };
    let mut all = vec![None; rows];
    for (at, value) in passes.set_indices().zip(values.iter()) {
        all[at] = value;
    }
    Ok(all.into())
}

fn doubles(
    part: &JoinPart<'_>,
    value: &PhysicalExprRef,
    batch: &RecordBatch,
) -> Result<Float64Array> {
    let rows = batch.num_rows();
    let values = over_columns(value, &part.columns)?.evaluate(batch)?.into_array(rows)?;
    match values.data_type() {
        DataType::Float64 => Ok(values.as_primitive::<Float64Type>().clone()),
        other => internal_err!("a product of a {other}"),
    }
}

impl TermValues<'_> {
    /// The bytes that [`fill`](Self::fill) takes per cell, besides the lanes: per position the number of the element, and a copy of each
    /// column, of the columns' rows that count, and of the values.
    pub(super) fn bytes_per_cell(part: &JoinPart<'_>) -> usize {
        let value = size_of::<f64>() + 1;
        LANES * (size_of::<u64>() + value * (part.sources.len() + 4))
    }

    /// Fills in the values of a tile's cells at some positions. Lanes of ones stay empty.
    pub(super) fn fill(
        &self,
        part: &JoinPart<'_>,
        tile: &CellTile,
        positions: &Positions<'_>,
        lanes: &mut CellLanes,
    ) -> Result<()> {
        let count = positions.selected.len();
        match self {
            Self::Ones => {}
            Self::Tile(cells) => cells.read(&tile.stored, positions.stored, lanes)?,
            Self::Evaluated(values) => lanes.fill(tile.selected.len(), count, |cell, lane| {
                let at = tile.selected[cell] + positions.selected[lane];
                values.is_valid(at).then(|| values.value(at))
            }),
            Self::Gathered { term, columns } => {
                let at = tile.selected.iter();
                let at = at.flat_map(|cell| positions.selected.iter().map(move |it| cell + it));
                let at = UInt64Array::from_iter_values(at.map(|it| it as u64));
                let taken = columns.iter().map(|column| Ok(take(column, &at, None)?));
                let values = evaluate(part, term, taken.collect::<Result<_>>()?)?;
                lanes.fill(tile.selected.len(), count, |cell, lane| {
                    let at = cell * count + lane;
                    values.is_valid(at).then(|| values.value(at))
                });
            }
        }
        Ok(())
    }
}
