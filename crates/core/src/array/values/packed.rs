//! Cells of any length that begin with a part of fixed width, such as structs with texts.
//!
//! ```text
//!   cell │ x │ 20, 5 │ y │ Hello │      where the text begins in the cell, and its bytes
//! ```

use std::ops::Range;

use arrow::buffer::{Buffer, MutableBuffer};

use super::cells::{CellColumn, CellKind};
use crate::error::{Error, Result};

/// The bytes of a reference: its first two words of 4 bytes are the place in the cell and the length.
pub(super) const REFERENCE: usize = 16;

/// Returns the parts of fixed width of cells, whose references then lead to places in `content`.
///
/// # Errors
/// `Internal` if a reference leads out of its cell.
pub(super) fn fixed_parts(
    column: &CellColumn,
    width: usize,
    spans: &[Range<u64>],
    content: &[u8],
) -> Result<Buffer> {
    let mut places = vec![];
    references(column, 0, &mut places);
    let mut cells = MutableBuffer::with_capacity(spans.len() * width);
    for span in spans {
        let start = cells.len();
        let cell = content.get(span.start as usize..span.end as usize).unwrap_or_default();
        // A cell that was never written is empty, and so are its texts.
        cells.extend_from_slice(cell.get(..width).unwrap_or_default());
        cells.resize(start + width, 0);
        for place in &places {
            let place = start + place;
            let reference = cells.as_slice_mut().get_mut(place..place + REFERENCE);
            let outside = || Error::internal("a reference outside of its cell");
            let reference = reference.ok_or_else(outside)?;
            let [at, len] = [word(reference, 0), word(reference, 4)];
            if at + len > span.end - span.start {
                return Err(outside());
            }
            reference[..8].copy_from_slice(&(span.start + at).to_le_bytes());
            reference[8..].copy_from_slice(&len.to_le_bytes());
        }
    }
    Ok(cells.into())
}

/// Returns where the values are to which references lead.
pub(super) fn spans(references: &Buffer) -> Vec<Range<u64>> {
    let long = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let span = |it: &[u8]| long(&it[..8])..long(&it[..8]) + long(&it[8..]);
    references.as_slice().chunks_exact(REFERENCE).map(span).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default()).into()
}

/// Adds the places of references in cells.
fn references(column: &CellColumn, base: usize, places: &mut Vec<usize>) {
    match &column.kind {
        CellKind::Text(_) | CellKind::Bytes | CellKind::List(_) => places.push(base),
        CellKind::Struct(fields, _) => {
            for field in fields.iter() {
                references(&field.column, base + field.offset as usize, places);
            }
        }
        CellKind::FixedItems(item, len) => {
            let width = item.cell_bytes() as usize;
            (0..*len as usize).for_each(|at| references(item, base + at * width, places));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;

    use super::super::encoding::Encoding;
    use super::super::{Scalar, StructField};
    use super::*;
    use crate::format::ElementType;
    use crate::grid::AxisSelection;
    use crate::tile::Tile;

    fn field(name: &str, offset: u32, kind: CellKind) -> StructField {
        let column = CellColumn::new(kind, false, vec![]).with_missing_items(true);
        StructField { name: name.to_owned(), offset, column }
    }

    /// A struct of a number, two texts and a list, in 52 bytes.
    fn column() -> CellColumn {
        let text = CellColumn::new(CellKind::Text(Encoding::Utf8), false, vec![]);
        let fields = vec![
            field("n", 0, CellKind::Scalar(Scalar::Number(ElementType::I32))),
            field("names", 4, CellKind::FixedItems(Box::new(text), 2)),
            field("list", 36, CellKind::List(Scalar::Number(ElementType::I16))),
        ];
        let cells = CellColumn::new(CellKind::Struct(fields.into(), 52), false, vec![]);
        CellColumn::new(CellKind::Packed(Box::new(cells), 52), false, vec![])
    }

    fn cell(n: i32, values: [&[u8]; 3]) -> Vec<u8> {
        let mut cell = n.to_le_bytes().to_vec();
        let mut at = 52_u32;
        for value in values {
            cell.extend(at.to_le_bytes());
            cell.extend((value.len() as u32).to_le_bytes());
            cell.extend([0; 8]);
            at += value.len() as u32;
        }
        [cell, values.concat()].concat()
    }

    #[test]
    fn references_lead_to_values_behind_the_struct() {
        let cells = [
            cell(1, [b"a", "é".as_bytes(), &[1, 0, 255, 255]]),
            vec![],
            cell(-1, [b"", b"long text", b""]),
        ];
        let (mut spans, mut content) = (vec![], vec![]);
        for cell in &cells {
            spans.push(content.len() as u64..(content.len() + cell.len()) as u64);
            content.extend(cell);
        }
        let tile = Tile::variable(spans.clone(), content.clone().into()).unwrap();
        let found = column().decode(&tile, &[AxisSelection::all(3)], None).unwrap();
        assert_eq!(found.data_type(), &column().data_type());
        let shown: Vec<_> = (0..3).map(|at| array_value_to_string(&found, at).unwrap()).collect();
        assert_eq!(
            shown,
            [
                "{n: 1, names: [a, é], list: [1, -1]}",
                "{n: 0, names: [, ], list: []}",
                "{n: -1, names: [, long text], list: []}"
            ]
        );
        let last = AxisSelection::from_range(3, 2..3);
        let found = column().decode(&tile, &[last], None).unwrap();
        assert_eq!(array_value_to_string(&found, 0).unwrap(), shown[2]);
        content[4..8].copy_from_slice(&100_u32.to_le_bytes());
        let tile = Tile::variable(spans, content.into()).unwrap();
        assert!(column().decode(&tile, &[AxisSelection::all(3)], None).is_err());
    }
}
