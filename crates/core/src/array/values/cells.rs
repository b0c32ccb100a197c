//! Columns of cells that are not plain numbers: dates, text, bytes, lists and enumerations.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, FixedSizeListArray, ListArray, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Int64Type, UInt64Type};
use bytes::Bytes;

use super::composite::{StructField, fixed_lists, structs};
use super::encoding::Encoding;
use super::packed;
use super::scalar::Scalar;
use super::text;
use crate::array::failed_to;
use crate::error::{Error, Result};
use crate::format::ElementType;
use crate::grid::AxisSelection;
use crate::tile::Tile;

/// The kind of a variable's cells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CellKind {
    /// One value of fixed width.
    Scalar(Scalar),
    /// This number of bytes.
    FixedBytes(u32),
    /// This number of values of fixed width.
    FixedList(Scalar, u32),
    /// Text in this number of bytes, with zeros after its end.
    FixedText(Encoding, u32),
    /// Text of any length.
    Text(Encoding),
    /// Bytes of any length.
    Bytes,
    /// Any number of values of fixed width.
    List(Scalar),
    /// This number of values of a kind of fixed width.
    FixedItems(Box<CellColumn>, u32),
    /// Values with names, in this number of bytes. Values of any length have 16 bytes of it, and only [`CellKind::Packed`] has such.
    Struct(Arc<[StructField]>, u32),
    /// Cells of a kind that begin with this number of bytes. Values of any length follow: where there is one, the first 4 bytes are
    /// the place of its bytes in the cell, and the next 4 their number.
    Packed(Box<CellColumn>, u32),
    /// An index into a list of values; an index outside the list is NULL.
    Enumerated {
        /// The type of the index.
        index: ElementType,
        /// The values that the indices refer to.
        values: ArrayRef,
    },
    /// Cells whose meaning cannot be read, such as indices into a damaged list. They can be counted, not shown.
    Unreadable(Unreadable),
}

/// Why the cells of a variable cannot be read, which is the error of each query that uses them.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The bytes of a cell.
    pub width: u64,
    /// The type that the column would have.
    pub data_type: DataType,
    /// The error.
    pub error: Error,
}

impl PartialEq for Unreadable {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width
            && self.data_type == other.data_type
            && self.error.to_string() == other.error.to_string()
    }
}

/// How cells of one kind become a column.
#[derive(Debug, Clone, PartialEq)]
pub struct CellColumn {
    pub(super) kind: CellKind,
    /// Whether each cell has a validity byte.
    pub(super) has_validity: bool,
    /// Cells with exactly these bytes are NULL.
    pub(super) nulls: Vec<Vec<u8>>,
    /// Whether NaN and NaT in lists are NULL.
    missing_items: bool,
}

impl CellColumn {
    /// Returns a column of `kind`. Cells whose bytes equal one of `nulls` are NULL.
    pub fn new(kind: CellKind, has_validity: bool, nulls: Vec<Vec<u8>>) -> Self {
        Self { kind, has_validity, nulls, missing_items: false }
    }

    /// Sets whether NaN and NaT in lists are NULL.
    #[must_use]
    pub fn with_missing_items(mut self, yes: bool) -> Self {
        self.missing_items = yes;
        self
    }

    /// Returns the column of cells with a validity byte each.
    pub(super) fn with_validity(self) -> Self {
        Self { has_validity: true, ..self }
    }

    /// Returns the column's type.
    pub fn data_type(&self) -> DataType {
        let item = |scalar: &Scalar| Arc::new(Field::new_list_field(scalar.data_type(), true));
        match &self.kind {
            CellKind::Scalar(scalar) => scalar.data_type(),
            CellKind::FixedBytes(width) => DataType::FixedSizeBinary(*width as i32),
            CellKind::FixedList(scalar, len) => DataType::FixedSizeList(item(scalar), *len as i32),
            CellKind::Text(_) | CellKind::FixedText(..) => DataType::Utf8View,
            CellKind::Bytes => DataType::BinaryView,
            CellKind::List(scalar) => DataType::List(item(scalar)),
            CellKind::FixedItems(item, len) => {
                let item = Field::new_list_field(item.data_type(), true);
                DataType::FixedSizeList(Arc::new(item), *len as i32)
            }
            CellKind::Struct(fields, _) => {
                DataType::Struct(fields.iter().map(StructField::field).collect())
            }
            CellKind::Packed(cells, _) => cells.data_type(),
            CellKind::Enumerated { values, .. } => values.data_type().clone(),
            CellKind::Unreadable(cells) => cells.data_type.clone(),
        }
    }

