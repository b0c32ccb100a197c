//! Parts of random arrays are appended to the first part, and read again.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float64Array, Int32Array, Int64Array, StringArray, UInt8Array, new_null_array,
};
use arrow::datatypes::DataType;
use gridfusion_core::Result;
use gridfusion_core::io::{Folder, LocalFolder};
use gridfusion_core::tile::{Objects, WriteSession};
use gridfusion_core::verify::{Depth, Progress};
use gridfusion_core::write::{AppendTarget, ExistingCells, NewArray, NewChunk, cells_of_box};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{Sample, in_chunk_order, open, plain, read, sample, small, written};
use crate::verify;
use crate::view::TileDbView;
use crate::write::{TileDbEncoding, TileDbTarget};

/// Returns the part of a sample with these indices along the first dimension.
fn part(sample: &Sample, rows: std::ops::Range<u64>) -> Sample {
    let mut dimensions = sample.array.dimensions().to_vec();
    let len = (rows.end - rows.start) as usize;
    dimensions[0].labels = dimensions[0].labels.slice(rows.start as usize, len);
    let shape = sample.array.grid().shape();
    let mut ranges: Vec<_> = shape.iter().map(|len| 0..*len).collect();
    ranges[0] = rows;
    let cells = sample.cells.iter().map(|it| cells_of_box(it, shape, &ranges).unwrap());
    let chunk_shape: Vec<u64> = sample.array.grid().chunk_shape().collect();
    let variables = sample.array.variables().to_vec();
    Sample {
        array: NewArray::try_new(dimensions, variables, &chunk_shape).unwrap(),
        encoding: sample.encoding.clone(),
        cells: cells.collect(),
    }
}

/// Appends a part of a sample to the array at a path.
async fn append(path: &std::path::Path, part: &Sample) -> Result<()> {
    let local = Arc::new(LocalFolder::open(path, true).unwrap());
    let names = part.array.dimensions().iter().map(|it| it.name.as_str());
    let names: Vec<&str> =
        names.chain(part.array.variables().iter().map(|it| it.name.as_str())).collect();
    let objects = Arc::new(Objects::many(Arc::clone(&local) as Arc<dyn Folder>));
    let target = Box::new(TileDbTarget::open(objects, &names).await?);
    let (dimensions, variables) =
        (part.array.dimensions().to_vec(), part.array.variables().to_vec());
    let (mut writer, places) = target.writer(dimensions, variables, ExistingCells::Refuse)?;
    let first = places[0][0];
    let mut session = WriteSession::new(local);
    let mut numbers = vec![vec![]];
    for range in writer.array().chunks_of_region() {
        let longer = numbers
            .iter()
            .flat_map(|at: &Vec<u64>| range.clone().map(move |next| [&at[..], &[next]].concat()));
        numbers = longer.collect();
    }
    for (variable, cells) in part.cells.iter().enumerate() {
        for coordinates in &numbers {
            let mut ranges = writer.array().ranges_in(coordinates);
            ranges[0] = ranges[0].start - first..ranges[0].end - first;
            let cells = cells_of_box(cells, part.array.grid().shape(), &ranges).unwrap();
            let chunk = NewChunk { variable, coordinates: coordinates.clone(), cells, given: None };
            session.write(writer.write_many(vec![chunk], 1)?).await?;
        }
    }
    let (rest, publish) = writer.finish()?;
    session.write(rest).await?;
    let before = open(path).await?.grid(&TileDbView::default())?;
    assert_eq!(before.dims()[0].len(), first, "nothing is visible before");
    session.publish(publish).await
}

