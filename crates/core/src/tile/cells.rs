//! The decoded cells of one variable of one chunk, and the extraction of selected cells.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::grid::{AxisSelection, for_each_run};

/// The cells of one variable of one chunk, in row-major order over the chunk's extents.
#[derive(Debug, Clone)]
pub struct Tile {
    cells: CellBytes,
    /// One byte per cell, 0 for NULL; absent if no cell can be NULL.
    validity: Option<Bytes>,
    /// The form of the cells, see [`StoredChunk::form`](crate::format::StoredChunk::form).
    form: u32,
    /// Whether the tile has a single cell, which stands for all cells of the chunk.
    is_repeated: bool,
}

/// The cells of a tile, in one of two layouts:
///
/// ```text
/// Fixed      width 2     bytes    01 00 02 00 03 00        cells 1, 2, 3 of type i16
/// Variable               content  O s l o B e r g e n      cells "Oslo", "Bergen"
///                        spans    0..4, 4..10
/// ```
#[derive(Debug, Clone)]
enum CellBytes {
    /// Little-endian cells of `width` bytes.
    Fixed { bytes: Bytes, width: usize },
    /// For each cell, its range of bytes in `content`. Ranges may be in any order, overlap or leave gaps.
    Variable { spans: Vec<Range<u64>>, content: Bytes },
}

impl Tile {
    /// Returns a tile of cells of `width` bytes each.
    pub fn fixed(bytes: Bytes, width: usize) -> Self {
        Self {
            cells: CellBytes::Fixed { bytes, width },
            validity: None,
            form: 0,
            is_repeated: false,
        }
    }

    /// Returns a tile of cells of any length; every span must lie in `content`.
    ///
    /// # Errors
    /// `Internal` if a span does not.
    pub fn variable(spans: Vec<Range<u64>>, content: Bytes) -> Result<Self> {
        let len = content.len() as u64;
        if spans.iter().any(|span| span.start > span.end || span.end > len) {
            return Err(Error::internal("a value that lies outside its tile"));
        }
        let cells = CellBytes::Variable { spans, content };
        Ok(Self { cells, validity: None, form: 0, is_repeated: false })
    }

    /// Sets the validity: cells with a 0 in `validity` are NULL.
    #[must_use]
    pub fn with_validity(self, validity: Option<Bytes>) -> Self {
        Self { validity, ..self }
    }

    /// Sets the form of the cells.
    pub(crate) fn with_form(self, form: u32) -> Self {
        Self { form, ..self }
    }

    /// Returns the form of the cells, see [`StoredChunk::form`](crate::format::StoredChunk::form).
    pub fn form(&self) -> u32 {
        self.form
    }

