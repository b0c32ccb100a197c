//! Random selections of random arrays, compared with cells that are computed one by one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type, Int64Type};
use async_trait::async_trait;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use url::Url;

use super::{ArrayReader, Opener};
use crate::array::{ChunkSource, Dimension, GridArrayBuilder, Labels, ReadOptions, Value};
use crate::error::{ErrorKind, Result};
use crate::format::{Codec, ElementType, Layer, Location, Payload, StoredChunk};
use crate::grid::{ChunkGrid, ChunkTask, unravel};
use crate::io::MemorySource;
use crate::tile::Objects;

/// Chunks in row-major order, each as long as a whole one.
#[derive(Debug)]
struct Flat {
    objects: Arc<Objects>,
    chunk_cells: u64,
    /// Every so many chunks, one was not written.
    missing: u64,
}

#[async_trait]
impl ChunkSource for Flat {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let stored = |task: &ChunkTask| {
            let start = task.chunk_number * self.chunk_cells * 8;
            let at = Location::new("", start..start + task.cells() * 8);
            let layer = Layer::whole(Payload::new(at, task.cells() * 8, Codec::Raw));
            let is_missing = task.chunk_number % self.missing == 1;
            let layers = if is_missing { vec![] } else { vec![layer] };
            vec![StoredChunk::new(layers); values.len()]
        };
        Ok(tasks.iter().map(stored).collect())
    }
}

/// An array, and its cells in row-major order.
struct Sample {
    reader: ArrayReader,
    shape: Vec<u64>,
    cells: Vec<Option<f64>>,
}

fn sample(random: &mut StdRng) -> Sample {
    let rank = random.random_range(0..5);
    let shape: Vec<u64> = (0..rank).map(|_| random.random_range(0..8)).collect();
    let chunk_shape: Vec<u64> = (0..rank).map(|_| random.random_range(1..5)).collect();
    let grid = ChunkGrid::new(&shape, &chunk_shape).unwrap();
    let missing = random.random_range(2..6);
    let count: u64 = shape.iter().product();
    let mut cells = vec![None; count as usize];
    let chunk_cells: u64 = chunk_shape.iter().product();
    let mut bytes = vec![0; (grid.chunks() * chunk_cells * 8) as usize];
    for (number, cell) in cells.iter_mut().enumerate() {
        let index = unravel(number as u64, &shape);
        let chunk: Vec<u64> = index.iter().zip(&chunk_shape).map(|(at, len)| at / len).collect();
        let chunk_number = grid.chunk_number(&chunk).unwrap();
        if chunk_number % missing == 1 {
            continue;
        }
        *cell = Some(number as f64);
        let within = index.iter().zip(&chunk_shape).map(|(at, len)| at % len);
        let extents = grid.extents(&chunk);
        let place = within.zip(&extents).fold(0, |place, (at, len)| place * len + at);
        let start = ((chunk_number * chunk_cells + place) * 8) as usize;
        bytes[start..start + 8].copy_from_slice(&(number as f64).to_le_bytes());
    }
    let objects = Arc::new(Objects::one(Arc::new(MemorySource::new("memory", bytes))));
    let mut builder =
        GridArrayBuilder::new("a", Arc::new(Flat { objects, chunk_cells, missing }), grid);
    for (axis, len) in shape.iter().enumerate() {
        let labels = Int64Array::from_iter_values((0..*len as i64).map(|at| 10 * at));
        let labels = Labels::from_array(Arc::new(labels)).unwrap();
        builder = builder.dimension(Dimension::labelled(format!("x{axis}"), labels));
    }
    let fill = (-1.0_f64).to_le_bytes();
    let value = Value::numbers(
        "v",
        ElementType::F64,
        Some(&fill),
        &ReadOptions { fill_as_null: true, ..ReadOptions::default() },
    );
    let reader = ArrayReader::new(builder.value(value).build().unwrap());
    Sample { reader, shape, cells }
}

/// A random selection, and the selected indices of each axis.
fn select(random: &mut StdRng, sample: &Sample) -> (ArrayReader, Vec<Vec<u64>>) {
    let mut reader = sample.reader.clone();
    let mut selected = vec![];
    for (axis, &len) in sample.shape.iter().enumerate() {
        let name = format!("x{axis}");
        let mut indices: Vec<u64> = (0..len).collect();
        if random.random_bool(0.5) {
            let start = random.random_range(0..=len);
            let end = random.random_range(start..=len);
            reader = reader.with_range(&name, start..end).unwrap();
            indices.retain(|at| (start..end).contains(at));
        }
        if random.random_bool(0.5) {
            let (step, rest) = (random.random_range(1..4), random.random_range(0..3));
            let is_kept = |label: i64| label / 10 % step == rest % step;
            let keep = |labels: &ArrayRef| {
                let labels = labels.as_primitive::<Int64Type>();
                Ok(labels.iter().map(|label| label.map(is_kept)).collect::<BooleanArray>())
            };
            reader = reader.with_labels(&name, keep).unwrap();
            indices.retain(|at| is_kept(10 * *at as i64));
        }
        selected.push(indices);
    }
    (reader, selected)
}

