//! The frames and states of windows compared with their definitions.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, UInt32Array, UInt64Array};
use arrow::compute::{SortOptions, cast, take};
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::call::Call;
use super::frames::{Frames, KnownFrames};
use super::function::Function;
use super::lines::LineChunks;
use super::parts::{WindowPart, chunks_to_read, divided};
use super::picks::{PickedLines, Picks};
use super::totals::{Total, totals};
use super::window_axis::WindowAxis;
use super::window_state::{ColumnShape, WindowState};
use crate::grid::ChunkGrid;
use crate::plan::{ScanPlan, ScanRequest};

/// The sort keys of each partition, in the order of the window.
type Keys = Vec<Vec<i64>>;

/// Returns an axis with random partitions, whose keys have ties, and the keys.
fn random_axis(rng: &mut StdRng) -> (WindowAxis, Keys) {
    let (descending, backwards) = (rng.random_bool(0.3), rng.random_bool(0.3));
    let keys: Keys = (0..rng.random_range(1..4))
        .map(|_| {
            let len = rng.random_range(1..9);
            let mut keys: Vec<i64> = (0..len).map(|_| rng.random_range(0..7)).collect();
            keys.sort_unstable_by_key(|key| if descending { -key } else { *key });
            keys
        })
        .collect();
    let (mut positions, mut partitions, mut is_tied) = (vec![], vec![], vec![]);
    for keys in &keys {
        let start = positions.len();
        let mut along: Vec<i64> = keys.clone();
        if backwards {
            along.reverse();
        }
        is_tied.extend((0..along.len()).map(|at| along.get(at + 1) == Some(&along[at])));
        positions.extend(along);
        partitions.push(start..positions.len());
    }
    let options = SortOptions { descending, nulls_first: false };
    let key: ArrayRef = Arc::new(Int64Array::from(positions));
    (
        WindowAxis {
            axis: 0,
            partitions,
            backwards,
            key: Some((key, options)),
            is_tied,
            nulls: None,
        },
        keys,
    )
}

/// A bound as an offset: negative before the row, `None` without end.
type Offset = Option<i64>;

fn random_bounds(rng: &mut StdRng) -> (Offset, Offset) {
    let (a, b) = (rng.random_range(-3..4), rng.random_range(-3..4));
    let bound = |rng: &mut StdRng, offset: i64| rng.random_bool(0.8).then_some(offset);
    (bound(rng, a.min(b)), bound(rng, a.max(b)))
}

fn frame(units: WindowFrameUnits, start: Offset, end: Offset) -> Arc<WindowFrame> {
    let value = |offset: Option<i64>| match units {
        WindowFrameUnits::Range => ScalarValue::Int64(offset),
        _ => ScalarValue::UInt64(offset.map(|offset| offset as u64)),
    };
    let bound = |offset: i64| match offset {
        0 => WindowFrameBound::CurrentRow,
        ..0 => WindowFrameBound::Preceding(value(Some(-offset))),
        1.. => WindowFrameBound::Following(value(Some(offset))),
    };
    let start = start.map_or_else(|| WindowFrameBound::Preceding(value(None)), bound);
    let end = end.map_or_else(|| WindowFrameBound::Following(value(None)), bound);
    Arc::new(WindowFrame::new_bounds(units, start, end))
}

/// Returns the rows of the frame of `row` in a partition with these keys, in the order of the window.
fn defined(
    units: WindowFrameUnits,
    (start, end): (Offset, Offset),
    keys: &[i64],
    descending: bool,
    row: usize,
) -> Vec<usize> {
    // The offset counts this, from the row to another one.
    let distance = |other: usize| match units {
        WindowFrameUnits::Rows => other as i64 - row as i64,
        WindowFrameUnits::Range if descending => keys[row] - keys[other],
        WindowFrameUnits::Range => keys[other] - keys[row],
        WindowFrameUnits::Groups => {
            let changes = |from: usize, to: usize| {
                keys[from..=to].windows(2).filter(|pair| pair[0] != pair[1]).count() as i64
            };
            if other >= row { changes(row, other) } else { -changes(other, row) }
        }
    };
    let is_in = |other: &usize| {
        start.is_none_or(|start| distance(*other) >= start)
            && end.is_none_or(|end| distance(*other) <= end)
    };
    (0..keys.len()).filter(is_in).collect()
}