    /// Lets the only cell stand for all cells of the chunk.
    pub(crate) fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }

    /// Whether the tile has a single cell, which stands for all cells of the chunk. Only a [workspace that repeats
    /// fill](crate::array::Workspace::repeating_fill) makes such tiles.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        match &self.cells {
            CellBytes::Fixed { bytes, width } => bytes.len() / (*width).max(1),
            CellBytes::Variable { spans, .. } => spans.len(),
        }
    }

    /// Returns all cells of fixed width, at any alignment; no bytes for cells of any length.
    pub fn bytes(&self) -> &[u8] {
        match &self.cells {
            CellBytes::Fixed { bytes, .. } => bytes,
            CellBytes::Variable { .. } => &[],
        }
    }

    /// As [`Tile::bytes`], as bytes that outlive the tile.
    pub fn shared_bytes(&self) -> Bytes {
        match &self.cells {
            CellBytes::Fixed { bytes, .. } => bytes.clone(),
            CellBytes::Variable { .. } => Bytes::new(),
        }
    }

    /// Returns one byte per cell, 0 for NULL; `None` if no cell can be NULL.
    pub fn validity(&self) -> Option<&[u8]> {
        self.validity.as_deref()
    }

    /// Returns the bytes of memory that the tile holds or views.
    pub fn len_bytes(&self) -> usize {
        let validity = self.validity.as_ref().map_or(0, Bytes::len);
        validity
            + match &self.cells {
                CellBytes::Fixed { bytes, .. } => bytes.len(),
                CellBytes::Variable { spans, content } => {
                    content.len() + size_of_val(spans.as_slice())
                }
            }
    }

    /// Returns the tile's memory for reuse; empty if it is still shared. The old contents stay, because
    /// an emptied vector would have to be zeroed before it is written again.
    pub fn into_spare(self) -> Vec<u8> {
        let (CellBytes::Fixed { bytes, .. } | CellBytes::Variable { content: bytes, .. }) =
            self.cells;
        bytes.try_into_mut().map(Vec::from).unwrap_or_default()
    }

    /// Returns the selected cells in row-major order, aligned for elements of their width.
    ///
    /// A single contiguous run is a view of the tile, unless it is misaligned. Otherwise each run is
    /// copied once.
    ///
    /// # Errors
    /// `Internal` if the selection does not fit the tile, or if cells have no fixed width.
    pub fn gather(&self, selection: &[AxisSelection]) -> Result<Buffer> {
        match &self.cells {
            CellBytes::Fixed { bytes, width } => gather(bytes, *width, selection),
            CellBytes::Variable { .. } => Err(Error::internal("cells without a fixed width")),
        }
    }

    /// Returns the selected cells in row-major order, as spans of the returned bytes.
    ///
    /// # Errors
    /// `Internal` if the selection does not fit the tile, or if cells have a fixed width.
    pub fn spans(&self, selection: &[AxisSelection]) -> Result<(Vec<Range<u64>>, &Bytes)> {
        let CellBytes::Variable { spans, content } = &self.cells else {
            return Err(Error::internal("cells with a fixed width"));
        };
        let cells: u64 = selection.iter().map(AxisSelection::count).product();
        let mut selected = Vec::with_capacity(cells as usize);
        let mut outside = false;
        for_each_run(selection, |run| match spans.get(run.start as usize..run.end as usize) {
            Some(run) => selected.extend_from_slice(run),
            None => outside = true,
        });
        if outside { Err(outside_chunk()) } else { Ok((selected, content)) }
    }

    /// Returns the null buffer of the selected cells; `None` if no cell is NULL.
    ///
    /// # Errors
    /// `Internal` if the selection does not fit the tile.
    pub fn nulls(&self, selection: &[AxisSelection]) -> Result<Option<NullBuffer>> {
        let Some(validity) = &self.validity else { return Ok(None) };
        let valid = gather(validity, 1, selection)?;
        if !valid.contains(&0) {
            return Ok(None);
        }
        let valid = BooleanBuffer::collect_bool(valid.len(), |at| valid[at] != 0);
        Ok(Some(NullBuffer::new(valid)))
    }
}

fn outside_chunk() -> Error {
    Error::internal("a selection reaches outside its chunk")
}

/// Returns the selected cells of `width` bytes, without a copy if they are one aligned run.
fn gather(tile: &Bytes, width: usize, selection: &[AxisSelection]) -> Result<Buffer> {
    let byte_range = |run: &Range<u64>| {
        let range = run.start as usize * width..run.end as usize * width;
        (range.end <= tile.len()).then_some(range)
    };
    let copy = |run: Range<u64>, out: &mut MutableBuffer| {
        out.extend_from_slice(&tile[byte_range(&run)?]);
        Some(())
    };
    // A run is copied when the next one comes. So a single run is never copied: it becomes a view.
    let mut pending: Option<Range<u64>> = None;
    let mut copied: Option<MutableBuffer> = None;
    let cells: u64 = selection.iter().map(AxisSelection::count).product();
    let mut outside = false;
    for_each_run(selection, |run| {
        if let Some(before) = pending.replace(run) {
            let out = copied.get_or_insert_with(|| MutableBuffer::new(cells as usize * width));
            outside |= copy(before, out).is_none();
        }
    });
    let whole = match (pending, copied) {
        (None, _) => Some(Buffer::from(MutableBuffer::new(0))),
        (Some(run), None) => byte_range(&run).map(|range| view(tile.slice(range), width)),
        (Some(run), Some(mut out)) => copy(run, &mut out).map(|()| out.into()),
    };
    whole.filter(|_| !outside).ok_or_else(outside_chunk)
}