#[tokio::test]
async fn selections_have_the_cells_that_were_written() {
    let mut random = StdRng::seed_from_u64(40);
    let (mut with_cells, mut with_nulls) = (0, 0);
    for case in 0..600 {
        let sample = sample(&mut random);
        let (reader, selected) = select(&mut random, &sample);
        let lens: Vec<u64> = selected.iter().map(|indices| indices.len() as u64).collect();
        assert_eq!(reader.shape(), lens, "case {case}");
        let count: u64 = lens.iter().product();
        let mut expected = vec![];
        for number in 0..count {
            let places = unravel(number, &lens);
            let index: Vec<u64> =
                selected.iter().zip(&places).map(|(indices, at)| indices[*at as usize]).collect();
            let at = index.iter().zip(&sample.shape).fold(0, |at, (index, len)| at * len + index);
            expected.push((index, sample.cells[at as usize]));
        }

        let cells = reader.cells::<Float64Type>("v").await.unwrap();
        let shape: Vec<u64> = cells.shape().iter().map(|len| *len as u64).collect();
        assert_eq!(shape, lens, "case {case}");
        for (number, (_, cell)) in expected.iter().enumerate() {
            let place: Vec<usize> =
                unravel(number as u64, &lens).iter().map(|at| *at as usize).collect();
            assert_eq!(cells.get(&place), *cell, "case {case} at {place:?}");
        }
        let nulls = expected.iter().filter(|(_, cell)| cell.is_none()).count();
        assert_eq!(cells.null_count(), nulls, "case {case}");
        let (mut values, mut valid) = (vec![0.5; count as usize], vec![]);
        let read = reader.cells_into::<Float64Type>("v", &mut values, &mut valid).await.unwrap();
        assert_eq!((read.0 > 0, valid.is_empty()), (count > 0, nulls == 0), "case {case}");
        let valid = |at: usize| valid.get(at).copied().unwrap_or(true);
        let found = values.iter().enumerate().map(|(at, value)| valid(at).then_some(*value));
        assert!(found.eq(expected.iter().map(|(_, cell)| *cell)), "case {case}");
        let array = cells.into_array();
        assert!(array.iter().eq(expected.iter().map(|(_, cell)| *cell)), "case {case}");

        let batches: Vec<RecordBatch> = reader.batches().try_collect().await.unwrap();
        let mut rows: Vec<(Vec<u64>, Option<f64>)> = batches.iter().flat_map(rows_of).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(rows, expected, "case {case}");
        with_cells += usize::from(count > 0);
        with_nulls += usize::from(nulls > 0);
    }
    assert!(with_cells > 200 && with_nulls > 100, "{with_cells} {with_nulls}");
}

fn rows_of(batch: &RecordBatch) -> Vec<(Vec<u64>, Option<f64>)> {
    let (labels, value) = batch.columns().split_at(batch.num_columns() - 1);
    let value = value[0].as_primitive::<Float64Type>();
    let label = |column: &ArrayRef, row| column.as_primitive::<Int64Type>().value(row) as u64 / 10;
    (0..batch.num_rows())
        .map(|row| {
            let index = labels.iter().map(|column| label(column, row)).collect();
            (index, value.is_valid(row).then(|| value.value(row)))
        })
        .collect()
}

#[tokio::test]
async fn openers_show_no_secrets_and_name_what_they_lack() {
    let url = Url::parse("https://user:secret@example.org/x.zarr?sig=secret").unwrap();
    let opener = Opener::new(vec![]).with_store(&url, Arc::new(InMemory::new()));
    let shown = format!("{opener:?}");
    assert!(shown.contains("example.org") && !shown.contains("secret"), "{shown}");
    let other = "s3://bucket/x.zarr?key=secret";
    let error = opener.open(other).await.unwrap_err().to_string();
    let known = error.contains("s3://bucket") && error.contains("`Opener::with_store`");
    assert!(known && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn mistakes_are_explained() {
    let mut random = StdRng::seed_from_u64(7);
    let sample = std::iter::repeat_with(|| sample(&mut random)).find(|it| it.shape.len() == 2);
    let Sample { reader, shape, .. } = sample.unwrap();
    let explained = |result: Result<ArrayReader>, texts: &[&str]| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        for text in texts {
            assert!(error.to_string().contains(text), "{error}");
        }
    };
    let len = shape[0].to_string();
    explained(reader.clone().with_range("time", 0..1), &["\"time\"", "x0, x1", "memory"]);
    explained(reader.clone().with_range("x0", 0..99), &["0..99", &len]);
    explained(reader.clone().with_columns(&["x0", "w"]), &["\"w\"", "x0, x1, v"]);
    let wrong = reader.clone().with_labels("x0", |_| Ok(BooleanArray::from(vec![true; 77])));
    explained(wrong, &["77", &len]);
    let error = reader.cells::<Float32Type>("v").await.unwrap_err().to_string();
    assert!(error.contains("Float64, not Float32"), "{error}");
    let error = reader.cells::<Float64Type>("x0").await.unwrap_err().to_string();
    assert!(error.contains("`labels`"), "{error}");
    let mut places = vec![0.0; shape.iter().product::<u64>() as usize + 1];
    let into = reader.cells_into::<Float64Type>("v", &mut places, &mut vec![]).await;
    let error = into.unwrap_err().to_string();
    assert!(error.contains("places for cells of ["), "{error}");
}