    /// Whether a cell may be NULL.
    pub fn is_nullable(&self) -> bool {
        let enumerated = matches!(self.kind, CellKind::Enumerated { .. });
        self.has_validity || !self.nulls.is_empty() || enumerated
    }

    /// Whether cells are single dates or times.
    pub(super) fn is_temporal(&self) -> bool {
        matches!(self.kind, CellKind::Scalar(Scalar::Temporal(_)))
    }

    /// Returns the bytes of a cell; an estimate for cells of any length.
    pub(super) fn cell_bytes(&self) -> u64 {
        /// The bytes of a value in an Arrow view array, without its content.
        const VIEW: u64 = 16;
        match &self.kind {
            CellKind::Scalar(scalar) => scalar.size(),
            CellKind::FixedBytes(width) | CellKind::FixedText(_, width) => u64::from(*width),
            CellKind::FixedList(scalar, len) => scalar.size() * u64::from(*len),
            CellKind::Text(_) | CellKind::Bytes | CellKind::List(_) => VIEW,
            CellKind::FixedItems(item, len) => item.cell_bytes() * u64::from(*len),
            CellKind::Struct(_, width) | CellKind::Packed(_, width) => u64::from(*width),
            CellKind::Enumerated { index, .. } => index.size(),
            CellKind::Unreadable(cells) => cells.width,
        }
    }

    /// Returns the values of the selected cells, in row-major order. Cells that are not `valid` are NULL,
    /// and so are those in `self.nulls`.
    ///
    /// # Errors
    /// The errors of [`ValueColumn::decode`](super::ValueColumn::decode).
    pub(super) fn decode(
        &self,
        tile: &Tile,
        selection: &[AxisSelection],
        valid: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        match &self.kind {
            CellKind::Packed(cells, width) => {
                let (spans, content) = tile.spans(selection)?;
                let fixed = packed::fixed_parts(cells, *width as usize, &spans, content)?;
                cells.fixed(fixed, content, valid)
            }
            CellKind::Text(_) | CellKind::Bytes | CellKind::List(_) => {
                let (spans, content) = tile.spans(selection)?;
                let cell = |span: &Range<u64>| &content[span.start as usize..span.end as usize];
                let nulls = self.nulls(spans.iter().map(cell), valid);
                self.of_any_length(&spans, content, nulls)
            }
            _ => {
                let cells = tile.gather(selection)?;
                let width = self.cell_bytes().max(1) as usize;
                let nulls = self.nulls(cells.chunks_exact(width), valid);
                self.fixed(cells, &Bytes::new(), nulls)
            }
        }
    }

    /// Returns the values that are at these places of `content`.
    fn of_any_length(
        &self,
        spans: &[Range<u64>],
        content: &Bytes,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        match &self.kind {
            CellKind::Text(encoding) => text::text(*encoding, spans, content, nulls.as_ref()),
            CellKind::List(scalar) => list(*scalar, spans, content, nulls, self.missing_items),
            _ => text::binary(spans, content, nulls.as_ref()),
        }
    }

