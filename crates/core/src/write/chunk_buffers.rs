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
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::util::bit_util;

use super::cell_buffer::{CellBuffer, Piece, Run, width_of};
use super::{NewArray, NewChunk};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, for_each_run, unravel};

/// The chunks of all variables in some rows of chunks, whose cells come in boxes.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array};
/// use arrow::datatypes::{DataType, Int32Type};
/// use gridfusion_core::grid::AxisSelection;
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
/// let mut chunks = ChunkBuffers::try_new(&array, 0..2)?;
/// chunks.put(&axes, &[cells])?;
/// let all = [AxisSelection::all(2), AxisSelection::all(2)];
/// let chunks = chunks.finish(&all)?;
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
    /// Per variable, the cells of each chunk.
    buffers: Vec<Vec<CellBuffer>>,
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
    /// Whether chunks of a type can be put together: all of its cells have one width.
    #[must_use]
    pub fn takes(data_type: &DataType) -> bool {
        width_of(data_type).is_some()
    }

    /// Makes the chunks of the array that have one of these coordinates along the first axis.
    ///
    /// # Errors
    /// `Internal` for variables of other types than those that buffers [take](Self::takes).
    pub fn try_new(array: &NewArray, rows: Range<u64>) -> Result<Self> {
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
        let chunks = counts.iter().product();
        let of_variable = |data_type: &DataType| {
            (0..chunks).map(|number| CellBuffer::try_new(data_type, len(number))).collect()
        };
        let buffers = array.variables().iter().map(|it| of_variable(&it.data_type));
        let buffers = buffers.collect::<Result<_>>()?;
        Ok(Self { axes, counts, buffers })
    }

    /// Copies the cells of a box to their places: a column per variable, row by row along the axes, the slowest first.
    ///
    /// # Errors
    /// `Internal` if an index belongs to other chunks, or there are not as many cells as the box has.
    pub fn put(&mut self, axes: &[BoxAxis<'_>], columns: &[ArrayRef]) -> Result<()> {
        let cells: usize = axes.iter().map(|it| it.indices.len()).product();
        if columns.len() != self.buffers.len() || columns.iter().any(|it| it.len() != cells) {
            return Err(Error::internal(format!("columns of other lengths than {cells}")));
        }
        let pieces = columns.iter().map(Piece::try_new).collect::<Result<Vec<_>>>()?;
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
                self.copy(&at, last, &pieces, from, run.positions.len());
            }
            step(&mut positions, outer);
        }
        Ok(())
    }

    /// Copies a run of cells of all variables along an axis.
    fn copy(&mut self, at: &[Place], along: usize, pieces: &[Piece], from: usize, len: usize) {
        let (mut chunk, mut cell, mut stride) = (0, 0, 1);
        for (number, (axis, place)) in self.axes.iter().zip(at).enumerate() {
            let len = axis.len_of(place.chunk);
            chunk = chunk * axis.ranges.len() + place.chunk;
            cell = cell * len + place.at;
            if number > along {
                stride *= len;
            }
        }
        for (buffers, piece) in self.buffers.iter_mut().zip(pieces) {
            buffers[chunk].copy(piece, from, Run { at: cell, stride, len });
        }
    }

    /// Returns the chunks, variable by variable for each of the coordinates. `given` has the indices along each axis that cells were put to.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub fn finish(self, given: &[AxisSelection]) -> Result<Vec<NewChunk>> {
        let Self { axes, counts, buffers } = self;
        let mut chunks = vec![];
        for (variable, buffers) in buffers.into_iter().enumerate() {
            for (number, cells) in buffers.into_iter().enumerate() {
                let at = unravel(number as u64, &counts);
                let range = |(axis, at): (&ChunkAxis, &u64)| axis.ranges[*at as usize].clone();
                let ranges = axes.iter().zip(&at).map(range);
                let within = given.iter().zip(ranges).map(|(axis, range)| axis.within(range));
                let given = cells_given(&within.collect::<Vec<_>>());
                let cells = cells.finish(given.as_ref())?;
                let coordinates = axes.iter().zip(at).map(|(axis, at)| axis.first + at).collect();
                chunks.push(NewChunk { variable, coordinates, cells, given });
            }
        }
        Ok(chunks)
    }
}

impl ChunkAxis {
    fn len_of(&self, chunk: usize) -> usize {
        let range = &self.ranges[chunk];
        (range.end - range.start) as usize
    }

