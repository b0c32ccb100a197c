//! The chunk grid of an array: which cells each chunk covers.

use std::num::NonZeroU64;
use std::ops::Range;

use super::{AxisChunks, AxisSelection, order};
use crate::error::{Error, Result};

/// The grid of chunks that covers an array. A stored array has a regular grid, and chunks at its ends
/// are clipped. Where arrays are combined, an axis may have borders anywhere ([`AxisChunks`]).
///
/// A regular grid may begin before the array does, so that the first chunk of an axis is clipped too:
///
/// ```text
///   chunks    ├─────────┼─────────┼─────────┤     chunk shape 10
///   elements        0 1 … 5 6 … 15 16 … 18        shape 19, origin 4
/// ```
///
/// The numbers of cells and of chunks fit in a `u64`, except in a grid [of any size](Self::with_any_size). Methods that take an
/// axis panic if the grid has no such axis.
///
/// ```
/// use gridfusion_core::grid::ChunkGrid;
///
/// let grid = ChunkGrid::new(&[5, 7], &[2, 3])?;
/// assert_eq!(grid.chunks_per_axis(), [3, 3]);
/// assert_eq!(grid.extents(&[2, 2]), [1, 1]); // the clipped corner
/// assert_eq!(grid.axis_range(1, 2), 6..7);
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Vec<u64>,
    axes: Vec<AxisChunks>,
    chunks_per_axis: Vec<u64>,
    cells: u64,
    chunks: u64,
}

impl ChunkGrid {
    /// Cuts an array of `shape` into chunks of `chunk_shape`; both are positions per axis.
    ///
    /// A chunk may be longer than the array: then one clipped chunk covers the axis. An axis of length
    /// 0 has no chunks.
    ///
    /// # Errors
    /// `Unsupported` if the ranks differ or exceed [`super::MAX_RANK`], if a chunk length is 0,
    /// or if the number of cells overflows a `u64`.
    pub fn new(shape: &[u64], chunk_shape: &[u64]) -> Result<Self> {
        Self::with_origin(shape, chunk_shape, &vec![0; shape.len()])
    }

