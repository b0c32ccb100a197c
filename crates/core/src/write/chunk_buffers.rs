//! [`ChunkBuffers`]: chunks of a new array that are put together from boxes of another one.
//!
//! ```text
//!   a chunk of an array that is read        rows of chunks of the new array
//!            lon                                lat
//!        ┌──────────┐                        ┌─────┬─────┐
//!   lat  │ a  b  c  │      each cell goes    │ a d │     │
//!        │ d  e  f  │  ──▶ to the index      │ b e │     │ lon     axes in another order, and other chunks
//!        └──────────┘      of its labels     ├─────┼─────┤
//!                                            │ c f │     │
//! ```
//!
//! Cells that lie side by side in both arrays are copied as a run.

use std::ops::Range;

use arrow::array::ArrayRef;

use super::cell_buffer::{CellBuffer, GivenCells, Piece, Run};
use super::{NewArray, NewChunk};
use crate::error::{Error, Result};
use crate::grid::unravel;

/// The chunks of all variables in some rows of chunks, whose cells come in boxes or as rows.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array};
/// use arrow::datatypes::{DataType, Int32Type};
/// use gridfusion_core::write::{BoxAxis, ChunkBuffers, NewArray, NewDimension, NewVariable};
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let dimension = |name: &str, labels: Vec<f64>| NewDimension {
///     name: name.into(),
///     labels: Arc::new(Float64Array::from(labels)),
///     attributes: Default::default(),
/// };
/// let height = NewVariable {
///     name: "height".into(),
///     data_type: DataType::Int32,
///     fill: None,
///     attributes: Default::default(),
/// };
/// let dimensions = vec![dimension("lon", vec![0.0, 1.0]), dimension("lat", vec![50.0, 60.0])];
/// let array = NewArray::try_new(dimensions, vec![height], &[1, 2])?;
///
/// // A box whose rows are latitudes, from north to south.
/// let cells: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
/// let axes = [BoxAxis { axis: 1, indices: &[1, 0] }, BoxAxis { axis: 0, indices: &[0, 1] }];
/// let mut chunks = ChunkBuffers::new(&array, 0..2);
/// chunks.put(&axes, &[cells])?;
/// let chunks = chunks.finish()?;
/// let cells: Vec<_> = chunks.iter().map(|it| it.cells.as_primitive::<Int32Type>().values().to_vec()).collect();
/// assert_eq!(cells, [[3, 1], [4, 2]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ChunkBuffers {
    axes: Vec<ChunkAxis>,
    /// The chunks per axis.
    counts: Vec<u64>,
    /// The cells that are there, of each chunk.
    given: Vec<GivenCells>,
    /// Per variable, the cells of each chunk.
    buffers: Vec<Vec<CellBuffer>>,
}

/// Rows of an array: a column per variable, in the order of an array's variables.
#[derive(Debug)]
pub struct CellRows {
    pieces: Vec<Piece>,
    len: usize,
}

/// An axis of a box of cells.
#[derive(Debug, Clone, Copy)]
pub struct BoxAxis<'a> {
    /// The axis of the new array.
    pub axis: usize,
    /// The index along that axis, per position in the box.
    pub indices: &'a [u64],
}

/// The chunks along an axis.
#[derive(Debug)]
struct ChunkAxis {
    /// The coordinate of the first chunk.
    first: u64,
    /// The indices of each chunk that are written.
    ranges: Vec<Range<u64>>,
}

/// A place along an axis.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The number of the chunk, among those of the axis.
    chunk: usize,
    /// The index in the chunk.
    at: usize,
}

/// Positions of a box, side by side, whose places are side by side.
struct PlaceRun {
    positions: Range<usize>,
    first: Place,
}

