//! Value columns: decoded cells to SQL values.
//!
//! ```text
//!   Tile ──┬─ numbers ───▶ NumberColumn   NaN and fill are NULL, CF packing; the kernels reduce them
//!          └─ all else ──▶ CellColumn     truth values, dates, text, bytes, lists, enumerations
//! ```

mod cells;
mod declared;
mod number;
mod scalar;
mod temporal;
mod text;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

pub use cells::{CellColumn, CellKind};
pub(crate) use declared::declared_fill;
pub use number::NumberColumn;
pub(crate) use number::{Element, Form};
pub use scalar::Scalar;
pub(crate) use temporal::NOT_A_TIME;
pub use temporal::Temporal;
pub use text::Encoding;

use crate::error::Result;
use crate::format::Bound;
use crate::grid::AxisSelection;
use crate::tile::Tile;

/// How the cells of one value become a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueColumn {
    /// Numbers.
    Number(NumberColumn),
    /// Anything else.
    Cells(CellColumn),
}

impl ValueColumn {
    /// The column's type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Number(column) => column.data_type(),
            Self::Cells(column) => column.data_type(),
        }
    }

    /// Whether a cell can be NULL.
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Number(column) => column.is_nullable(),
            Self::Cells(column) => column.is_nullable(),
        }
    }

    /// The column as one of numbers, if it is.
    pub fn as_number(&self) -> Option<&NumberColumn> {
        match self {
            Self::Number(column) => Some(column),
            Self::Cells(_) => None,
        }
    }

    /// Whether values follow the order of the stored elements: numbers as they are, dates and times.
    pub fn is_as_stored(&self) -> bool {
        match self {
            Self::Number(column) => column.form() == Some(Form::Stored),
            Self::Cells(column) => column.is_temporal(),
        }
    }

    /// Stored elements as values of the column; NULL where there is none.
    ///
    /// # Errors
    /// Those of [`ValueColumn::decode`].
    pub fn bounds(&self, elements: impl Iterator<Item = Option<Bound>>) -> Result<ArrayRef> {
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

    /// Bytes of a decoded cell; an estimate for those of any length.
    pub fn cell_bytes(&self) -> u64 {
        match self {
            Self::Number(column) => column.element().size(),
            Self::Cells(column) => column.cell_bytes(),
        }
    }

    /// The column's values in the selected cells of a tile, in row-major order. `may_hold_nulls` is
    /// false where it is known that none of them is NULL, which saves the pass that looks for them.
    ///
    /// # Errors
    /// `Corrupt` if a cell is no value of the column's type; `Internal` if the selection does not fit
    /// the tile.
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