    /// Marks cells as NULL that are so in `valid`, or whose bytes equal one of `self.nulls`. Costs one
    /// comparison per cell and entry of `self.nulls`, and nothing if that is empty.
    fn nulls<'a>(
        &self,
        cells: impl ExactSizeIterator<Item = &'a [u8]>,
        valid: Option<NullBuffer>,
    ) -> Option<NullBuffer> {
        if self.nulls.is_empty() {
            return valid;
        }
        let is_value = |cell: &[u8]| self.nulls.iter().all(|null| cell != null);
        let marked: BooleanBuffer = cells.map(is_value).collect();
        let marked = NullBuffer::new(marked);
        if marked.null_count() == 0 {
            return valid;
        }
        NullBuffer::union(valid.as_ref(), Some(&marked))
    }

    /// Returns the values of a field or of items, which have a fixed width. Values that are `hidden` are NULL.
    ///
    /// # Errors
    /// As [`CellColumn::decode`].
    pub(super) fn items(
        &self,
        cells: Buffer,
        content: &Bytes,
        hidden: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let width = self.cell_bytes().max(1) as usize;
        let mut nulls = self.nulls(cells.chunks_exact(width), hidden.cloned());
        if let (CellKind::Scalar(scalar), true) = (&self.kind, self.missing_items) {
            nulls = NullBuffer::union(nulls.as_ref(), scalar.present(&cells).as_ref());
        }
        self.fixed(cells, content, nulls)
    }

    /// Returns an array of cells of fixed width; `cells` holds them one after the other. References in them lead to `content`.
    fn fixed(&self, cells: Buffer, content: &Bytes, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(match &self.kind {
            CellKind::Scalar(scalar) => scalar.array(cells, nulls)?,
            CellKind::FixedBytes(width) => Arc::new(
                FixedSizeBinaryArray::try_new(*width as i32, cells, nulls)
                    .map_err(failed_to("make cells of bytes"))?,
            ),
            CellKind::FixedList(scalar, len) => {
                // Items under a NULL list may be invalid, so they are NULL too.
                let hidden = nulls.as_ref().map(|nulls| nulls.expand(*len as usize));
                let present = if self.missing_items { scalar.present(&cells) } else { None };
                let of_items = NullBuffer::union(hidden.as_ref(), present.as_ref());
                let items = scalar.array(cells, of_items)?;
                let field = Arc::new(Field::new_list_field(scalar.data_type(), true));
                let list = FixedSizeListArray::try_new(field, *len as i32, items, nulls);
                Arc::new(list.map_err(failed_to("make lists of fixed length"))?)
            }
            CellKind::FixedText(encoding, width) => {
                let width = (*width).max(1) as usize;
                let ends = cells.chunks_exact(width).map(|cell| encoding.end(cell));
                let span = |(at, end)| ((at * width) as u64)..((at * width + end) as u64);
                let spans: Vec<Range<u64>> = ends.enumerate().map(span).collect();
                text::text(*encoding, &spans, &text::shared(cells), nulls.as_ref())?
            }
            CellKind::Enumerated { index, values } => {
                let indices = Scalar::Number(*index).array(cells, nulls)?;
                let indices = places(&indices, values.len())?;
                take(values, &indices, None).map_err(failed_to("look up enumerated values"))?
            }
            CellKind::FixedItems(item, len) => fixed_lists(item, *len, cells, content, nulls)?,
            CellKind::Struct(fields, width) => {
                structs(fields, *width as usize, &cells, content, nulls)?
            }
            CellKind::Text(_) | CellKind::Bytes | CellKind::List(_) => {
                self.of_any_length(&packed::spans(&cells), content, nulls)?
            }
            CellKind::Unreadable(cells) => return Err(cells.error.clone()),
            CellKind::Packed(..) => return Err(Error::internal("packed cells within others")),
        })
    }
}

/// Converts to indices into `len` values; indices outside become NULL. The indices 1, -1, 7 into 3 values
/// become 1, NULL, NULL.
fn places(indices: &ArrayRef, len: usize) -> Result<UInt32Array> {
    let inside = |index: u64| u32::try_from(index).ok().filter(|&at| (at as usize) < len);
    let wide =
        |to: &DataType| cast(indices, to).map_err(failed_to("widen places in an enumeration"));
    // Two wide types, because an `i64` cannot hold large `u64` indices, nor a `u64` negative ones.
    Ok(if indices.data_type().is_unsigned_integer() {
        let indices = wide(&DataType::UInt64)?;
        indices.as_primitive::<UInt64Type>().iter().map(|at| at.and_then(inside)).collect()
    } else {
        let indices = wide(&DataType::Int64)?;
        let index = |at: i64| u64::try_from(at).ok().and_then(inside);
        indices.as_primitive::<Int64Type>().iter().map(|at| at.and_then(index)).collect()
    })
}