    /// Returns a grid that begins `origin` positions before the array on each axis. Each origin must be
    /// less than the chunk length of its axis.
    ///
    /// ```
    /// use gridfusion_core::grid::ChunkGrid;
    ///
    /// let grid = ChunkGrid::with_origin(&[19], &[10], &[4])?;
    /// assert_eq!(grid.chunks_per_axis(), [3]);
    /// assert_eq!([grid.axis_range(0, 0), grid.axis_range(0, 1)], [0..6, 6..16]);
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`ChunkGrid::new`], and `Unsupported` if an origin is not less than its chunk
    /// length.
    pub fn with_origin(shape: &[u64], chunk_shape: &[u64], origin: &[u64]) -> Result<Self> {
        Self::with_axis_chunks(shape, regular_axes(shape, chunk_shape, origin)?)
    }

    /// Returns a grid as [`Self::with_origin`], which may have any number of cells. Counts that do not fit in a `u64` are
    /// `u64::MAX`, and then chunks have no numbers of their own: see [`Self::is_numbered`].
    ///
    /// ```
    /// use gridfusion_core::grid::ChunkGrid;
    ///
    /// let grid = ChunkGrid::with_any_size(&[1 << 63, 1 << 63], &[10, 10], &[0, 0])?;
    /// assert_eq!((grid.cells(), grid.is_numbered()), (u64::MAX, false));
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for shapes and origins that do not fit each other.
    pub fn with_any_size(shape: &[u64], chunk_shape: &[u64], origin: &[u64]) -> Result<Self> {
        let axes = regular_axes(shape, chunk_shape, origin)?;
        Self::counted(shape, axes, |factors| Some(product(factors).unwrap_or(u64::MAX)))
    }

    /// Returns a grid with the given chunks per axis. Listed borders must end at the length of their
    /// axis.
    ///
    /// # Errors
    /// `Unsupported` if the number of cells overflows a `u64`; `Internal` if listed borders do not end
    /// at the length of their axis.
    pub fn with_axis_chunks(shape: &[u64], axes: Vec<AxisChunks>) -> Result<Self> {
        Self::counted(shape, axes, product)
    }

    /// Returns a grid whose cells and chunks are counted by `count`; `None` is too many.
    fn counted(
        shape: &[u64],
        axes: Vec<AxisChunks>,
        count: impl Fn(&[u64]) -> Option<u64>,
    ) -> Result<Self> {
        let fits = |(chunks, len): (&AxisChunks, &u64)| match chunks {
            AxisChunks::Every { .. } => true,
            AxisChunks::At(borders) => borders.last() == Some(len),
        };
        if axes.len() != shape.len() || !axes.iter().zip(shape).all(fits) {
            return Err(Error::internal("chunk borders that do not end where their axis ends"));
        }
        let too_large =
            || Error::unsupported(format!("an array of shape {shape:?} has more than 2^64 cells"));
        let chunks_per_axis = axes.iter().zip(shape).map(|(axis, &len)| axis.chunks(len));
        let chunks_per_axis: Vec<u64> =
            chunks_per_axis.collect::<Option<_>>().ok_or_else(too_large)?;
        let cells = count(shape).ok_or_else(too_large)?;
        let chunks = count(&chunks_per_axis).ok_or_else(too_large)?;
        Ok(Self { shape: shape.to_vec(), axes, chunks_per_axis, cells, chunks })
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of positions along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the number of positions in the longest chunk of each axis, as if none were clipped.
    pub fn chunk_shape(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.axes.iter().map(AxisChunks::edge)
    }

    /// Returns the chunks of each axis.
    pub fn axis_chunks(&self) -> &[AxisChunks] {
        &self.axes
    }

    /// Returns how many positions of the first chunk of `axis` lie before the array.
    pub fn origin(&self, axis: usize) -> u64 {
        match &self.axes[axis] {
            AxisChunks::Every { before, .. } => *before,
            AxisChunks::At(_) => 0,
        }
    }

    /// Returns the number of chunks along each axis.
    pub fn chunks_per_axis(&self) -> &[u64] {
        &self.chunks_per_axis
    }

    /// Returns the number of cells of the array; `u64::MAX` if they are more.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Returns the number of chunks of the array; `u64::MAX` if they are more.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Whether each chunk has a row-major number of its own. In larger grids, only coordinates tell chunks apart.
    pub fn is_numbered(&self) -> bool {
        self.chunks < u64::MAX
    }

    /// Returns the chunk coordinate on `axis` that holds `index`, which must lie in the axis.
    pub fn chunk_of(&self, axis: usize, index: u64) -> u64 {
        self.axes[axis].chunk_of(index)
    }

    /// Returns the indices of `axis` that chunk coordinate `chunk` covers, clipped to the array.
    pub fn axis_range(&self, axis: usize, chunk: u64) -> Range<u64> {
        self.axes[axis].range(chunk, self.shape[axis])
    }

    /// Returns the chunk coordinates on `axis` that hold an index of `selection`.
    pub fn chunks_of(&self, axis: usize, selection: &AxisSelection) -> AxisSelection {
        let touched = |range: &Range<u64>| {
            self.chunk_of(axis, range.start)..self.chunk_of(axis, range.end - 1) + 1
        };
        let ranges = selection.ranges().iter().map(touched);
        AxisSelection::from_ranges(self.chunks_per_axis[axis], ranges)
    }

    /// Returns the number of positions along each axis of the chunk at `coordinates`, clipped to the
    /// array.
    pub fn extents(&self, coordinates: &[u64]) -> Vec<u64> {
        let clip = |(axis, &chunk)| {
            let range = self.axis_range(axis, chunk);
            range.end - range.start
        };
        coordinates.iter().enumerate().map(clip).collect()
    }

    /// Returns the chunk's number in row-major order, or `None` if `coordinates` lie outside the grid, which must be
    /// [numbered](Self::is_numbered).
    pub fn chunk_number(&self, coordinates: &[u64]) -> Option<u64> {
        let inside = coordinates.len() == self.rank()
            && coordinates.iter().zip(&self.chunks_per_axis).all(|(chunk, count)| chunk < count);
        inside.then(|| self.number_of(coordinates))
    }

    /// Returns the number of a chunk of the grid in row-major order. In a grid that is not
    /// [numbered](Self::is_numbered), chunks may share it.
    pub(crate) fn number_of(&self, coordinates: &[u64]) -> u64 {
        let axes = coordinates.iter().zip(&self.chunks_per_axis);
        axes.fold(0_u64, |number, (&at, &len)| number.wrapping_mul(len).wrapping_add(at))
    }

    /// Returns the coordinates of the chunk with this row-major number; the grid must have chunks.
    pub fn chunk_coordinates(&self, chunk_number: u64) -> Vec<u64> {
        order::unravel(chunk_number, &self.chunks_per_axis)
    }
}

