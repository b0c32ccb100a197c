//! Cells of random arrays change, and are read again.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt8Array, UInt64Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat, take};
use gridfusion_core::Result;
use gridfusion_core::grid::unravel;
use gridfusion_core::io::{Folder, LocalFolder};
use gridfusion_core::tile::{Objects, WriteSession};
use gridfusion_core::verify::{Depth, Progress};
use gridfusion_core::write::{AppendTarget, ExistingCells, NewChunk, NewDimension, lens};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{Sample, cells, in_chunk_order, open, plain, read, sample, small, written};
use crate::verify;
use crate::view::TileDbView;
use crate::write::{TileDbEncoding, TileDbTarget};

/// Rows for cells of a sample.
struct Rows {
    existing: ExistingCells,
    /// The indices along each dimension whose labels some row has, ascending.
    named: Vec<Vec<u64>>,
    /// The numbers of the variables that have a column, and their cells: NULL without a row.
    variables: Vec<(usize, ArrayRef)>,
    /// Whether there is a row, for each cell of the array.
    given: Vec<bool>,
}

impl Rows {
    fn random(sample: &Sample, rng: &mut SmallRng) -> Self {
        let shape = sample.array.grid().shape();
        let named = shape.iter().map(|len| {
            let mut some: Vec<u64> = (0..*len).filter(|_| rng.random_bool(0.6)).collect();
            if some.is_empty() {
                some.push(rng.random_range(0..*len));
            }
            some
        });
        let named: Vec<Vec<u64>> = named.collect();
        let count = shape.iter().product::<u64>();
        let share = [1.0, 0.5, 0.1][rng.random_range(0..3)];
        let mut given: Vec<bool> = (0..count)
            .map(|number| is_named(&named, number, shape) && rng.random_bool(share))
            .collect();
        // Each label has a row.
        let corner = |pick: fn(&Vec<u64>) -> u64| named.iter().map(pick).collect::<Vec<_>>();
        for (axis, some) in named.iter().enumerate() {
            for at in some {
                let mut cell = corner(|some| some[0]);
                cell[axis] = *at;
                let number = cell.iter().zip(shape).fold(0, |number, (at, len)| number * len + at);
                given[number as usize] = true;
            }
        }
        let existing = [ExistingCells::Same, ExistingCells::Overwrite, ExistingCells::Clear]
            [rng.random_range(0..3)];
        let all = sample.array.variables().len();
        let mut numbers: Vec<usize> = (0..all).filter(|_| rng.random_bool(0.7)).collect();
        if numbers.is_empty() {
            numbers.push(rng.random_range(0..all));
        }
        let variables = numbers.into_iter().map(|number| {
            let data_type = &sample.array.variables()[number].data_type;
            let new = match existing {
                ExistingCells::Same => ArrayRef::clone(&sample.cells[number]),
                _ => cells(rng, data_type, count as usize),
            };
            (number, new)
        });
        Self { existing, variables: variables.collect(), named, given }
    }

    /// Whether a cell changes, and is that of the rows' column.
    fn changes(&self, number: usize, shape: &[u64]) -> bool {
        let is_cleared = self.existing == ExistingCells::Clear;
        self.given[number] || is_cleared && is_named(&self.named, number as u64, shape)
    }

    /// The cells of a variable afterwards.
    fn expected(&self, sample: &Sample, variable: usize) -> ArrayRef {
        let old = &sample.cells[variable];
        let Some((_, new)) = self.variables.iter().find(|it| it.0 == variable) else {
            return ArrayRef::clone(old);
        };
        let null = new_null_array(old.data_type(), 1);
        let all = concat(&[old.as_ref(), new.as_ref(), null.as_ref()]).unwrap();
        let count = old.len();
        let at = (0..count).map(|number| match self.changes(number, sample.array.grid().shape()) {
            false => number,
            true if self.given[number] => count + number,
            true => 2 * count,
        });
        take(&all, &UInt64Array::from_iter_values(at.map(|at| at as u64)), None).unwrap()
    }
}

fn is_named(named: &[Vec<u64>], number: u64, shape: &[u64]) -> bool {
    unravel(number, shape).iter().zip(named).all(|(at, some)| some.contains(at))
}

/// Returns the numbers of the cells of a box in an array of this shape.
fn numbers_of(ranges: &[Range<u64>], shape: &[u64]) -> Vec<u64> {
    let counts = lens(ranges);
    let number = |cell| {
        let at = unravel(cell, &counts);
        let axes = at.iter().zip(ranges).zip(shape);
        axes.fold(0, |number, ((at, range), len)| number * len + at + range.start)
    };
    (0..counts.iter().product()).map(number).collect()
}

