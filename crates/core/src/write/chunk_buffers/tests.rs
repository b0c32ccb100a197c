use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Float64Array, Int16Array, Int32Array, StringArray};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::super::{NewDimension, NewVariable};
use super::*;

/// A cell of each variable of the test, as text; NULL is empty.
type Cells = [String; 4];

const TYPES: [DataType; 4] =
    [DataType::Int16, DataType::Boolean, DataType::Float64, DataType::Utf8];

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

/// Returns columns of random cells, some of which are NULL.
fn columns(rng: &mut SmallRng, cells: usize) -> (Vec<Cells>, Vec<ArrayRef>) {
    let nulls = if rng.random() { 0.3 } else { 0.0 };
    // The first cell belongs to an array of which the column is a slice.
    let numbers: [Vec<Option<u16>>; 4] = std::array::from_fn(|_| {
        (0..=cells).map(|_| (!rng.random_bool(nulls)).then(|| rng.random())).collect()
    });
    let [a, b, c, d] = &numbers;
    let columns: [ArrayRef; 4] = [
        Arc::new(Int16Array::from_iter(a.iter().map(|it| it.map(|it| it as i16)))),
        Arc::new(BooleanArray::from_iter(b.iter().map(|it| it.map(|it| it % 2 == 0)))),
        Arc::new(Float64Array::from_iter(c.iter().map(|it| it.map(|it| f64::from(it) / 8.0)))),
        Arc::new(StringArray::from_iter(d.iter().map(|it| it.map(|it| format!("t{it}"))))),
    ];
    let columns = columns.map(|it| it.slice(1, cells));
    let texts = |at| columns.each_ref().map(|column| array_value_to_string(column, at).unwrap());
    ((0..cells).map(texts).collect(), columns.to_vec())
}

/// Compares chunks with the cells that were put into them.
fn check(array: &NewArray, chunks: &[NewChunk], expected: &HashMap<Vec<u64>, Cells>) {
    let mut found = 0;
    for chunk in chunks {
        let ranges = array.ranges_of(chunk).unwrap();
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        for at in 0..chunk.cells.len() {
            let positions = ranges.iter().zip(unravel(at as u64, &lens));
            let index: Vec<u64> = positions.map(|(range, at)| range.start + at).collect();
            let cell = expected.get(&index).map(|cells| cells[chunk.variable].as_str());
            let is_given = chunk.given.as_ref().is_none_or(|given| given.is_valid(at));
            assert_eq!(is_given, cell.is_some(), "{index:?}");
            let text = array_value_to_string(&chunk.cells, at).unwrap();
            assert_eq!(text, cell.unwrap_or_default(), "{index:?}");
            found += usize::from(is_given);
        }
    }
    assert_eq!(found, TYPES.len() * expected.len());
}

/// Returns some of the rows of chunks, and the indices along each axis, of which some are left out.
fn indices(rng: &mut SmallRng, array: &NewArray) -> (Range<u64>, Vec<Vec<u64>>) {
    let first = array.chunks_of_region()[0].clone();
    let start = rng.random_range(first.clone());
    let rows = start..rng.random_range(start + 1..=first.end);
    let mut ranges = array.region().to_vec();
    ranges[0] = array.range_in(0, rows.start).start..array.range_in(0, rows.end - 1).end;
    let kept = if rng.random() { 0.8 } else { 1.0 };
    let indices = ranges.into_iter().map(|it| it.filter(|_| rng.random_bool(kept)).collect());
    (rows, indices.collect())
}

