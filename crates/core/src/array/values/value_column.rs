//! The column of one variable, of numbers or of other cells.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::cells::CellColumn;
use super::number::{Form, NumberColumn};
use crate::error::Result;
use crate::format::ZoneBound;
use crate::grid::AxisSelection;
use crate::tile::Tile;

/// How the cells of one variable become a column.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ValueColumn {
    /// Numbers.
    Number(NumberColumn),
    /// Other cells.
    Cells(CellColumn),
}

impl ValueColumn {
    /// Returns the column's type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Number(column) => column.data_type(),
            Self::Cells(column) => column.data_type(),
        }
    }

    /// Whether a value may be NULL.
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Number(column) => column.is_nullable(),
            Self::Cells(column) => column.is_nullable(),
        }
    }

    /// Returns the column of cells with a validity byte each.
    pub(crate) fn with_validity(self) -> Self {
        match self {
            Self::Number(column) => Self::Number(column.with_validity()),
            Self::Cells(column) => Self::Cells(column.with_validity()),
        }
    }

    /// Returns the column of numbers; `None` for other cells.
    pub fn as_number(&self) -> Option<&NumberColumn> {
        match self {
            Self::Number(column) => Some(column),
            Self::Cells(_) => None,
        }
    }

    /// Whether values sort like the stored elements: numbers without packing or categories, dates and
    /// times.
    pub fn is_as_stored(&self) -> bool {
        match self {
            Self::Number(column) => column.form() == Some(Form::Stored),
            Self::Cells(column) => column.is_temporal(),
        }
    }

    /// Converts stored elements to values of the column; `None` becomes NULL.
    ///
    /// # Errors
    /// The errors of [`ValueColumn::decode`].
    pub fn bounds(&self, elements: impl Iterator<Item = Option<ZoneBound>>) -> Result<ArrayRef> {
        // The elements are decoded like a tile of one axis, so packing and NULL mean the same as in rows.
        let width = self.cell_bytes() as usize;
        let (mut cells, mut validity) = (Vec::new(), Vec::new());
        for element in elements {
            cells.extend_from_slice(&element.unwrap_or_default()[..width]);
            validity.push(u8::from(element.is_some()));
        }
        let count = validity.len() as u64;
        let tile = Tile::fixed(cells.into(), width).with_validity(Some(validity.into()));
        self.decode(&tile, &[AxisSelection::all(count)], true)
    }

    /// Returns the bytes of a decoded cell; an estimate for cells of any length.
    pub fn cell_bytes(&self) -> u64 {
        match self {
            Self::Number(column) => column.element().size(),
            Self::Cells(column) => column.cell_bytes(),
        }
    }

    /// Returns the values of the selected cells of a tile, in row-major order. `may_hold_nulls` may be
    /// false only if none of them is NULL. This saves the pass that looks for NULL.
    ///
    /// # Errors
    /// `Corrupt` if a list ends inside an item. `Usage` if text is not of its character set, which an option names.
    /// `Unsupported` if a date is beyond its Arrow type, or the batch is too large. `Internal` if the selection
    /// does not fit the tile.
    pub fn decode(
        &self,
        tile: &Tile,
        selection: &[AxisSelection],
        may_hold_nulls: bool,
    ) -> Result<ArrayRef> {
        let valid = if may_hold_nulls { tile.nulls(selection)? } else { None };
        match self {
            Self::Number(column) => {
                column.decode(tile.gather(selection)?, valid.as_ref(), may_hold_nulls)
            }
            Self::Cells(column) => column.decode(tile, selection, valid),
        }
    }
}