impl ChunkBuffers {
    /// Makes the chunks of the array that have one of these coordinates along the first axis.
    #[must_use]
    pub fn new(array: &NewArray, rows: Range<u64>) -> Self {
        let mut coordinates = array.chunks_of_region();
        if let Some(first) = coordinates.first_mut() {
            *first = rows;
        }
        let counts: Vec<u64> = coordinates.iter().map(|it| it.end - it.start).collect();
        let axis = |(axis, coordinates): (usize, &Range<u64>)| ChunkAxis {
            first: coordinates.start,
            ranges: coordinates.clone().map(|chunk| array.range_in(axis, chunk)).collect(),
        };
        let axes: Vec<ChunkAxis> = coordinates.iter().enumerate().map(axis).collect();
        let len = |number: u64| {
            let at = unravel(number, &counts).into_iter().zip(&axes);
            at.map(|(chunk, axis)| axis.len_of(chunk as usize)).product::<usize>()
        };
        let lens: Vec<usize> = (0..counts.iter().product()).map(len).collect();
        let buffers = array.variables().iter().map(|variable| {
            lens.iter().map(|len| CellBuffer::new(&variable.data_type, *len)).collect()
        });
        let buffers = buffers.collect();
        Self {
            given: lens.iter().map(|len| GivenCells::new(*len)).collect(),
            axes,
            counts,
            buffers,
        }
    }

    /// Returns the coordinates of the chunks along the first axis.
    pub fn rows(&self) -> Range<u64> {
        let first = self.axes.first().map_or(0, |axis| axis.first);
        first..first + self.counts.first().copied().unwrap_or(1)
    }

    /// Copies the cells of a box to their places: a column per variable, row by row along the axes, the slowest first.
    ///
    /// # Errors
    /// `Internal` if an index belongs to other chunks, if there are not as many cells as the box has, or a cell is there already.
    pub fn put(&mut self, axes: &[BoxAxis<'_>], columns: &[ArrayRef]) -> Result<()> {
        let cells: usize = axes.iter().map(|it| it.indices.len()).product();
        let rows = CellRows::try_new(columns)?;
        if rows.len != cells {
            return Err(Error::internal(format!("{} cells for a box of {cells}", rows.len)));
        }
        let places = |it: &BoxAxis<'_>| self.axes[it.axis].places(it.indices);
        let places = axes.iter().map(places).collect::<Result<Vec<_>>>()?;
        // Only the axes in front of the last one are stepped along index by index.
        let (runs, last) = match (places.last(), axes.last()) {
            (Some(places), Some(axis)) => (runs_of(places), axis.axis),
            _ => (vec![PlaceRun { positions: 0..1, first: Place::default() }], 0),
        };
        let outer = &axes[..axes.len().saturating_sub(1)];
        let inner = axes.last().map_or(1, |it| it.indices.len());
        let mut positions = vec![0; outer.len()];
        let mut at = vec![Place::default(); self.axes.len()];
        for row in 0..cells / inner.max(1) {
            for ((axis, places), position) in outer.iter().zip(&places).zip(&positions) {
                at[axis.axis] = places[*position];
            }
            for run in &runs {
                if let Some(at) = at.get_mut(last) {
                    *at = run.first;
                }
                let from = row * inner + run.positions.start;
                if self.copy(&at, last, &rows, from, run.positions.len())?.is_some() {
                    return Err(Error::internal("two boxes have the same cell"));
                }
            }
            step(&mut positions, outer);
        }
        Ok(())
    }

    /// Copies rows whose cells lie side by side along the last axis. The first one belongs to the cell with these indices. Returns the
    /// first row whose cell is there already, if there is one.
    ///
    /// # Errors
    /// `Internal` if a cell belongs to other chunks.
    pub fn put_rows(
        &mut self,
        rows: &CellRows,
        run: Range<usize>,
        first: &[u64],
    ) -> Result<Option<usize>> {
        let place = |(axis, index): (&ChunkAxis, &u64)| axis.place(*index);
        let mut at = self.axes.iter().zip(first).map(place).collect::<Result<Vec<_>>>()?;
        let (Some(axis), Some(index)) = (self.axes.len().checked_sub(1), first.last()) else {
            return self.copy(&at, 0, rows, run.start, run.len());
        };
        let mut from = run.start;
        while from < run.end {
            let place = self.axes[axis].place(index + (from - run.start) as u64)?;
            at[axis] = place;
            let len = (self.axes[axis].len_of(place.chunk) - place.at).min(run.end - from);
            if let Some(repeated) = self.copy(&at, axis, rows, from, len)? {
                return Ok(Some(from + repeated));
            }
            from += len;
        }
        Ok(None)
    }

    /// Copies a run of cells of all variables along an axis. Returns the position of the first one that is there already, if there is one.
    fn copy(
        &mut self,
        at: &[Place],
        along: usize,
        rows: &CellRows,
        from: usize,
        len: usize,
    ) -> Result<Option<usize>> {
        let (mut chunk, mut cell, mut stride) = (0, 0, 1);
        for (number, (axis, place)) in self.axes.iter().zip(at).enumerate() {
            let len = axis.len_of(place.chunk);
            chunk = chunk * axis.ranges.len() + place.chunk;
            cell = cell * len + place.at;
            if number > along {
                stride *= len;
            }
        }
        let run = Run { at: cell, stride, len };
        for (buffers, piece) in self.buffers.iter_mut().zip(&rows.pieces) {
            buffers[chunk].copy(piece, from, run)?;
        }
        Ok(self.given[chunk].set(run))
    }

    /// Returns the chunks, variable by variable. Cells that were not put are NULL.
    ///
    /// # Errors
    /// If Arrow cannot put the cells of a chunk together.
    pub fn finish(self) -> Result<Vec<NewChunk>> {
        let Self { axes, counts, given, buffers } = self;
        let given: Vec<_> = given.into_iter().map(GivenCells::finish).collect();
        let mut chunks = vec![];
        for (variable, buffers) in buffers.into_iter().enumerate() {
            for ((number, cells), given) in (0_u64..).zip(buffers).zip(&given) {
                let cells = cells.finish(given.as_ref())?;
                let at = axes.iter().zip(unravel(number, &counts));
                let coordinates = at.map(|(axis, at)| axis.first + at).collect();
                chunks.push(NewChunk { variable, coordinates, cells, given: given.clone() });
            }
        }
        Ok(chunks)
    }
}

impl CellRows {
    /// Takes columns, one per variable.
    ///
    /// # Errors
    /// `Internal` if they differ in length.
    pub fn try_new(columns: &[ArrayRef]) -> Result<Self> {
        let len = columns.first().map_or(0, |it| it.len());
        if columns.iter().any(|it| it.len() != len) {
            return Err(Error::internal("columns of cells that differ in length"));
        }
        Ok(Self { pieces: columns.iter().map(Piece::new).collect(), len })
    }
}

impl ChunkAxis {
    fn len_of(&self, chunk: usize) -> usize {
        let range = &self.ranges[chunk];
        (range.end - range.start) as usize
    }

