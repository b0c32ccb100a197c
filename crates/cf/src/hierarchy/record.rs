//! Cells of several values: compounds of HDF5.
//!
//! ```text
//!   cell   ├─ station ─┤├ temp ┤├┈┈┈┈┈┈┤├─ pos.x ─┤├─ pos.y ─┤     a field is at an offset, and gaps belong to none
//!          0           8       12      16         24         32
//! ```

use super::cell_type::{CellType, REFERENCE};

/// The fields of a cell.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Bytes of a cell.
    pub width: u32,
    /// The fields that can be read, at least one.
    pub fields: Vec<RecordField>,
    /// The names of fields that cannot be read, with the reasons.
    pub left_out: Vec<(String, String)>,
}

/// A value of a cell.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordField {
    /// The name.
    pub name: String,
    /// The first byte of the value in the cell. If values have any length, a reference to the value is there.
    pub offset: u32,
    /// The type of the value.
    pub cell: CellType,
}

impl Record {
    /// Returns a cell of `width` bytes, with these fields, which lie within it.
    pub fn new(width: u32, fields: Vec<RecordField>, left_out: Vec<(String, String)>) -> Self {
        Self { width, fields, left_out }
    }
}

impl RecordField {
    /// Returns a field at an offset.
    pub fn new(name: String, offset: u32, cell: CellType) -> Self {
        Self { name, offset, cell }
    }

    /// Returns the bytes of a value; `None` if it has any length, or if a value in it does.
    pub fn width(&self) -> Option<u64> {
        self.cell.width().filter(|_| !self.cell.has_references())
    }

    /// Returns the bytes of the value in a cell, without the places of those that have any length; `None` if it has itself.
    pub fn of(&self, cell: &[u8]) -> Option<Vec<u8>> {
        let mut places = vec![];
        let width = usize::try_from(self.cell.references(0, &mut places)).ok()?;
        let mut value = cell.get(self.offset as usize..)?.get(..width)?.to_vec();
        for place in places {
            value.get_mut(place as usize..)?.get_mut(..REFERENCE as usize)?.fill(0);
        }
        self.cell.width().map(|_| value)
    }
}