#[test]
fn boxes_in_any_order_of_axes_and_indices_become_chunks() {
    let mut rng = SmallRng::seed_from_u64(46);
    for case in 0..400 {
        let rank = 1 + case % 4;
        let array = array(&mut rng, rank);
        let (rows, mut indices) = indices(&mut rng, &array);
        for indices in &mut indices {
            match rng.random_range(0..3) {
                0 => indices.shuffle(&mut rng),
                1 => indices.reverse(),
                _ => {}
            }
        }
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.shuffle(&mut rng);
        let mut expected = HashMap::new();
        let mut buffers = ChunkBuffers::new(&array, rows);
        // One axis is cut into two boxes.
        let cut = rng.random_range(0..=indices[axes[0]].len());
        for part in [0..cut, cut..indices[axes[0]].len()] {
            let mut of_box: Vec<&[u64]> = axes.iter().map(|axis| &indices[*axis][..]).collect();
            of_box[0] = &of_box[0][part];
            let lens: Vec<u64> = of_box.iter().map(|it| it.len() as u64).collect();
            let (cells, columns) = columns(&mut rng, lens.iter().product::<u64>() as usize);
            for (number, cell) in (0..).zip(cells) {
                let mut at = vec![0; rank];
                let positions = unravel(number, &lens);
                for ((axis, indices), position) in axes.iter().zip(&of_box).zip(positions) {
                    at[*axis] = indices[position as usize];
                }
                expected.insert(at, cell);
            }
            let axis = |(axis, indices)| BoxAxis { axis, indices };
            let boxes: Vec<_> = axes.iter().copied().zip(of_box).map(axis).collect();
            buffers.put(&boxes, &columns).unwrap();
        }
        check(&array, &buffers.finish().unwrap(), &expected);
    }
}

#[test]
fn rows_become_chunks() {
    let mut rng = SmallRng::seed_from_u64(47);
    for case in 0..400 {
        let rank = 1 + case % 4;
        let array = array(&mut rng, rank);
        let (rows, indices) = indices(&mut rng, &array);
        let lens: Vec<u64> = indices.iter().map(|it| it.len() as u64).collect();
        let index = |number| {
            let at = indices.iter().zip(unravel(number, &lens));
            at.map(|(indices, at)| indices[at as usize]).collect::<Vec<u64>>()
        };
        // Some rows are missing.
        let all: Vec<Vec<u64>> = (0..lens.iter().product()).map(index).collect();
        let all: Vec<Vec<u64>> = all.into_iter().filter(|_| rng.random_bool(0.9)).collect();
        let (cells, columns) = columns(&mut rng, all.len());
        let expected: HashMap<_, _> = all.iter().cloned().zip(cells).collect();
        let mut buffers = ChunkBuffers::new(&array, rows);
        let columns = CellRows::try_new(&columns).unwrap();
        let follows = |a: &Vec<u64>, b: &Vec<u64>| {
            a[..rank - 1] == b[..rank - 1] && a[rank - 1] + 1 == b[rank - 1]
        };
        let mut start = 0;
        for run in all.chunk_by(follows) {
            let rows = start..start + run.len();
            assert_eq!(buffers.put_rows(&columns, rows.clone(), &run[0]).unwrap(), None);
            start = rows.end;
        }
        if let Some(at) = (start > 0).then(|| rng.random_range(0..start)) {
            let mut again = ChunkBuffers::new(&array, buffers.rows());
            assert_eq!(again.put_rows(&columns, at..at + 1, &all[at]).unwrap(), None);
            assert_eq!(again.put_rows(&columns, at..at + 1, &all[at]).unwrap(), Some(at));
        }
        check(&array, &buffers.finish().unwrap(), &expected);
    }
}

#[test]
fn the_first_repeated_cell_of_a_run_is_found() {
    let mut rng = SmallRng::seed_from_u64(48);
    for _ in 0..2000 {
        let len = rng.random_range(1..80);
        let mut given = GivenCells::new(len);
        let mut expected = vec![false; len];
        for _ in 0..4 {
            let at = rng.random_range(0..len);
            let run = Run { at, stride: 1, len: rng.random_range(0..=len - at) };
            let repeated = (0..run.len).find(|it| expected[at + it]);
            expected[at..at + run.len].fill(true);
            assert_eq!(given.set(run), repeated);
            if repeated.is_some() {
                break;
            }
        }
    }
}

#[test]
fn an_index_outside_of_the_chunks_is_refused() {
    let mut rng = SmallRng::seed_from_u64(1);
    let array = array(&mut rng, 1);
    let mut buffers = ChunkBuffers::new(&array, 0..1);
    let (_, columns) = columns(&mut rng, 1);
    let outside = BoxAxis { axis: 0, indices: &[99] };
    assert!(buffers.put(&[outside], &columns).is_err());
    let rows = CellRows::try_new(&columns).unwrap();
    assert!(buffers.put_rows(&rows, 0..1, &[99]).is_err());
}