    fn place(&self, index: u64) -> Result<Place> {
        let chunk = self.ranges.partition_point(|range| range.end <= index);
        match self.ranges.get(chunk).filter(|range| range.contains(&index)) {
            Some(range) => Ok(Place { chunk, at: (index - range.start) as usize }),
            None => Err(Error::internal(format!("index {index} is in none of the chunks"))),
        }
    }

    /// Returns the place of each index.
    fn places(&self, indices: &[u64]) -> Result<Vec<Place>> {
        indices.iter().map(|index| self.place(*index)).collect()
    }
}

/// Steps to the next cell of the outer axes of a box.
fn step(positions: &mut [usize], axes: &[BoxAxis<'_>]) {
    for (position, axis) in positions.iter_mut().zip(axes).rev() {
        *position += 1;
        if *position < axis.indices.len() {
            return;
        }
        *position = 0;
    }
}

/// Cuts places where one does not follow the one before in the same chunk.
fn runs_of(places: &[Place]) -> Vec<PlaceRun> {
    let follows = |a: &Place, b: &Place| a.chunk == b.chunk && a.at + 1 == b.at;
    let mut start = 0;
    let run = |run: &[Place]| {
        let positions = start..start + run.len();
        start = positions.end;
        PlaceRun { positions, first: run[0] }
    };
    places.chunk_by(follows).map(run).collect()
}

#[cfg(test)]
mod tests;