/// Changes the array at a path.
async fn change(path: &Path, sample: &Sample, rows: &Rows, rng: &mut SmallRng) -> Result<()> {
    let local = Arc::new(LocalFolder::open(path, true).unwrap());
    let variables: Vec<_> =
        rows.variables.iter().map(|it| sample.array.variables()[it.0].clone()).collect();
    let dimensions = sample.array.dimensions().iter().zip(&rows.named).map(|(it, named)| {
        let labels = take(&it.labels, &UInt64Array::from(named.clone()), None).unwrap();
        NewDimension { labels, ..it.clone() }
    });
    let dimensions: Vec<NewDimension> = dimensions.collect();
    let names = dimensions.iter().map(|it| it.name.as_str());
    let names: Vec<&str> = names.chain(variables.iter().map(|it| it.name.as_str())).collect();
    let objects = Arc::new(Objects::many(Arc::clone(&local) as Arc<dyn Folder>));
    let target = Box::new(TileDbTarget::open(objects, &names).await?);
    let (mut writer, places) = target.writer(dimensions, variables, rows.existing)?;
    assert_eq!(places, rows.named);
    let shape = sample.array.grid().shape();
    let mut numbers = vec![vec![]];
    for range in writer.array().chunks_of_region() {
        let longer = numbers
            .iter()
            .flat_map(|at: &Vec<u64>| range.clone().map(move |next| [&at[..], &[next]].concat()));
        numbers = longer.collect();
    }
    let mut session = WriteSession::new(local);
    for (variable, (_, cells)) in rows.variables.iter().enumerate() {
        for coordinates in &numbers {
            let within = numbers_of(&writer.array().ranges_in(coordinates), shape);
            let given: Vec<bool> = within.iter().map(|at| rows.given[*at as usize]).collect();
            if !given.contains(&true) && rng.random() {
                continue;
            }
            let at = within.iter().zip(&given).map(|(at, given)| given.then_some(*at));
            let cells = take(cells, &UInt64Array::from_iter(at), None).unwrap();
            let given = given.contains(&false).then(|| NullBuffer::from(given));
            let chunk = NewChunk { variable, coordinates: coordinates.clone(), cells, given };
            session.write(writer.write_many(vec![chunk], 1)?).await?;
        }
    }
    while let some = writer.write_rest()?
        && !some.is_empty()
    {
        session.write(some).await?;
    }
    let (rest, publish) = writer.finish()?;
    session.write(rest).await?;
    session.publish(publish).await
}

/// Compares the array at a path with cells.
async fn assert_is(path: &Path, sample: &Sample, expected: &[ArrayRef], what: &str) {
    let reader = open(path).await.unwrap();
    let grid = reader.grid(&TileDbView::default()).unwrap();
    let extents: Vec<u64> = grid.grid().chunk_shape().collect();
    let whole = sample.array.clone().with_chunk_shape(&extents).unwrap();
    let cells = read(&reader, &TileDbView::default()).await;
    for (read, expected) in cells.iter().zip(expected) {
        assert_eq!(&plain(read), &plain(&in_chunk_order(&whole, expected)), "{what}");
    }
    let report = verify(&reader, Depth::Cells, &Arc::new(Progress::default())).await;
    let findings: Vec<_> = report.checks().iter().flat_map(|it| it.findings()).collect();
    assert!(findings.is_empty(), "{what} {findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_cells_come_back() {
    let mut rng = SmallRng::seed_from_u64(71);
    let (mut changed, mut refused) = ([0; 3], 0);
    for round in 0..150 {
        let mut sample = sample(&mut rng);
        let (folder, _) = written(&sample, &mut rng).await;
        for turn in 0..2 {
            let rows = Rows::random(&sample, &mut rng);
            let what = format!("{round} {turn} {:?}", rows.existing);
            let done = change(folder.path(), &sample, &rows, &mut rng).await;
            if let Err(error) = done {
                // The first cells decide which attributes can be NULL.
                assert!(error.to_string().contains("it is NULL"), "{what}: {error}");
                refused += 1;
                assert_is(folder.path(), &sample, &sample.cells, &what).await;
                continue;
            }
            changed[rows.existing as usize - 1] += 1;
            let all = 0..sample.cells.len();
            sample.cells = all.map(|variable| rows.expected(&sample, variable)).collect();
            assert_is(folder.path(), &sample, &sample.cells, &what).await;
        }
    }
    assert!(changed.iter().all(|it| *it > 40) && refused > 5, "{changed:?} {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cells_that_must_stay_are_named() {
    let mut rng = SmallRng::seed_from_u64(2);
    let labels: ArrayRef = Arc::new(UInt8Array::from(vec![4, 5, 6]));
    let cells: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let sample = Sample {
        array: small(labels, &cells, None).unwrap(),
        encoding: TileDbEncoding::default(),
        cells: vec![ArrayRef::clone(&cells)],
    };
    let (folder, _) = written(&sample, &mut rng).await;
    let other: ArrayRef = Arc::new(BooleanArray::from(vec![true, true, true]));
    let rows = |existing| Rows {
        existing,
        named: vec![vec![0, 1]],
        variables: vec![(0, ArrayRef::clone(&other))],
        given: vec![true, true, false],
    };
    let same = change(folder.path(), &sample, &rows(ExistingCells::Same), &mut rng).await;
    let error = same.unwrap_err().to_string();
    assert!(error.contains("=5") && error.contains("the array has another value"), "{error}");
    let refused = change(folder.path(), &sample, &rows(ExistingCells::Refuse), &mut rng).await;
    assert!(refused.unwrap_err().to_string().contains("there already"));
    assert_is(folder.path(), &sample, &sample.cells, "refused").await;
    change(folder.path(), &sample, &rows(ExistingCells::Overwrite), &mut rng).await.unwrap();
    assert_is(folder.path(), &sample, &[other], "changed").await;
}
