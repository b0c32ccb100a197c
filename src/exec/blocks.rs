//! The columns of a block of an opened chunk, for whoever makes rows: scans, and reductions with
//! accumulators.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::chunks::OpenChunk;
use crate::array::{ColumnSource, GridArray};
use crate::plan::{Assembler, Block};

/// The values among `columns`, each once.
pub(super) fn values_of(columns: &[ColumnSource]) -> Vec<usize> {
    let mut values: Vec<usize> = columns.iter().filter_map(|column| column.value()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// What `columns` show in the rows of a block.
pub(super) fn columns(
    array: &GridArray,
    assembler: &mut Assembler,
    columns: &[ColumnSource],
    open: &OpenChunk,
    block: &Block,
) -> Result<Vec<ArrayRef>> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for column in columns {
        arrays.push(match column {
            ColumnSource::Value(value) => values(array, *value, open, block)?,
            _ => assembler.dimension(*column, &open.task, block)?,
        });
    }
    Ok(arrays)
}

fn values(
    array: &GridArray,
    value: usize,
    open: &OpenChunk,
    block: &Block,
) -> crate::Result<ArrayRef> {
    let of = open.tile(value)?;
    let column = array.value(value).decode(&of.tile, &block.cells(&open.task), of.may_hold_nulls);
    column.map_err(|error| {
        let name = array.columns().iter().position(|column| *column == ColumnSource::Value(value));
        let name = name.map_or("", |at| array.schema().field(at).name());
        array.objects().named(error.about(&format!("column \"{name}\"")))
    })
}