/// Returns the chunks of each axis of a regular grid.
fn regular_axes(shape: &[u64], chunk_shape: &[u64], origin: &[u64]) -> Result<Vec<AxisChunks>> {
    if shape.len() != chunk_shape.len() || shape.len() > super::MAX_RANK {
        return Err(Error::unsupported(format!(
            "shape {shape:?} and chunk shape {chunk_shape:?} must have the same rank, up to {}",
            super::MAX_RANK
        )));
    }
    let chunk_shape: Vec<NonZeroU64> = chunk_shape
        .iter()
        .map(|&edge| NonZeroU64::new(edge))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::unsupported(format!("chunk shape {chunk_shape:?} has a 0")))?;
    let inside = |(at, edge): (&u64, &NonZeroU64)| *at < edge.get();
    if origin.len() != shape.len() || !origin.iter().zip(&chunk_shape).all(inside) {
        return Err(Error::unsupported(format!(
            "grid origin {origin:?} lies outside the first chunk, whose shape is {chunk_shape:?}"
        )));
    }
    let every = |(&edge, &before)| AxisChunks::Every { edge, before };
    Ok(chunk_shape.iter().zip(origin).map(every).collect())
}

/// Returns the product, or `None` if it overflows. A factor of 0 gives 0, even beside factors that
/// overflow.
fn product(factors: &[u64]) -> Option<u64> {
    if factors.contains(&0) {
        return Some(0);
    }
    factors.iter().try_fold(1_u64, |product, &factor| product.checked_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_in_exactly_one_chunk() {
        for (len, edge, origin) in [
            (0, 1, 0),
            (1, 1, 0),
            (7, 3, 0),
            (6, 3, 0),
            (2, 5, 0),
            (9, 1, 0),
            (0, 4, 3),
            (1, 4, 3),
            (2, 4, 3),
            (19, 10, 4),
            (16, 10, 4),
            (2, 10, 4),
        ] {
            let grid = ChunkGrid::with_origin(&[len], &[edge], &[origin]).unwrap();
            let covered: Vec<u64> =
                (0..grid.chunks()).flat_map(|chunk| grid.axis_range(0, chunk)).collect();
            assert_eq!(covered, (0..len).collect::<Vec<_>>(), "{len} by {edge}");
            for index in 0..len {
                assert!(grid.axis_range(0, grid.chunk_of(0, index)).contains(&index));
            }
        }
    }

    #[test]
    fn numbers_and_coordinates_are_inverse() {
        let grid = ChunkGrid::new(&[5, 7, 2], &[2, 3, 1]).unwrap();
        for number in 0..grid.chunks() {
            assert_eq!(grid.chunk_number(&grid.chunk_coordinates(number)), Some(number));
        }
        assert_eq!(grid.chunk_number(&[3, 0, 0]), None);
        assert_eq!(grid.chunk_number(&[0, 0]), None);
    }

    #[test]
    fn grids_of_any_size_know_their_axes() {
        let half = 1 << 63;
        let grid = ChunkGrid::with_any_size(&[half, half, 7], &[10, 1, 3], &[4, 0, 2]).unwrap();
        assert_eq!((grid.cells(), grid.chunks(), grid.is_numbered()), (u64::MAX, u64::MAX, false));
        assert_eq!(grid.chunks_per_axis(), [(half + 4).div_ceil(10), half, 3]);
        assert_eq!(grid.axis_range(1, half - 1), half - 1..half);
        assert!(grid.chunk_number(&[half / 10, half - 1, 2]).is_some());
        let small = ChunkGrid::with_any_size(&[19], &[10], &[4]).unwrap();
        assert_eq!(small, ChunkGrid::with_origin(&[19], &[10], &[4]).unwrap());
        assert!(small.is_numbered() && ChunkGrid::with_any_size(&[1], &[0], &[0]).is_err());
        assert_eq!(
            ChunkGrid::with_any_size(&[half, half, 0], &[1, 1, 1], &[0; 3]).unwrap().cells(),
            0
        );
    }

    #[test]
    fn impossible_grids_are_refused() {
        for (shape, chunk) in [
            (vec![1; 9], vec![1; 9]),
            (vec![3], vec![0]),
            (vec![3, 3], vec![3]),
            (vec![u64::MAX, 2], vec![1, 1]),
        ] {
            assert!(ChunkGrid::new(&shape, &chunk).is_err(), "{shape:?} {chunk:?}");
        }
        assert!(ChunkGrid::with_origin(&[3], &[2], &[2]).is_err());
        assert!(ChunkGrid::with_origin(&[u64::MAX], &[2], &[1]).is_err());
        let scalar = ChunkGrid::new(&[], &[]);
        assert!(scalar.is_ok_and(|grid| (grid.cells(), grid.chunks()) == (1, 1)));
        let empty = ChunkGrid::new(&[u64::MAX, u64::MAX, 0], &[1, 1, 1]);
        assert!(empty.is_ok_and(|grid| grid.cells() == 0));
    }
}