    /// Returns the place of each index.
    fn places(&self, indices: &[u64]) -> Result<Vec<Place>> {
        let place = |index: &u64| {
            let chunk = self.ranges.partition_point(|range| range.end <= *index);
            match self.ranges.get(chunk).filter(|range| range.contains(index)) {
                Some(range) => Ok(Place { chunk, at: (index - range.start) as usize }),
                None => Err(Error::internal(format!("index {index} is in none of the chunks"))),
            }
        };
        indices.iter().map(place).collect()
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

/// Returns a bit per cell of a box, which is set if each axis has its index; `None` if all are.
fn cells_given(axes: &[AxisSelection]) -> Option<NullBuffer> {
    if axes.iter().all(AxisSelection::is_all) {
        return None;
    }
    let cells: usize = axes.iter().map(|axis| axis.len() as usize).product();
    let mut bits = MutableBuffer::from_len_zeroed(cells.div_ceil(8));
    for_each_run(axes, |run| run.for_each(|at| bit_util::set_bit(&mut bits, at as usize)));
    Some(NullBuffer::new(BooleanBuffer::new(bits.into(), 0, cells)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, BooleanArray, Float64Array, Int16Array, Int32Array};
    use arrow::datatypes::{Float64Type, Int16Type};
    use rand::rngs::SmallRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    use super::super::{NewDimension, NewVariable};
    use super::*;

    /// A cell of each variable of the test.
    type Cells = (Option<i16>, Option<bool>, Option<f64>);

    const TYPES: [DataType; 3] = [DataType::Int16, DataType::Boolean, DataType::Float64];

    fn array(rng: &mut SmallRng, rank: usize) -> NewArray {
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
        let chunks: Vec<u64> = shape.iter().map(|len| rng.random_range(1..=*len)).collect();
        let dimension = |(axis, len): (usize, &u64)| NewDimension {
            name: format!("d{axis}"),
            labels: Arc::new(Int32Array::from_iter(0..*len as i32)),
            attributes: Default::default(),
        };
        let variable = |data_type: &DataType| NewVariable {
            name: data_type.to_string(),
            data_type: data_type.clone(),
            fill: None,
            attributes: Default::default(),
        };
        let dimensions = shape.iter().enumerate().map(dimension).collect();
        let variables = TYPES.iter().map(variable).collect();
        let region = shape.iter().map(|len| {
            let start = rng.random_range(0..*len);
            start..rng.random_range(start + 1..=*len)
        });
        let region = region.collect();
        NewArray::try_new(dimensions, variables, &chunks).unwrap().with_region(region).unwrap()
    }

    /// Returns the columns of random cells, some of which are NULL.
    fn columns(rng: &mut SmallRng, cells: usize) -> (Vec<Cells>, Vec<ArrayRef>) {
        let nulls = if rng.random() { 0.3 } else { 0.0 };
        let cells: Vec<Cells> = (0..cells)
            .map(|_| {
                let mut is_there = || !rng.random_bool(nulls);
                let there = [is_there(), is_there(), is_there()];
                let values: (i16, bool, f64) = rng.random();
                (
                    there[0].then_some(values.0),
                    there[1].then_some(values.1),
                    there[2].then_some(values.2),
                )
            })
            .collect();
        // The first cell belongs to an array of which the column is a slice.
        let padded = || std::iter::once((None, None, None)).chain(cells.iter().copied());
        let columns: [ArrayRef; 3] = [
            Arc::new(Int16Array::from_iter(padded().map(|it| it.0))),
            Arc::new(BooleanArray::from_iter(padded().map(|it| it.1))),
            Arc::new(Float64Array::from_iter(padded().map(|it| it.2))),
        ];
        let columns = columns.iter().map(|it| it.slice(1, cells.len())).collect();
        (cells, columns)
    }

    /// Returns a cell of a column of the test, as one of `Cells`.
    fn shown(cells: &ArrayRef, variable: usize, at: usize) -> Option<String> {
        cells.is_valid(at).then(|| match variable {
            0 => cells.as_primitive::<Int16Type>().value(at).to_string(),
            1 => cells.as_boolean().value(at).to_string(),
            _ => cells.as_primitive::<Float64Type>().value(at).to_string(),
        })
    }

    #[test]
    fn boxes_in_any_order_of_axes_and_indices_become_chunks() {
        let mut rng = SmallRng::seed_from_u64(46);
        for case in 0..400 {
            let rank = 1 + case % 4;
            let array = array(&mut rng, rank);
            let first = array.chunks_of_region()[0].clone();
            let start = rng.random_range(first.clone());
            let rows = start..rng.random_range(start + 1..=first.end);
            // Boxes have all indices of the outer axes, and the others in two parts.
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.shuffle(&mut rng);
            let mut indices: Vec<Vec<u64>> = vec![vec![]; rank];
            for axis in 0..rank {
                let range = array.region()[axis].clone();
                let slab = array.range_in(0, rows.start).start..array.range_in(0, rows.end - 1).end;
                indices[axis] = if axis == 0 { slab } else { range }.collect();
                if rng.random() {
                    indices[axis].retain(|_| rng.random_bool(0.8));
                }
                match rng.random_range(0..3) {
                    0 => indices[axis].shuffle(&mut rng),
                    1 => indices[axis].reverse(),
                    _ => {}
                }
            }
            let mut expected: HashMap<Vec<u64>, Cells> = HashMap::new();
            let mut buffers = ChunkBuffers::try_new(&array, rows.clone()).unwrap();
            let cut = rng.random_range(0..=indices[axes[0]].len());
            for part in [0..cut, cut..indices[axes[0]].len()] {
                let mut of_box: Vec<&[u64]> = axes.iter().map(|axis| &indices[*axis][..]).collect();
                of_box[0] = &of_box[0][part];
                let lens: Vec<u64> = of_box.iter().map(|it| it.len() as u64).collect();
                let (cells, columns) = columns(&mut rng, lens.iter().product::<u64>() as usize);
                for (number, cell) in cells.into_iter().enumerate() {
                    let mut at = vec![0; rank];
                    let positions = unravel(number as u64, &lens);
                    for ((axis, indices), position) in axes.iter().zip(&of_box).zip(positions) {
                        at[*axis] = indices[position as usize];
                    }
                    expected.insert(at, cell);
                }
                let axis = |(axis, indices): (&usize, &&'_ [u64])| (*axis, indices.to_vec());
                let owned: Vec<(usize, Vec<u64>)> = axes.iter().zip(&of_box).map(axis).collect();
                let boxes: Vec<BoxAxis<'_>> =
                    owned.iter().map(|(axis, indices)| BoxAxis { axis: *axis, indices }).collect();
                buffers.put(&boxes, &columns).unwrap();
            }
            let given = indices.iter().zip(array.grid().shape()).map(|(indices, len)| {
                let mask: Vec<bool> = (0..*len).map(|at| indices.contains(&at)).collect();
                AxisSelection::from_mask(&mask)
            });
            let chunks = buffers.finish(&given.collect::<Vec<_>>()).unwrap();
            let mut found = 0;
            for chunk in chunks {
                assert!(rows.contains(&chunk.coordinates[0]), "case {case}");
                let ranges = array.ranges_of(&chunk).unwrap();
                let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
                for at in 0..chunk.cells.len() {
                    let positions = unravel(at as u64, &lens);
                    let index: Vec<u64> =
                        ranges.iter().zip(positions).map(|(range, at)| range.start + at).collect();
                    let cell = expected.get(&index);
                    let is_given = chunk.given.as_ref().is_none_or(|given| given.is_valid(at));
                    assert_eq!(is_given, cell.is_some(), "case {case}: {index:?}");
                    let expected = cell.and_then(|cell| match chunk.variable {
                        0 => cell.0.map(|it| it.to_string()),
                        1 => cell.1.map(|it| it.to_string()),
                        _ => cell.2.map(|it| it.to_string()),
                    });
                    assert_eq!(shown(&chunk.cells, chunk.variable, at), expected, "case {case}");
                    found += usize::from(cell.is_some());
                }
            }
            assert_eq!(found, TYPES.len() * expected.len(), "case {case}");
        }
    }

    #[test]
    fn an_index_outside_of_the_chunks_is_refused() {
        let mut rng = SmallRng::seed_from_u64(1);
        let array = array(&mut rng, 1);
        let mut buffers = ChunkBuffers::try_new(&array, 0..1).unwrap();
        let (_, columns) = columns(&mut rng, 1);
        let outside = BoxAxis { axis: 0, indices: &[99] };
        assert!(buffers.put(&[outside], &columns).is_err());
    }
}
