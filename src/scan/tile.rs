//! One decoded chunk, and how selected cells are taken out of it.

use std::ops::Range;

use arrow::buffer::{Buffer, MutableBuffer};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::ElementType;
use crate::grid::{AxisSelection, for_each_run};

/// The decoded bytes of one chunk: little-endian elements in row-major order over its extents.
#[derive(Debug, Clone)]
pub struct Tile {
    bytes: Bytes,
    element: ElementType,
}

impl Tile {
    /// Wraps the decoded bytes of a chunk.
    pub fn new(bytes: Bytes, element: ElementType) -> Self {
        Self { bytes, element }
    }

    /// All elements, at any address.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory of the tile, emptied, if nobody else holds a part of it any more; otherwise none.
    pub fn into_spare(self) -> Vec<u8> {
        let Ok(mut spare) = self.bytes.try_into_mut() else { return Vec::new() };
        spare.clear(); // so that nothing is moved to the front
        spare.into()
    }

    /// The selected cells in row-major order, aligned for their type.
    ///
    /// One contiguous run is a view of the tile, without a copy unless it is misaligned; otherwise
    /// each run is copied once.
    ///
    /// # Errors
    /// `Internal` if the selection does not fit the tile.
    pub fn gather(&self, selection: &[AxisSelection]) -> Result<Buffer> {
        let mut pending: Option<Range<u64>> = None;
        let mut copied: Option<MutableBuffer> = None;
        let cells: u64 = selection.iter().map(AxisSelection::count).product();
        let mut outside = false;
        for_each_run(selection, |run| {
            if let Some(before) = pending.replace(run) {
                let out = copied.get_or_insert_with(|| {
                    MutableBuffer::new((cells * self.element.size()) as usize)
                });
                outside |= self.copy(before, out).is_none();
            }
        });
        let whole = match (pending, copied) {
            (None, _) => Some(Buffer::from(MutableBuffer::new(0))),
            (Some(run), None) => self.view(run),
            (Some(run), Some(mut out)) => self.copy(run, &mut out).map(|()| out.into()),
        };
        match whole {
            Some(buffer) if !outside => Ok(buffer),
            _ => Err(Error::internal("a selection reaches outside its chunk")),
        }
    }

    fn byte_range(&self, run: &Range<u64>) -> Option<Range<usize>> {
        let size = self.element.size();
        let range = (run.start * size) as usize..(run.end * size) as usize;
        (range.end <= self.bytes.len()).then_some(range)
    }

    fn copy(&self, run: Range<u64>, out: &mut MutableBuffer) -> Option<()> {
        out.extend_from_slice(&self.bytes[self.byte_range(&run)?]);
        Some(())
    }

    fn view(&self, run: Range<u64>) -> Option<Buffer> {
        let bytes = self.bytes.slice(self.byte_range(&run)?);
        let aligned = (bytes.as_ptr() as usize).is_multiple_of(self.element.size() as usize);
        Some(if aligned { Buffer::from(bytes) } else { Buffer::from_slice_ref(&bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes at an address that is aligned for every type.
    struct Aligned(Buffer);

    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    /// A 3 x 4 tile of the bytes 0..12, placed `offset` bytes past an aligned address.
    fn tile(element: ElementType, offset: usize) -> Tile {
        let width = element.size() as usize;
        let mut bytes = MutableBuffer::from_len_zeroed(256);
        for cell in 0..12 {
            bytes.as_slice_mut()[offset + cell * width] = cell as u8;
        }
        let bytes = Bytes::from_owner(Aligned(bytes.into()));
        Tile::new(bytes.slice(offset..offset + 12 * width), element)
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
            assert_eq!(view.as_ptr(), tile.bytes[4 * element.size() as usize..].as_ptr());
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
}