/// Returns a view of the bytes, or a copy if elements of `width` bytes would be misaligned.
fn view(bytes: Bytes, width: usize) -> Buffer {
    /// The largest alignment of an element.
    const MAX_ALIGN: usize = 8;
    // The elements of a cell have at most the alignment of the lowest bit of its width: 4 for 12 bytes.
    let align = (1_usize << width.trailing_zeros().min(63)).min(MAX_ALIGN);
    let aligned = (bytes.as_ptr() as usize).is_multiple_of(align);
    if aligned { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ElementType;

    /// Bytes at an address that is aligned for every type.
    struct Aligned(Buffer);

    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    /// Returns a 3 x 4 tile of the numbers 0..12, placed `offset` bytes past an aligned address.
    fn tile(element: ElementType, offset: usize) -> Tile {
        let width = element.size() as usize;
        let mut bytes = MutableBuffer::from_len_zeroed(256);
        for cell in 0..12 {
            bytes.as_slice_mut()[offset + cell * width] = cell as u8;
        }
        let bytes = Bytes::from_owner(Aligned(bytes.into()));
        Tile::fixed(bytes.slice(offset..offset + 12 * width), width)
    }

    fn low_bytes(buffer: &Buffer, element: ElementType) -> Vec<u8> {
        buffer.as_slice().chunks_exact(element.size() as usize).map(|cell| cell[0]).collect()
    }

    #[test]
    fn one_aligned_run_is_a_view_and_everything_else_a_copy() {
        let rows = [AxisSelection::from_range(3, 1..3), AxisSelection::all(4)];
        let boxed = [AxisSelection::from_range(3, 1..3), AxisSelection::from_range(4, 1..2)];
        for element in [ElementType::F32, ElementType::U16, ElementType::F64, ElementType::U8] {
            let tile = tile(element, 64);
            let view = tile.gather(&rows).unwrap();
            assert_eq!(low_bytes(&view, element), (4..12).collect::<Vec<_>>());
            assert_eq!(view.as_ptr(), tile.bytes()[4 * element.size() as usize..].as_ptr());
            assert_eq!(low_bytes(&tile.gather(&boxed).unwrap(), element), [5, 9]);
        }
        let odd = tile(ElementType::F32, 3);
        let copy = odd.gather(&rows).unwrap();
        assert_eq!(low_bytes(&copy, ElementType::F32), (4..12).collect::<Vec<_>>());
        assert_eq!(copy.as_ptr() as usize % 4, 0);
        let none = [AxisSelection::all(3), AxisSelection::from_range(4, 2..2)];
        assert!(odd.gather(&none).unwrap().is_empty());
    }

    #[test]
    fn a_selection_that_does_not_fit_is_an_error() {
        let tile = tile(ElementType::U8, 0);
        for cells in [
            [AxisSelection::all(4), AxisSelection::all(4)],
            [AxisSelection::all(13), AxisSelection::from_range(4, 1..2)],
        ] {
            assert!(tile.gather(&cells).is_err());
        }
    }

    #[test]
    fn values_of_any_length_and_nulls_are_picked_too() {
        let content = Bytes::from_static(b"abcdef");
        let tile = Tile::variable(vec![0..1, 1..1, 1..4, 4..6], content).unwrap();
        let tile = tile.with_validity(Some(Bytes::from_static(&[1, 0, 1, 1])));
        let cells = [AxisSelection::from_mask(&[true, true, false, true])];
        let (spans, content) = tile.spans(&cells).unwrap();
        assert_eq!((spans, content.as_ref()), (vec![0..1, 1..1, 4..6], &b"abcdef"[..]));
        let nulls = tile.nulls(&cells).unwrap().unwrap();
        assert_eq!(nulls.iter().collect::<Vec<_>>(), [true, false, true]);
        assert!(tile.nulls(&[AxisSelection::from_range(4, 2..4)]).unwrap().is_none());
        assert!(tile.spans(&[AxisSelection::all(5)]).is_err());
        assert!(tile.gather(&cells).is_err());
        assert!(Tile::variable(vec![0..1, 1..7], Bytes::from_static(b"abcdef")).is_err());
    }
}