#[tokio::test]
async fn appended_cells_come_back() {
    let mut rng = SmallRng::seed_from_u64(33);
    let mut appended = 0;
    for round in 0..120 {
        let mut sample = sample(&mut rng);
        sample.encoding.can_grow = true;
        let len = sample.array.grid().shape()[0];
        if len < 3 {
            continue;
        }
        let [a, b] = [rng.random_range(1..len - 1), rng.random_range(1..len)];
        let (a, b) = (a.min(b), a.max(b));
        let (folder, reader) = written(&part(&sample, 0..a), &mut rng).await;
        // The first cells decide which attributes can be NULL.
        let can_be_null =
            reader.tiledb().schema().attributes.iter().zip(&sample.cells).all(|(stored, cells)| {
                stored.nullable
                    || stored.datatype.is_float()
                    || stored.datatype.is_temporal()
                    || cells.null_count() == 0
            });
        let parts = [a..b, b..len].into_iter().filter(|rows| !rows.is_empty());
        let mut done = Ok(());
        for rows in parts {
            done = append(folder.path(), &part(&sample, rows)).await;
            if done.is_err() {
                break;
            }
        }
        if let Err(error) = done {
            let error = error.to_string();
            // One or two labels may count, whatever follows.
            let is_short = a <= 2 && error.contains("leave no gap");
            assert!(is_short || !can_be_null && error.contains("NULL"), "{round} {error}");
            continue;
        }
        appended += 1;
        let reader = open(folder.path()).await.unwrap();
        let grid = reader.grid(&TileDbView::default()).unwrap();
        for (dimension, read) in sample.array.dimensions().iter().zip(grid.dims()) {
            let labels = read.labels().slice(0..read.len()).unwrap();
            assert_eq!(&plain(&labels), &dimension.labels, "{round}");
        }
        let extents: Vec<u64> = grid.grid().chunk_shape().collect();
        let whole = sample.array.clone().with_chunk_shape(&extents).unwrap();
        let cells = read(&reader, &TileDbView::default()).await;
        for (read, expected) in cells.iter().zip(&sample.cells) {
            assert_eq!(&plain(read), &plain(&in_chunk_order(&whole, expected)), "{round}");
        }
        let report = verify(&reader, Depth::Cells, &Arc::new(Progress::default())).await;
        let findings: Vec<_> = report.checks().iter().flat_map(|it| it.findings()).collect();
        assert!(findings.is_empty(), "{round} {findings:?}");
    }
    assert!(appended > 40, "{appended}");
}

#[tokio::test]
async fn rows_without_a_place_are_refused() {
    let numbers = |of: &[i32]| Arc::new(Int32Array::from(of.to_vec())) as ArrayRef;
    let cells: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2, 3]));
    let of = |labels: ArrayRef, cells: &ArrayRef, can_grow: bool| Sample {
        array: small(labels, cells, None).unwrap(),
        encoding: TileDbEncoding { can_grow, ..TileDbEncoding::default() },
        cells: vec![ArrayRef::clone(cells)],
    };
    let mut rng = SmallRng::seed_from_u64(1);
    let (tight, _) = written(&of(numbers(&[4, 5, 6]), &cells, false), &mut rng).await;
    let (wide, _) = written(&of(numbers(&[4, 5, 6]), &cells, true), &mut rng).await;
    let floats = Arc::new(Float64Array::from(vec![0.5, 1.5, 2.0]));
    let (labelled, _) = written(&of(floats, &cells, true), &mut rng).await;
    let one = cells.slice(0, 1);
    let refusal = |folder: &tempfile::TempDir, sample: Sample| {
        let path = folder.path().to_owned();
        async move { append(&path, &sample).await.unwrap_err().to_string() }
    };
    let error = refusal(&tight, of(numbers(&[7]), &one, true)).await;
    assert!(error.contains("never changes"), "{error}");
    let error = refusal(&wide, of(numbers(&[8]), &one, true)).await;
    assert!(error.contains("leave no gap"), "{error}");
    let error = refusal(&wide, of(numbers(&[6]), &one, true)).await;
    assert!(error.contains("there already"), "{error}");
    let wider: ArrayRef = Arc::new(Int64Array::from(vec![256]));
    let error = refusal(&wide, of(numbers(&[7]), &wider, true)).await;
    assert!(error.contains("does not have the value"), "{error}");
    let null = new_null_array(&DataType::UInt8, 1);
    let error = refusal(&wide, of(numbers(&[7]), &null, true)).await;
    assert!(error.contains("it is NULL"), "{error}");
    let halves = Arc::new(Float64Array::from(vec![1.75]));
    let error = refusal(&labelled, of(halves, &one, true)).await;
    assert!(error.contains("keeps their order"), "{error}");
    let halves = Arc::new(Float64Array::from(vec![f64::NAN]));
    let error = refusal(&labelled, of(halves, &one, true)).await;
    assert!(error.contains("no number"), "{error}");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let error = refusal(&wide, of(numbers(&[7]), &texts, true)).await;
    assert!(error.contains("is of type Utf8"), "{error}");
    append(wide.path(), &of(numbers(&[7]), &one, true)).await.unwrap();
    let floats = Arc::new(Float64Array::from(vec![2.5]));
    append(labelled.path(), &of(floats, &one, true)).await.unwrap();
}