/// Returns the frames of a window that has a random axis, and the axis.
fn random_frames(rng: &mut StdRng) -> (Arc<Frames>, WindowAxis) {
    let (axis, _) = random_axis(rng);
    let bounds = random_bounds(rng);
    let frames = KnownFrames::new(&axis).get(&frame(WindowFrameUnits::Rows, bounds.0, bounds.1));
    (frames.unwrap(), axis)
}

#[test]
fn frames_are_those_of_the_definition() {
    let mut rng = StdRng::seed_from_u64(40);
    for _ in 0..3_000 {
        let (axis, keys) = random_axis(&mut rng);
        let descending = axis.key.as_ref().is_some_and(|(_, options)| options.descending);
        let units = [WindowFrameUnits::Rows, WindowFrameUnits::Range, WindowFrameUnits::Groups];
        for units in units {
            let bounds = random_bounds(&mut rng);
            let frames = KnownFrames::new(&axis).get(&frame(units, bounds.0, bounds.1)).unwrap();
            assert_eq!(frames.all().len(), axis.len());
            for (partition, keys) in axis.partitions.iter().zip(&keys) {
                for row in 0..keys.len() {
                    // Positions of a window that goes backwards count from the end.
                    let position = |row: usize| match axis.backwards {
                        false => partition.start + row,
                        true => partition.end - 1 - row,
                    };
                    let expected = defined(units, bounds, keys, descending, row);
                    let mut expected: Vec<usize> = expected.into_iter().map(position).collect();
                    expected.sort_unstable();
                    let found: Vec<usize> = frames.at(position(row)).collect();
                    assert_eq!(found, expected, "{units:?} {bounds:?} {keys:?} row {row}");
                }
            }
            let starts = frames.all().iter().map(|frame| frame.start);
            let ends = frames.all().iter().map(|frame| frame.end);
            assert!(starts.is_sorted() && ends.is_sorted(), "{frames:?}");
        }
    }
}

/// Cuts lines into chunks.
fn random_chunks(rng: &mut StdRng, lines: usize) -> Vec<Range<usize>> {
    let mut chunks = vec![];
    let mut start = 0;
    while start < lines {
        let end = (start + rng.random_range(1..5)).min(lines);
        chunks.push(start..end);
        start = end;
    }
    chunks
}

/// The arguments of a column of chunks.
struct ChunkArguments {
    shape: ColumnShape,
    lines: usize,
    /// One value per block, line and row of the line.
    values: Vec<Option<i64>>,
}

impl ChunkArguments {
    fn random(rng: &mut StdRng, lines: usize) -> Self {
        let shape = ColumnShape { outer: rng.random_range(1..4), width: rng.random_range(1..4) };
        let nulls = [0.0, 0.3][rng.random_range(0..2)];
        let cell = |_| (!rng.random_bool(nulls)).then(|| rng.random_range(0..50));
        let values = (0..shape.outer * lines * shape.width).map(cell).collect();
        Self { shape, lines, values }
    }

    /// Returns the number of a cell among all.
    fn at(&self, outer: usize, line: usize, row: usize) -> usize {
        (outer * self.lines + line) * self.shape.width + row
    }

    /// Returns the places of the cells of some lines, in the order of a chunk.
    fn places(&self, lines: &Range<usize>) -> Vec<(usize, usize, usize)> {
        let of_line = |outer, line| (0..self.shape.width).map(move |row| (outer, line, row));
        let of_block = |outer| lines.clone().flat_map(move |line| of_line(outer, line));
        (0..self.shape.outer).flat_map(of_block).collect()
    }

    fn of_lines(&self, lines: &Range<usize>, data_type: &DataType) -> ArrayRef {
        let all: ArrayRef = Arc::new(Int64Array::from(self.values.clone()));
        let places = self.places(lines).into_iter();
        let places = places.map(|(outer, line, row)| self.at(outer, line, row) as u32);
        let found = take(&all, &UInt32Array::from_iter_values(places), None).unwrap();
        cast(&found, data_type).unwrap()
    }
}

/// Indices on the outer axis, the axis of the window, and the inner one.
type Place = (usize, usize, usize);

