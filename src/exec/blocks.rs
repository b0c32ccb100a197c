//! Makes the columns of a block of an opened chunk, for scans and for reductions with accumulators.
//!
//! A value column is a view of the tile if the cells are one aligned run. For a raw chunk of a mapped file, it is a view of
//! the file. Otherwise it takes one copy per contiguous run. One vectorised pass searches for NULLs. If a trusted zone
//! map excludes NULLs, there is none.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::chunks::OpenChunk;
use super::compact::{compact, copied};
use crate::array::{ColumnSource, GridArray};
use crate::plan::{Assembler, Block};

/// Returns the numbers of the variables among `columns`, ascending, each once.
pub(super) fn values_of(columns: &[ColumnSource]) -> Vec<usize> {
    let mut values: Vec<usize> = columns.iter().filter_map(|column| column.value()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns the values of `columns` in the rows of a block, in the order of `columns`.
///
/// # Errors
/// If the reader did not read one of the variables, or the values do not fit their Arrow type. The
/// message names the column and the file.
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
            ColumnSource::Value(value) => {
                let of = open.tile(*value)?;
                let cells = block.cells(&open.task);
                array.column_of(*value, &of.tile, &cells, of.may_hold_nulls)?
            }
            _ => assembler.dimension(*column, &open.task, block)?,
        });
    }
    Ok(arrays)
}

/// Returns columns that keep neither the tile nor all labels of the chunk alive.
///
/// # Errors
/// If Arrow cannot copy a column.
pub(super) fn own_columns(
    columns: &[ColumnSource],
    arrays: Vec<ArrayRef>,
) -> Result<Vec<ArrayRef>> {
    let own = columns.iter().zip(arrays).map(|(column, array)| match column {
        ColumnSource::Value(_) => copied(&array),
        _ => compact(array),
    });
    Ok(own.collect::<Result<_, _>>()?)
}
