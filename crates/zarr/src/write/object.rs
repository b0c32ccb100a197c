//! [`ObjectEncoder`]: the bytes of an object, which is a chunk, or a shard of several.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use gridfusion_core::Result;
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::write::cells_of_box;

use super::cell_type::ZarrType;
use super::encoding::{ZarrEncoding, shard};

/// How cells become the objects of one variable.
pub(crate) struct ObjectEncoder<'a> {
    pub(crate) encoding: &'a ZarrEncoding,
    pub(crate) cell: &'a ZarrType,
    /// The stored value of NULL, and of cells outside of the array.
    pub(crate) padding: &'a ArrayRef,
    /// The elements of an object.
    pub(crate) object_shape: &'a [u64],
    /// The elements of the chunks of a shard, if objects are shards.
    pub(crate) inner_shape: Option<&'a [u64]>,
    /// Whether chunks of NULL alone are not stored.
    pub(crate) leaves_out_nulls: bool,
}

impl ObjectEncoder<'_> {
    /// Returns the bytes of an object; `None` if it is not stored. `cells` have the stored type and this `shape`, which may be less than
    /// that of an object at the end of an axis.
    ///
    /// # Errors
    /// `Unsupported` for cells that cannot be encoded.
    pub(crate) fn object(&self, cells: &ArrayRef, shape: &[u64]) -> Result<Option<Vec<u8>>> {
        if self.is_left_out(cells) {
            return Ok(None);
        }
        match self.inner_shape {
            None => self.chunk(cells, shape, self.object_shape).map(Some),
            Some(inner) => self.shard(cells, shape, inner),
        }
    }

    fn is_left_out(&self, cells: &ArrayRef) -> bool {
        self.leaves_out_nulls && cells.null_count() == cells.len()
    }

    /// Encodes cells of some shape as those of a chunk, which may be larger.
    fn chunk(&self, cells: &ArrayRef, shape: &[u64], chunk: &[u64]) -> Result<Vec<u8>> {
        let whole: Vec<Range<u64>> = chunk.iter().map(|len| 0..*len).collect();
        let cells = cells_of_box(cells, shape, &whole)?;
        self.encoding.encoded(self.cell.bytes(&cells, self.padding)?, self.cell.word())
    }

    /// Encodes the chunks of a shard; `None` if none of them is stored.
    fn shard(&self, cells: &ArrayRef, shape: &[u64], inner: &[u64]) -> Result<Option<Vec<u8>>> {
        let grid = ChunkGrid::new(self.object_shape, inner)?;
        let chunk = |number| {
            let coordinates = grid.chunk_coordinates(number);
            let known = |(axis, len): (usize, &u64)| {
                let range = grid.axis_range(axis, coordinates[axis]);
                range.start.min(*len)..range.end.min(*len)
            };
            let known: Vec<Range<u64>> = shape.iter().enumerate().map(known).collect();
            let own = cells_of_box(cells, shape, &known)?;
            if own.is_empty() || self.is_left_out(&own) {
                return Ok(None);
            }
            let lens: Vec<u64> = known.iter().map(|range| range.end - range.start).collect();
            self.chunk(&own, &lens, inner).map(Some)
        };
        Ok(shard((0..grid.chunks()).map(chunk).collect::<Result<_>>()?))
    }
}
