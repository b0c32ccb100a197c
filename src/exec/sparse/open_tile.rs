//! [`OpenTile`]: a tile of which some columns have been read.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Float32Type, Float64Type};
use datafusion::execution::memory_pool::MemoryReservation;

use super::plan::TileTask;
use crate::array::CellTimes;
use crate::error::Error;

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
    /// Per column of the table, its values once they are read.
    columns: Vec<Option<ArrayRef>>,
    /// The memory of what was read.
    pub(super) memory: MemoryReservation,
    is_read: bool,
}

impl OpenTile {
    /// Makes a tile of a table with this many columns, of which nothing has been read.
    pub(super) fn new(
        task: TileTask,
        rows: usize,
        columns: usize,
        memory: MemoryReservation,
    ) -> Self {
        let columns = vec![None; columns];
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

    pub(super) fn set(&mut self, column: usize, values: ArrayRef) {
        self.columns[column] = Some(values);
    }

    /// Returns the values of `columns`, which have been read.
    pub(super) fn values(&self, columns: &[usize]) -> crate::Result<Vec<ArrayRef>> {
        let values = columns.iter().map(|&column| self.columns[column].as_ref().map(Arc::clone));
        let values: Option<Vec<ArrayRef>> = values.collect();
        values.ok_or_else(|| Error::internal("a column of a tile that was not read"))
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

    /// Whether one of the first `rank` columns, the coordinates, holds NaN.
    pub(super) fn holds_nan(&self, rank: usize) -> bool {
        self.columns.iter().take(rank).flatten().any(|values| {
            let doubles = values.as_primitive_opt::<Float64Type>();
            let floats = values.as_primitive_opt::<Float32Type>();
            doubles.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
                || floats.is_some_and(|it| it.values().iter().any(|value| value.is_nan()))
        })
    }

    /// Returns the number of selected cells.
    pub(super) fn count(&self) -> usize {
        self.selected.as_ref().map_or(self.rows, BooleanBuffer::count_set_bits)
    }
}