/// The most bytes of list items in a batch. In a hostile file, every cell may refer to the same long
/// list.
const MAX_BATCH_BYTES: usize = 1 << 31;

/// Returns cells as lists of `scalar`: the bytes of each span are the items of one list.
///
/// The items of a batch are copied to one buffer, because Arrow's lists follow one another there. A NULL list
/// has no items. With `missing_items`, NaN and NaT among the items are NULL.
///
/// # Errors
/// `Corrupt` if a span ends inside an item; `Unsupported` if the batch has too many items.
fn list(
    scalar: Scalar,
    spans: &[Range<u64>],
    content: &Bytes,
    nulls: Option<NullBuffer>,
    missing_items: bool,
) -> Result<ArrayRef> {
    let size = scalar.size();
    let mut items = MutableBuffer::new(0);
    let mut lengths = Vec::with_capacity(spans.len());
    for (at, span) in spans.iter().enumerate() {
        let bytes = if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            &[][..]
        } else {
            &content[span.start as usize..span.end as usize]
        };
        if !(bytes.len() as u64).is_multiple_of(size) {
            let message = format!("a list of {} bytes, with items of {size} bytes", bytes.len());
            return Err(Error::corrupt("values of a tile", span.start, message));
        }
        if items.len() + bytes.len() > MAX_BATCH_BYTES {
            return Err(Error::unsupported(format!(
                "a batch would hold more than {} MiB of list items; set a smaller batch size",
                MAX_BATCH_BYTES >> 20
            )));
        }
        items.extend_from_slice(bytes);
        lengths.push(bytes.len() / size as usize);
    }
    if items.len() / size as usize > i32::MAX as usize {
        return Err(Error::unsupported("more than 2^31 list items in a batch; set a smaller one"));
    }
    let items = Buffer::from(items);
    let present = if missing_items { scalar.present(&items) } else { None };
    let items = scalar.array(items, present)?;
    let field = Arc::new(Field::new_list_field(scalar.data_type(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(field, offsets, items, nulls);
    Ok(Arc::new(list.map_err(failed_to("make lists"))?))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use arrow::util::display::array_value_to_string;

    use super::*;
    use crate::array::values::temporal::Temporal;
    use crate::format::TimeUnit;

    fn shown(column: &CellColumn, tile: &Tile, cells: u64) -> Vec<String> {
        let valid = tile.nulls(&[AxisSelection::all(cells)]).unwrap();
        let array = column.decode(tile, &[AxisSelection::all(cells)], valid).unwrap();
        assert_eq!(array.data_type(), &column.data_type());
        let value = |at| match array.is_null(at) {
            true => "NULL".to_owned(),
            false => array_value_to_string(&array, at).unwrap(),
        };
        (0..array.len()).map(value).collect()
    }

    #[test]
    fn an_index_outside_its_enumeration_is_null() {
        let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(["red", "green"]));
        for index in [ElementType::I8, ElementType::U8] {
            let kind = CellKind::Enumerated { index, values: Arc::clone(&values) };
            let tile = Tile::fixed(Bytes::from_static(&[1, 0, 2, 255]), 1);
            let tile = tile.with_validity(Some(Bytes::from_static(&[1, 0, 1, 1])));
            let column = CellColumn::new(kind, true, vec![]);
            assert_eq!(shown(&column, &tile, 4), ["green", "NULL", "NULL", "NULL"]);
        }
    }

    #[test]
    fn junk_under_a_null_list_is_no_error() {
        let counts = [1, 2, i64::MAX, i64::MIN].map(i64::to_le_bytes).concat();
        let tile = Tile::fixed(counts.into(), 16);
        let days = CellKind::FixedList(Scalar::Temporal(Temporal::Point(TimeUnit::Day)), 2);
        let column = CellColumn::new(days, true, vec![]);
        assert!(column.decode(&tile, &[AxisSelection::all(2)], None).is_err());
        let tile = tile.with_validity(Some(Bytes::from_static(&[1, 0])));
        assert_eq!(shown(&column, &tile, 2), ["[1970-01-02, 1970-01-03]", "NULL"]);
    }

    #[test]
    fn what_is_missing_in_a_list_is_null() {
        let counts = [1, i64::MIN, i64::MIN, i64::MIN].map(i64::to_le_bytes).concat();
        for unit in [TimeUnit::Day, TimeUnit::Millisecond, TimeUnit::Picosecond] {
            let days = Scalar::Temporal(Temporal::Point(unit));
            let pairs = CellColumn::new(CellKind::FixedList(days, 2), false, vec![]);
            let tile = Tile::fixed(counts.clone().into(), 16);
            let found = shown(&pairs.with_missing_items(true), &tile, 2);
            assert!(found[0].ends_with(", ]") && found[1] == "[, ]", "{found:?}");
            let lists = CellColumn::new(CellKind::List(days), false, vec![]);
            let tile = Tile::variable(vec![0..8, 8..32], counts.clone().into()).unwrap();
            let found = shown(&lists.with_missing_items(true), &tile, 2);
            assert!(!found[0].contains(',') && found[1] == "[, , ]", "{found:?}");
        }
        let floats = [1.5, f32::NAN, -f32::NAN, f32::INFINITY].map(f32::to_le_bytes).concat();
        let tile = Tile::fixed(floats.into(), 8);
        let pairs = CellKind::FixedList(Scalar::Number(ElementType::F32), 2);
        let column = CellColumn::new(pairs, false, vec![]);
        assert_eq!(shown(&column, &tile, 2), ["[1.5, NaN]", "[NaN, inf]"]);
        assert_eq!(shown(&column.with_missing_items(true), &tile, 2), ["[1.5, ]", "[, inf]"]);
    }

    #[test]
    fn lists_bytes_and_truth_values() {
        let fixed = Tile::fixed(Bytes::from_static(&[1, 0, 2, 0, 3, 0, 4, 0]), 4);
        let pairs = CellKind::FixedList(Scalar::Number(ElementType::I16), 2);
        assert_eq!(shown(&CellColumn::new(pairs, false, vec![]), &fixed, 2), ["[1, 2]", "[3, 4]"]);
        let bytes = CellColumn::new(CellKind::FixedBytes(4), false, vec![vec![3, 0, 4, 0]]);
        assert_eq!(shown(&bytes, &fixed, 2), ["01000200", "NULL"]);
        let truth = CellColumn::new(CellKind::Scalar(Scalar::Boolean), false, vec![]);
        assert_eq!(
            shown(&truth, &Tile::fixed(Bytes::from_static(&[0, 1]), 1), 2),
            ["false", "true"]
        );

        let content = Bytes::from_static(&[1, 0, 2, 0, 9]);
        let lists = CellColumn::new(CellKind::List(Scalar::Number(ElementType::I16)), true, vec![]);
        let spans = vec![0..4, 4..4, 4..5];
        let tile = Tile::variable(spans.clone(), content.clone()).unwrap();
        let valid = tile.clone().with_validity(Some(Bytes::from_static(&[1, 1, 0])));
        assert_eq!(shown(&lists, &valid, 3), ["[1, 2]", "[]", "NULL"]);
        assert!(lists.decode(&tile, &[AxisSelection::all(3)], None).is_err());
        let text = CellColumn::new(CellKind::Text(Encoding::Utf8), false, vec![vec![]]);
        let tile = Tile::variable(vec![0..1, 1..1], Bytes::from_static(b"a")).unwrap();
        assert_eq!(shown(&text, &tile, 2), ["a", "NULL"]);
    }
}