/// Runs a state over chunks as an operator does. Each chunk gets its values as soon as the lines before `reach` are there.
fn run(
    state: &mut dyn WindowState,
    cells: &ChunkArguments,
    data_type: &DataType,
    chunks: &[Range<usize>],
    reach: &dyn Fn(usize) -> usize,
    check: &dyn Fn(&ArrayRef, &[Place]),
) {
    let mut unread = chunks.iter();
    let mut read = 0;
    for lines in chunks {
        while read < lines.end.max(reach(lines.end - 1)) {
            let next = unread.next().unwrap();
            state.push(&cells.of_lines(next, data_type), next.clone()).unwrap();
            read = next.end;
        }
        let values = state.values(lines.clone()).unwrap();
        state.forget(lines.end);
        assert_eq!(values.len(), cells.places(lines).len());
        check(&values, &cells.places(lines));
    }
}

/// Returns the value of an aggregate of these values.
fn aggregate(total: Total, values: &[Option<i64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().flatten().map(|value| *value as f64).collect();
    let (count, sum) = (known.len() as f64, known.iter().sum::<f64>());
    let some = |value: f64| (!known.is_empty()).then_some(value);
    match total {
        Total::Count => Some(count),
        Total::FloatSum | Total::IntegerSum => some(sum),
        Total::Average => some(sum / count),
        Total::Least => known.iter().copied().reduce(f64::min),
        Total::Greatest => known.iter().copied().reduce(f64::max),
        Total::FirstKnown => known.first().copied(),
        Total::LastKnown => known.last().copied(),
        Total::Variance { is_sample, is_root } => {
            let less = if is_sample { 1.0 } else { 0.0 };
            let spread = known.iter().map(|value| (value - sum / count).powi(2)).sum::<f64>();
            let variance = spread / (count - less);
            (count > less).then(|| if is_root { variance.sqrt() } else { variance })
        }
    }
}

#[test]
fn totals_are_those_of_their_frames() {
    let mut rng = StdRng::seed_from_u64(41);
    let (int, uint, float) = (DataType::Int64, DataType::UInt64, DataType::Float64);
    let variance = |is_sample, is_root| Total::Variance { is_sample, is_root };
    let cases = [
        (Total::Count, &float, &int),
        (Total::FloatSum, &float, &float),
        (Total::IntegerSum, &int, &int),
        (Total::IntegerSum, &uint, &uint),
        (Total::Average, &float, &float),
        (Total::Least, &int, &int),
        (Total::Greatest, &float, &float),
        (variance(true, false), &float, &float),
        (variance(false, false), &float, &float),
        (variance(true, true), &float, &float),
        (Total::FirstKnown, &int, &int),
        (Total::LastKnown, &float, &float),
    ];
    for _ in 0..300 {
        let (frames, axis) = random_frames(&mut rng);
        let cells = ChunkArguments::random(&mut rng, axis.len());
        let chunks = random_chunks(&mut rng, axis.len());
        for (total, data_type, to) in cases {
            let mut state = totals(&total, to, Arc::clone(&frames), cells.shape, 0);
            let check = |found: &ArrayRef, places: &[(usize, usize, usize)]| {
                assert_eq!(found.data_type(), to);
                let found = cast(found, &DataType::Float64).unwrap();
                let found = found.as_primitive::<Float64Type>();
                for (at, &(outer, line, row)) in places.iter().enumerate() {
                    let of_line = |line: usize| cells.values[cells.at(outer, line, row)];
                    let values: Vec<_> = frames.at(line).map(of_line).collect();
                    let (found, expected) =
                        (found.is_valid(at).then(|| found.value(at)), aggregate(total, &values));
                    let is_near = match (found, expected) {
                        (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
                        (found, expected) => found == expected,
                    };
                    assert!(is_near, "{total:?} of {values:?}: {found:?}, {expected:?}");
                }
            };
            let reach = |line: usize| frames.at(line).end;
            run(state.as_mut(), &cells, data_type, &chunks, &reach, &check);
        }
    }
}

#[test]
fn picks_are_the_values_of_their_lines() {
    let mut rng = StdRng::seed_from_u64(42);
    for _ in 0..1_000 {
        let lines = rng.random_range(1..20);
        let mut wanted: Vec<usize> = (0..lines).map(|_| rng.random_range(0..lines)).collect();
        wanted.sort_unstable();
        let picks: Vec<Option<usize>> =
            wanted.into_iter().map(|pick| rng.random_bool(0.8).then_some(pick)).collect();
        let known = Picks::new(picks.clone(), ScalarValue::Int64(Some(-1))).unwrap();
        let known = Arc::new(known);
        let cells = ChunkArguments::random(&mut rng, lines);
        let chunks = random_chunks(&mut rng, lines);
        let mut state = PickedLines::new(cells.shape, Arc::clone(&known));
        let check = |found: &ArrayRef, places: &[(usize, usize, usize)]| {
            let expected: Int64Array = places
                .iter()
                .map(|&(outer, line, row)| match picks[line] {
                    Some(pick) => cells.values[cells.at(outer, pick, row)],
                    None => Some(-1),
                })
                .collect();
            assert_eq!(found.as_ref(), &expected as &dyn Array, "{picks:?}");
        };
        let reach = |line: usize| known.reach(line);
        run(&mut state, &cells, &DataType::Int64, &chunks, &reach, &check);
        assert_eq!(state.size(), 0, "all lines have their values");
    }
    let turned = vec![Some(1), Some(0)];
    assert!(Picks::new(turned, ScalarValue::Null).is_none());
}

#[test]
fn parts_share_no_chunk_and_read_their_frames() {
    let mut rng = StdRng::seed_from_u64(43);
    for _ in 0..1_000 {
        let shape = [rng.random_range(1..60), rng.random_range(1..20)];
        let grid = ChunkGrid::new(&shape, &[rng.random_range(1..9), 4]).unwrap();
        let plan = Arc::new(ScanPlan::new(grid.clone(), ScanRequest::all(&grid)).unwrap());
        let columns = LineChunks::try_new(&plan, 0, None).unwrap().unwrap();
        let lines = shape[0] as usize;
        let axis = WindowAxis {
            axis: 0,
            partitions: std::iter::once(0..lines).collect(),
            backwards: false,
            key: None,
            is_tied: vec![true; lines],
            nulls: None,
        };
        let (start, end) = random_bounds(&mut rng);
        let frames = KnownFrames::new(&axis).get(&frame(WindowFrameUnits::Rows, start, end));
        let function = Function::Total(Total::Count, frames.unwrap());
        let field = Arc::new(Field::new("n", DataType::Int64, false));
        let calls = [Call { argument: None, function, field }];
        let whole = WindowPart { columns: 0..columns.count(), chunks: 0..columns.len() };
        let pieces = rng.random_range(1..12);
        let parts = divided(&whole, &columns, &calls, pieces);
        assert!(parts.len() <= pieces);
        let chunks = |part: &WindowPart| -> Vec<(u64, usize)> {
            let of_column = |column| part.chunks.clone().map(move |chunk| (column, chunk));
            part.columns.clone().flat_map(of_column).collect()
        };
        let mut all: Vec<_> = parts.iter().flat_map(chunks).collect();
        all.sort_unstable();
        assert_eq!(all, chunks(&whole));
        for part in &parts {
            let read = chunks_to_read(&columns, &calls, &part.chunks);
            let first = columns.lines(read.start).start;
            let last = columns.lines(read.end - 1).end;
            for chunk in part.chunks.clone() {
                for line in columns.lines(chunk) {
                    let Function::Total(_, frames) = &calls[0].function else { unreachable!() };
                    let frame = frames.at(line);
                    assert!(frame.is_empty() || first <= frame.start && frame.end <= last);
                }
            }
        }
    }
}

/// Integers that a float cannot tell apart stay apart.
#[test]
fn sums_of_integers_are_exact() {
    let axis = WindowAxis {
        axis: 0,
        partitions: std::iter::once(0..3).collect(),
        backwards: false,
        key: None,
        is_tied: vec![true; 3],
        nulls: None,
    };
    let frames =
        KnownFrames::new(&axis).get(&frame(WindowFrameUnits::Rows, None, Some(0))).unwrap();
    let shape = ColumnShape { outer: 1, width: 1 };
    let most = u64::MAX - 2;
    let mut state = totals(&Total::IntegerSum, &DataType::UInt64, frames, shape, 0);
    let values: ArrayRef = Arc::new(UInt64Array::from(vec![most, 1, 1]));
    state.push(&values, 0..3).unwrap();
    let found = state.values(0..3).unwrap();
    assert_eq!(found.as_ref(), &UInt64Array::from(vec![most, most + 1, most + 2]) as &dyn Array);
    let floats = Float64Array::from(vec![1.0; 3]);
    let error = state.push(&(Arc::new(floats) as ArrayRef), 3..6).unwrap_err().to_string();
    assert!(error.contains("an argument has type Float64, not UInt64"), "{error}");
}
