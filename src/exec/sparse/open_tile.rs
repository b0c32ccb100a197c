//! [`OpenTile`]: a tile of which some columns have been read.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Float32Type, Float64Type};
use datafusion::execution::memory_pool::MemoryReservation;

use super::plan::TileTask;
use crate::array::{CellTimes, SparseArray};
use crate::error::Error;
use crate::tile::Tile;

/// A tile of which some columns have been read, and the cells of it that are still selected.
#[derive(Debug)]
pub(super) struct OpenTile {
    pub(super) task: TileTask,
    /// The number of cells.
    pub(super) rows: usize,
    /// The cells that filters and the time window leave; `None` for all.
    pub(super) selected: Option<BooleanBuffer>,
    /// The times of the cells; `None` if the fragment has one time for all, or if they were not needed.
    pub(super) times: Option<CellTimes>,
    /// Per column of the table, what was read of it.
    columns: Vec<Option<ReadColumn>>,
    /// The memory of what was read.
    pub(super) memory: MemoryReservation,
    is_read: bool,
}

/// A column of a tile. A merge compares stored coordinates, and often needs no values of them.
#[derive(Debug)]
enum ReadColumn {
    Decoded(Tile),
    Values(ArrayRef),
}

impl OpenTile {
    /// Makes a tile of a table with this many columns, of which nothing has been read.
    pub(super) fn new(
        task: TileTask,
        rows: usize,
        columns: usize,
        memory: MemoryReservation,
    ) -> Self {
        let columns = (0..columns).map(|_| None).collect();
        Self { task, rows, selected: None, times: None, columns, memory, is_read: false }
    }

    /// Whether this is the first call for the tile.
    pub(super) fn is_first_read(&mut self) -> bool {
        !std::mem::replace(&mut self.is_read, true)
    }

    /// Returns those of `columns` that have not been read.
    pub(super) fn missing(&self, columns: &[usize]) -> Vec<usize> {
        columns.iter().copied().filter(|&column| self.columns[column].is_none()).collect()
    }

    pub(super) fn set(&mut self, column: usize, decoded: Tile) {
        self.columns[column] = Some(ReadColumn::Decoded(decoded));
    }

    /// Returns the stored cells of `columns`, which have been read, and of which no values were made.
    pub(super) fn decoded(&self, columns: &[usize]) -> crate::Result<Vec<Tile>> {
        let decoded = |&column: &usize| match &self.columns[column] {
            Some(ReadColumn::Decoded(decoded)) => Ok(decoded.clone()),
            _ => Err(Error::internal("the cells of a column that are not as they were stored")),
        };
        columns.iter().map(decoded).collect()
    }

    /// Returns the values of `columns`, which have been read.
    ///
    /// # Errors
    /// As [`SparseArray::values`].
    pub(super) fn values(
        &mut self,
        array: &SparseArray,
        columns: &[usize],
    ) -> crate::Result<Vec<ArrayRef>> {
        columns.iter().map(|&column| self.value(array, column)).collect()
    }

    fn value(&mut self, array: &SparseArray, column: usize) -> crate::Result<ArrayRef> {
        let values = match &self.columns[column] {
            Some(ReadColumn::Values(values)) => return Ok(Arc::clone(values)),
            Some(ReadColumn::Decoded(decoded)) => array.values(self.task.tile, column, decoded)?,
            None => return Err(Error::internal("a column of a tile that was not read")),
        };
        self.columns[column] = Some(ReadColumn::Values(Arc::clone(&values)));
        Ok(values)
    }

    /// Leaves only the cells that are in `cells`. Returns the number of cells that it removes.
    pub(super) fn restrict(&mut self, cells: &BooleanBuffer) -> usize {
        let before = self.count();
        self.selected = Some(match &self.selected {
            Some(selected) => selected & cells,
            None => cells.clone(),
        });
        let after = self.count();
        if after == self.rows {
            self.selected = None;
        }
        before - after
    }

    /// Whether a coordinate is NaN.
    ///
    /// # Errors
    /// As [`OpenTile::values`].
    pub(super) fn holds_nan(&mut self, array: &SparseArray) -> crate::Result<bool> {
        let axes: Vec<usize> = (0..array.rank()).collect();
        let is_nan = |values: &ArrayRef| {
            let doubles = values.as_primitive_opt::<Float64Type>();
            let floats = values.as_primitive_opt::<Float32Type>();
            doubles.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
                || floats.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
        };
        Ok(self.values(array, &axes)?.iter().any(is_nan))
    }

    /// Returns the number of selected cells.
    pub(super) fn count(&self) -> usize {
        self.selected.as_ref().map_or(self.rows, BooleanBuffer::count_set_bits)
    }
}
