//! Cells of several values: structs, and lists of other values than scalars.
//!
//! ```text
//!   cells    │ x y ┈ │ x y ┈ │ x y ┈ │      a struct of two fields, and a gap
//!   columns    x x x    y y y
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeListArray, StructArray};
use arrow::buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::{Field, FieldRef};
use bytes::Bytes;

use super::cells::CellColumn;
use crate::array::failed_to;
use crate::error::{Error, Result};

/// A field of cells that are structs. Its values have a fixed width; those of any length have it in [`CellKind::Packed`](super::CellKind::Packed).
#[derive(Debug, Clone, PartialEq)]
pub struct StructField {
    /// The name.
    pub name: String,
    /// The first byte of the value in a cell.
    pub offset: u32,
    /// How the value becomes a column.
    pub column: CellColumn,
}

impl StructField {
    /// Returns the field of the Arrow type.
    pub(super) fn field(&self) -> FieldRef {
        Arc::new(Field::new(&self.name, self.column.data_type(), true))
    }
}

/// Returns structs: cells of `width` bytes each.
///
/// # Errors
/// As [`ValueColumn::decode`](super::ValueColumn::decode); `Internal` if a field lies outside of the cell.
pub(super) fn structs(
    fields: &[StructField],
    width: usize,
    cells: &Buffer,
    content: &Bytes,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let (start, len) = (field.offset as usize, field.column.cell_bytes() as usize);
        let mut values = MutableBuffer::new(cells.len() / width.max(1) * len);
        for cell in cells.chunks_exact(width.max(1)) {
            let value = cell.get(start..start.saturating_add(len));
            values.extend_from_slice(
                value.ok_or_else(|| Error::internal("a field outside of its cell"))?,
            );
        }
        columns.push(field.column.items(values.into(), content, nulls.as_ref())?);
    }
    let fields = fields.iter().map(StructField::field).collect();
    let structs = StructArray::try_new(fields, columns, nulls);
    Ok(Arc::new(structs.map_err(failed_to("make structs"))?))
}

/// Returns lists of `len` items each, which follow one another in `cells`.
///
/// # Errors
/// As [`ValueColumn::decode`](super::ValueColumn::decode).
pub(super) fn fixed_lists(
    item: &CellColumn,
    len: u32,
    cells: Buffer,
    content: &Bytes,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let hidden = nulls.as_ref().map(|nulls| nulls.expand(len as usize));
    let items = item.items(cells, content, hidden.as_ref())?;
    let field = Arc::new(Field::new_list_field(item.data_type(), true));
    let lists = FixedSizeListArray::try_new(field, len as i32, items, nulls);
    Ok(Arc::new(lists.map_err(failed_to("make lists of fixed length"))?))
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;

    use super::super::encoding::Encoding;
    use super::super::{CellKind, Scalar};
    use super::*;
    use crate::format::ElementType;
    use crate::grid::AxisSelection;
    use crate::tile::Tile;

    #[test]
    fn fields_of_structs_are_columns() {
        let field = |name: &str, offset, kind| StructField {
            name: name.to_owned(),
            offset,
            column: CellColumn::new(kind, false, vec![]).with_missing_items(true),
        };
        let text = CellColumn::new(CellKind::FixedText(Encoding::Utf8, 2), false, vec![]);
        let fields = vec![
            field("y", 4, CellKind::Scalar(Scalar::Number(ElementType::F32))),
            field("x", 0, CellKind::Scalar(Scalar::Number(ElementType::I16))),
            field("names", 8, CellKind::FixedItems(Box::new(text), 2)),
        ];
        let column = CellColumn::new(CellKind::Struct(fields.into(), 14), false, vec![]);
        let cell = |x: i16, y: f32, names: &[u8; 4]| {
            [&x.to_le_bytes()[..], b"??", &y.to_le_bytes(), names, b"??"].concat()
        };
        let cells = [cell(-1, 0.5, b"abc\0"), cell(7, f32::NAN, b"\0\0d\0")].concat();
        let tile = Tile::fixed(Bytes::from(cells), 14);
        let found = column.decode(&tile, &[AxisSelection::all(2)], None).unwrap();
        assert_eq!(found.data_type(), &column.data_type());
        let shown: Vec<_> = (0..2).map(|at| array_value_to_string(&found, at).unwrap()).collect();
        assert_eq!(shown, ["{y: 0.5, x: -1, names: [ab, c]}", "{y: , x: 7, names: [, d]}"]);
        let column = CellColumn::new(
            CellKind::Struct(vec![field("z", 12, CellKind::FixedBytes(4))].into(), 14),
            false,
            vec![],
        );
        assert!(column.decode(&tile, &[AxisSelection::all(2)], None).is_err());
    }
}
